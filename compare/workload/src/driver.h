/* How the driver's files call each other. */
#ifndef DRIVER_H
#define DRIVER_H
#include "traced.h"

struct request {
	long long parameter, align, calls, skip;
};

/* Times in ns. */
struct reply {
	long long calls, wall, cpu, misses, bytes, kept;
};

/* Answers with an error in place of a result; the program waits for the next request. Returns -1. */
int failed(const char *what);
long long nanoseconds(int clock);
int run_program(const struct request *r, struct reply *a, char **command, char **environment);
#endif
