/* A thread that executes the program again, while the main thread and another one wait. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noipa)) void leaf(void) { __asm__ volatile(""); }

__attribute__((noipa)) void *execs(void *path)
{
	for (int i = 0; i < 11; i++)
		leaf();
	execl(path, path, "again", (char *)0);
	exit(3);
}

__attribute__((noipa)) void *waits(void *p)
{
	for (int i = 0; i < 7; i++)
		leaf();
	pause();
	return p;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		for (int i = 0; i < 5; i++)
			leaf();
		return 0;
	}
	pthread_t t;
	pthread_create(&t, 0, waits, argv[0]);
	usleep(30000);
	pthread_create(&t, 0, execs, argv[0]);
	pause();
	return 1;
}
