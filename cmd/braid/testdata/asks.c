/* A program that asks for flushes itself (braid.h), and chooses its threads. Lines on stdin say what to do next. */
#define _GNU_SOURCE
#include <braid.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define METHOD __attribute__((noipa))

static volatile unsigned sum;
static volatile int stop;

METHOD static void leaf(void) { sum = sum * 1664525 + 1013904223; }
METHOD static void step(int n)
{
	for (int i = 0; i < n; i++)
		leaf();
}
METHOD static void crash_here(void) { abort(); }
METHOD static void slow(void)
{
	usleep(60000);
	sum++; /* so that it does not end with a jump to usleep */
}

static void *chosen(void *unused)
{
	prctl(PR_SET_NAME, "chosen");
	braid_thread_on();
	while (!stop) {
		step(10);
		usleep(1000);
	}
	braid_thread_off();
	return unused;
}

int main(void)
{
	pthread_t t;
	char line[64];
	printf("main %d\n", (int)getpid());
	fflush(stdout);
	if (pthread_create(&t, 0, chosen, 0))
		return 99;
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (!strcmp(line, "slow"))
			slow();
		else if (!strcmp(line, "crash"))
			crash_here();
		else if (!strncmp(line, "why ", 4))
			printf("asked %d\n", braid_trigger(line + 4));
		else
			step(100);
		printf("ok %u\n", (unsigned)strlen(line));
		fflush(stdout);
	}
	stop = 1;
	pthread_join(t, 0);
	return 0;
}
