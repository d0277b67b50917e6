/*
 * The program of the fault tests of braid watch. Threads beside the main one work all the time, each in its own numbers; the
 * main thread does what lines on stdin say. At the end each says what it has counted, so that a test can tell whether
 * anything came in between.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define METHOD __attribute__((noipa))

struct work {
	pthread_t thread;
	int number, pause; /* pause: us between two pieces; 0: none */
	uint64_t done;
	uint32_t sum;
};

static volatile int stop;

METHOD static void leaf(struct work *w)
{
	w->sum = w->sum * 1664525 + 1013904223;
	w->done++;
}

METHOD static void leaves(struct work *w, int n)
{
	for (int i = 0; i < n; i++)
		leaf(w);
}

METHOD static void *work(void *arg)
{
	struct work *w = arg;
	char name[16];
	snprintf(name, sizeof name, "work-%d", w->number);
	prctl(PR_SET_NAME, name);
	while (!stop) {
		leaves(w, 3);
		if (w->pause)
			usleep(w->pause);
	}
	return 0;
}

/* What lines ask for: methods of their own names, so that a trace tells which were done. */
METHOD static void before(struct work *w, int n) { leaves(w, n); }
METHOD static void after(struct work *w, int n) { leaves(w, n); }

METHOD static int next_line(char *line, int size)
{
	int got = fgets(line, size, stdin) != 0;
	line[strcspn(line, "\n")] = 0;
	return got;
}

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void say(const char *what, long n)
{
	printf("%s %ld\n", what, n);
	fflush(stdout);
}

METHOD static int child(void)
{
	struct work w = {.pause = 1000};
	signal(SIGTERM, on_term);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	say("child", getpid());
	work(&w);
	return w.done ? 0 : 97;
}

int main(int argc, char **argv)
{
	static struct work all[8], mine;
	char line[512] = "";
	int threads = argc > 1 ? atoi(argv[1]) : 0, pause = argc > 2 ? atoi(argv[2]) : 1000;

	if (argc > 1 && !strcmp(argv[1], "tiny")) {
		leaves(&mine, 100);
		return 0;
	}
	for (int i = 0; i < threads; i++) {
		all[i].number = i;
		all[i].pause = pause;
		if (pthread_create(&all[i].thread, 0, work, &all[i]))
			return 99;
	}
	say("main", getpid());
	pid_t pid = 0;
	while (next_line(line, sizeof line)) {
		int n = 0;
		if (sscanf(line, "before %d", &n) == 1) {
			before(&mine, n);
		} else if (sscanf(line, "after %d", &n) == 1) {
			after(&mine, n);
		} else if (!strncmp(line, "exec ", 5)) {
			execl(line + 5, line + 5, (char *)0);
			return 98;
		} else if (!strcmp(line, "fork")) {
			if (!(pid = fork()))
				exit(child());
		} else if (!strcmp(line, "reap")) {
			int status = 0;
			kill(pid, SIGTERM);
			waitpid(pid, &status, 0);
			n = status;
		}
		say("ok", n);
	}
	stop = 1;
	for (int i = 0; i < threads; i++) {
		pthread_join(all[i].thread, 0);
		printf("work-%d %llu %u\n", i, (unsigned long long)all[i].done, all[i].sum);
	}
	printf("mine-0 %llu %u\n", (unsigned long long)mine.done, mine.sum);
	say("done", threads);
	return 0;
}
