// Jumps out of signal handlers: of faults on an alternative stack, and of a timer's.
//
// tree: main{faults*3{touch!{handler!{leaf}}} leaf timer{spin!{on_alarm!{leaf}}} leaf raised{raised_handler{leaf}} leaf}
#include "construct.h"
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

static sigjmp_buf env;
static char stack[1 << 16];
static volatile int stop;
F int leaf(int x) { KEEP; return x + 1; }
F void handler(int s) { leaf(s); siglongjmp(env, s); }
F void touch(volatile int *p) { KEEP; *p = 1; KEEP; }
F int faults(void) {
	int s = sigsetjmp(env, 1);
	if (s) return s;
	touch((volatile int *)8);
	KEEP;
	return 0;
}
// Not traced, so that the signal finds no stub at work.
__attribute__((section(".text.braid_notrace"), noinline)) static void wait(void) { while (!stop) ; }
F void spin(void) { wait(); KEEP; }
F void on_alarm(int s) { leaf(s); siglongjmp(env, 5); }
F int timer(void) {
	int s = sigsetjmp(env, 1);
	if (s) return s;
	struct itimerval v = {.it_value = {.tv_usec = 1000}};
	setitimer(ITIMER_REAL, &v, 0);
	spin();
	KEEP;
	return 0;
}
F void raised_handler(int s) { leaf(s); KEEP; }
F int raised(void) { raise(SIGUSR1); KEEP; return 1; }

int main(void) {
	stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
	IS(!sigaltstack(&alternative, 0));
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	IS(!sigaction(SIGSEGV, &a, 0));
	for (int i = 0; i < 3; i++) IS(faults() == SIGSEGV);
	leaf(1);
	a.sa_handler = on_alarm;
	IS(!sigaction(SIGALRM, &a, 0));
	IS(timer() == 5);
	leaf(1);
	a.sa_handler = raised_handler;
	IS(!sigaction(SIGUSR1, &a, 0));
	IS(raised() == 1);
	leaf(1);
	return 0;
}
