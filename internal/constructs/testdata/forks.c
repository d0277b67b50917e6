// fork, vfork and exec. A child made by vfork records in its parent's ring until it executes or ends, and the parent is
// then where it was.
//
// flags: -pthread
// variants: -static
// tree: main{leaf quick{leaf child!{leaf}} leaf runs{leaf} leaf split{leaf} threaded leaf}
// tree: leaf leaf
// tree: leaf
// tree: body{leaf split{leaf}}
#include "construct.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

F int leaf(int x) { KEEP; return x + 1; }
F void child(int x) { leaf(x); _exit(x); }
F int quick(void) {
	pid_t p = vfork();
	if (!p) {
		leaf(1);
		child(7);
	}
	int status;
	waitpid(p, &status, 0);
	KEEP;
	return WEXITSTATUS(status);
}
F int runs(void) {
	pid_t p = vfork();
	if (!p) {
		leaf(1);
		execl("/bin/false", "false", (char *)0);
		_exit(9);
	}
	int status;
	waitpid(p, &status, 0);
	KEEP;
	return WEXITSTATUS(status);
}
F int split(int code) {
	pid_t p = fork();
	if (!p) {
		leaf(1);
		if (code == 3) leaf(2);
		_exit(code);
	}
	int status;
	waitpid(p, &status, 0);
	leaf(1);
	KEEP;
	return WEXITSTATUS(status);
}
F void *body(void *p) { leaf(1); int r = split(4); KEEP; return (void *)(long)r; }
F int threaded(void) {
	pthread_t t;
	void *r;
	pthread_create(&t, 0, body, 0);
	pthread_join(t, &r);
	KEEP;
	return (long)r;
}

int main(void) {
	leaf(1);
	IS(quick() == 7);
	leaf(1);
	IS(runs() == 1);
	leaf(1);
	IS(split(3) == 3);
	IS(threaded() == 4);
	leaf(1);
	return 0;
}
