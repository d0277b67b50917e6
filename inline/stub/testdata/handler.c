/* A traced signal handler interrupts a loop over a traced function: every call of both must be in the ring. */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#define N __attribute__((noinline))
static volatile int handled, done;
N void inside(int x) { __asm__ volatile("" : : "r"(x)); }
N void handler(int sig) { inside(sig); handled++; }
N int leaf(int x) { __asm__ volatile(""); return x + 1; }
int main(void)
{
	struct sigaction sa = {.sa_handler = handler};
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	int calls = 0;
	sigaction(SIGALRM, &sa, 0);
	setitimer(ITIMER_REAL, &often, 0);
	while (handled < 150 && calls < 20000000)
		calls += leaf(0);
	setitimer(ITIMER_REAL, &never, 0);
	printf("%d %d\n", calls, handled);
	return 0;
}
