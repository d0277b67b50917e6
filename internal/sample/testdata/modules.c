/* modules LIBRARY: code that is not in a file that can be opened: see modules_test.go. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static volatile uint64_t sink;

APART void burn(void)
{
	for (int i = 0; i < 100000; i++)
		sink += i;
}

static int more(double *until, double seconds)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	double now = t.tv_sec + t.tv_nsec / 1e9;
	if (*until == 0)
		*until = now + seconds;
	return now < *until;
}

/* Makes a frame, calls what it is given, returns. */
#ifdef __x86_64__
static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
#else
static const uint32_t code[] = { 0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#endif

APART void generated(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, code, sizeof(code));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache(page, (char *)page + sizeof(code));
	for (double until = 0; more(&until, 0.1);)
		((void (*)(void (*)(void)))page)(burn);
	sink++;
}

APART void loaded(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(1);
	}
	unlink(path);
	void (*spin)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(library, "spin");
	for (double until = 0; more(&until, 0.1);)
		spin(burn);
	dlclose(library);
	sink++;
}

int main(int argc, char **argv)
{
	generated();
	if (argc > 1)
		loaded(argv[1]);
	sink++;
	return 0;
}
