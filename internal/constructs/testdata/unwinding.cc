// Threads that end within C++ calls: the frames' destructors run on the way.
//
// flags: -pthread
// tree: main{leaf run{leaf} run{leaf} leaf}
// tree: exits~{deep~{Guard::Guard deep!{Guard::Guard deep!{Guard::Guard Guard::~Guard{leaf}} Guard::~Guard{leaf}} Guard::~Guard{leaf}}}
// tree: cancelled~{waits~{Guard::Guard leaf Guard::~Guard{leaf}}}
#include "construct.h"
#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

F int leaf(int x) { KEEP; return x + 1; }
struct Guard {
	F Guard() { KEEP; }
	F ~Guard() { leaf(1); KEEP; }
};
F void deep(int n) {
	Guard g;
	if (n == 0) pthread_exit(nullptr);
	deep(n - 1);
	KEEP;
}
F void *exits(void *p) { deep(2); KEEP; return p; }
static int pipes[2];
F void waits() {
	Guard g;
	try {
		if (write(pipes[1], "x", 1) == 1) for (;;) pause();
	} catch (abi::__forced_unwind &) {
		leaf(3);
		throw;
	}
	KEEP;
}
F void *cancelled(void *p) { waits(); KEEP; return p; }
F void run(void *(*f)(void *), bool cancel) {
	pthread_t t;
	char c;
	IS(!pthread_create(&t, nullptr, f, nullptr));
	if (cancel) {
		IS(read(pipes[0], &c, 1) == 1);
		pthread_cancel(t);
	}
	pthread_join(t, nullptr);
	leaf(1);
	KEEP;
}

int main() {
	IS(!pipe(pipes));
	leaf(1);
	run(exits, false);
	run(cancelled, true);
	leaf(1);
	return 0;
}
