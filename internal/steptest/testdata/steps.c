/* Calls one function after another for a tracer, which stops it at the marks (marks.S) and says what to do in "order". */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h"

extern void ready(void), after(void);

struct order {
	long end;     /* 1: there is no more to do */
	long target;  /* the address of what is called */
	long handler; /* HANDLER_... for SIGUSR1 */
	long flags;   /* of sigaction */
	long warm;    /* calls of warm() before, which put the thread into a place in its ring */
	long land;    /* 1: from within landing(), so that a handler may jump there */
	long thread;  /* 1: in a new thread */
} order;

enum { HANDLER_PLAIN, HANDLER_TRACED, HANDLER_JUMP, HANDLER_TRACED_JUMP, HANDLER_EXIT, HANDLER_TRACED_EXIT };

TARGET void warm(void) { __asm__ volatile(""); }
TARGET void closing(void) { __asm__ volatile(""); }
TARGET long inner(long a) { return a + 1; }

static volatile long handled;
static sigjmp_buf land;

static UNTRACED void on_plain(int s) { handled += s; }
TARGET void on_signal(int s) { handled += inner(inner(s)); }
static UNTRACED void on_jump(int s) { handled += s; siglongjmp(land, 1); }
TARGET void on_traced_jump(int s) { handled += inner(s); siglongjmp(land, 1); }
static UNTRACED void on_exit_thread(int s) { handled += s; pthread_exit(0); }
TARGET void on_traced_exit(int s) { handled += inner(s); pthread_exit(0); }

TARGET void landing(void)
{
	if (!sigsetjmp(land, 1))
		invoke((void *)order.target);
}

static UNTRACED void *body(void *stack)
{
	stack_t s = {.ss_sp = stack, .ss_size = 65536};
	sigaltstack(&s, 0);
	for (long i = 0; i < order.warm; i++)
		warm();
	if (order.land)
		landing();
	else
		invoke((void *)order.target);
	after();
	closing(); /* answers the tracer's request to stop */
	return 0;
}

UNTRACED int main(void)
{
	static void (*const handlers[])(int) = {on_plain, on_signal, on_jump, on_traced_jump, on_exit_thread, on_traced_exit};
	static char mine[65536], others[65536];
	warm(); /* registers the thread */
	for (;;) {
		ready();
		if (order.end)
			return 0;
		struct sigaction a = {.sa_handler = handlers[order.handler], .sa_flags = order.flags};
		sigaction(SIGUSR1, &a, 0);
		if (!order.thread) {
			body(mine);
			continue;
		}
		pthread_t t;
		if (pthread_create(&t, 0, body, others) || pthread_join(t, 0))
			abort();
	}
}
