/*
 * Loads libraries, one after another, calls them and unloads them: loader FILE CALLS [FILE CALLS ...].
 * "sleep" MS sleeps, "remove" FILE deletes a file, "loop" N repeats all of it from the beginning, N times in all.
 * It prints where each library was.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int load(const char *file, long calls)
{
	void *l = dlopen(file, RTLD_NOW);
	void (*work)(long) = l ? (void (*)(long))dlsym(l, "work") : 0;
	if (!work) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	work(calls);
	printf("at %p\n", (void *)work);
	return dlclose(l);
}

int main(int argc, char **argv)
{
	long round = 1;
	for (int i = 1; i + 1 < argc; i += 2) {
		const char *what = argv[i];
		long n = atol(argv[i + 1]);
		if (!strcmp(what, "sleep"))
			usleep(n * 1000);
		else if (!strcmp(what, "remove"))
			unlink(argv[i + 1]);
		else if (!strcmp(what, "loop"))
			i = round++ < n ? -1 : i;
		else if (load(what, n))
			return 1;
	}
	return 0;
}
