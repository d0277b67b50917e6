// Ends of threads within calls: forced unwinding, which in C runs no code of the functions that it ends, but for cleanup
// handlers. Nothing says where the last frames ended: what runs after them is called by the last that a record names.
//
// flags: -pthread -fexceptions
// tree: main{leaf start{leaf} start{leaf} start{leaf} start{leaf} leaf}
// tree: returns{leaf}
// tree: exits~{deep~{deep~{leaf clean{leaf} key{leaf}}}}
// tree: cancelled~{waits~{leaf clean{leaf} key{leaf}}}
// tree: detached{leaf}
#include "construct.h"
#include <pthread.h>
#include <unistd.h>

static pthread_key_t key_;
F int leaf(int x) { KEEP; return x + 1; }
F void clean(void *p) { leaf(1); KEEP; }
F void key(void *p) { leaf(2); KEEP; }
F void *returns(void *p) { leaf(1); KEEP; return p; }
F void deep(int n) {
	if (n == 0) {
		leaf(n);
		pthread_cleanup_push(clean, 0);
		pthread_exit((void *)5);
		pthread_cleanup_pop(1);
	}
	deep(n - 1);
	KEEP;
}
F void *exits(void *p) { pthread_setspecific(key_, p); deep(1); KEEP; return p; }
static int pipes[2];
F void waits(void) {
	char c;
	leaf(3);
	pthread_cleanup_push(clean, 0);
	if (write(pipes[1], "x", 1) == 1) for (;;) pause();
	pthread_cleanup_pop(1);
	KEEP;
}
F void *cancelled(void *p) { pthread_setspecific(key_, p); waits(); KEEP; return p; }
F void *detached(void *p) { leaf(1); KEEP; return p; }
F void *start(void *(*f)(void *), int cancel) {
	pthread_t t;
	void *r;
	char c;
	IS(!pthread_create(&t, 0, f, &t));
	if (cancel) {
		IS(read(pipes[0], &c, 1) == 1);
		pthread_cancel(t);
	}
	pthread_join(t, &r);
	leaf(1);
	KEEP;
	return r;
}

int main(void) {
	IS(!pthread_key_create(&key_, key));
	IS(!pipe(pipes));
	leaf(1);
	IS(start(returns, 0) != 0);
	IS(start(exits, 0) == (void *)5);
	IS(start(cancelled, 1) == PTHREAD_CANCELED);
	IS(start(detached, 0) != 0);
	leaf(1);
	return 0;
}
