/* An app's own code: a main thread with frames, a RenderThread, two threads of the binder pool. See zygote.c. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "braid.h"

#define METHOD __attribute__((noipa)) /* and so not cloned either */

static volatile uint32_t sum;
static int frames;

METHOD static void draw(void) { sum = sum * 1664525 + 1013904223; }
METHOD static void on_start(void) { draw(); }
METHOD static void on_frame(void) { draw(); }
METHOD static void render_frame(void) { draw(); }
METHOD static void on_transact(void) { draw(); }
METHOD static void daemon_step(void) { draw(); }

static void pause_us(int us)
{
	struct timespec t = {0, us * 1000L};
	nanosleep(&t, 0);
}

static void repeat(void (*f)(void), int us)
{
	for (int i = 0; !frames || i < frames; i++) {
		f();
		pause_us(us);
	}
}

static void *render(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "RenderThread");
	repeat(render_frame, 500);
	return 0;
}

static void *serve(void *name)
{
	prctl(PR_SET_NAME, name);
	repeat(on_transact, 700);
	return 0;
}

/* Ends as a daemon does: in a session of its own, with its parents gone. */
static void leave_daemon(void)
{
	if (fork())
		return;
	setsid();
	if (fork())
		_exit(0);
	prctl(PR_SET_NAME, "left-behind");
	repeat(daemon_step, 500);
	_exit(0);
}

void app_main(const char *name, int n, const char *how)
{
	frames = n;
	if (strchr(how, 'r'))
		while (!braid_trigger("started"))
			pause_us(1000);
	on_start();
	if (strchr(how, 'd'))
		leave_daemon();
	char pool[2][16];
	pthread_t t[3];
	pthread_create(&t[0], 0, render, 0);
	for (int i = 0; i < 2; i++) {
		snprintf(pool[i], sizeof(pool[i]), "Binder:%d_%d", getpid(), i + 1);
		pthread_create(&t[1 + i], 0, serve, pool[i]);
	}
	repeat(on_frame, 500);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	fprintf(stdout, "%s %d\n", strchr(name, ':') ? "component" : "app", getpid());
	fflush(stdout);
}
