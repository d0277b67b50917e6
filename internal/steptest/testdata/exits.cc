// Ways for threads to end: argv[1] says which.
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define TARGET extern "C" __attribute__((noipa))
#define UNTRACED __attribute__((section(".text.braid_notrace"), noipa))

TARGET void leaf(void) { __asm__ volatile(""); }

// A destructor of a thread-local object, and one of a key that comes back in every round.
struct local {
	bool used = false;
	__attribute__((noipa)) void use() { used = true; }
	__attribute__((noipa)) ~local() { leaf(); }
};
static thread_local local object;
static pthread_key_t key;

TARGET void key_gone(void *p)
{
	leaf();
	pthread_setspecific(key, p);
}

TARGET void *with_destructors(void *p)
{
	object.use();
	pthread_setspecific(key, p);
	leaf();
	return 0;
}

TARGET void deep(int n)
{
	leaf();
	if (n == 0)
		pthread_exit(0);
	deep(n - 1);
	leaf();
}

TARGET void *leaves_frames(void *)
{
	deep(3);
	return 0;
}

TARGET void *outlives(void *)
{
	usleep(20000); // the main thread has ended by then
	for (int i = 0; i < 5; i++)
		leaf();
	return 0;
}

TARGET void *quick(void *)
{
	leaf();
	return 0;
}

static volatile int depth;

TARGET void recurs(int s)
{
	leaf();
	if (++depth < 4)
		raise(s);
	leaf();
}

TARGET void *signalled(void *)
{
	static char stack[65536];
	stack_t s = {};
	s.ss_sp = stack;
	s.ss_size = sizeof stack;
	sigaltstack(&s, 0);
	struct sigaction a = {};
	a.sa_handler = recurs;
	a.sa_flags = SA_NODEFER | SA_ONSTACK;
	sigaction(SIGUSR1, &a, 0);
	raise(SIGUSR1);
	leaf();
	return 0;
}

UNTRACED static void run(void *(*body)(void *), int times)
{
	for (int i = 0; i < times; i++) {
		pthread_t t;
		if (pthread_create(&t, 0, body, (void *)1))
			_exit(9);
		pthread_join(t, 0);
	}
}

UNTRACED int main(int, char **argv)
{
	pthread_key_create(&key, key_gone);
	if (!strcmp(argv[1], "destructors"))
		run(with_destructors, 1);
	else if (!strcmp(argv[1], "frames"))
		run(leaves_frames, 1);
	else if (!strcmp(argv[1], "signals"))
		run(signalled, 1);
	else if (!strcmp(argv[1], "quick"))
		run(quick, 307);
	else if (!strcmp(argv[1], "outlives")) {
		leaf();
		pthread_t t;
		if (pthread_create(&t, 0, outlives, 0))
			return 9;
		pthread_exit(0);
	}
	return 0;
}
