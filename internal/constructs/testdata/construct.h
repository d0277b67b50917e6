// What all programs here use.
#ifndef CONSTRUCT_H
#define CONSTRUCT_H
#include <stdio.h>
#include <stdlib.h>

// F is a function that stays one, with its calls as written.
#ifdef __clang__
#define F __attribute__((noinline))
#else
#define F __attribute__((noipa))
#endif

// KEEP stands in every function, so that it has an effect; and behind a call that shall be no tail call.
#define KEEP __asm__ volatile("" ::: "memory")

// IS ends the program where it computes something wrong.
#define IS(...) \
	do { \
		if (!(__VA_ARGS__)) { \
			printf("line %d: %s\n", __LINE__, #__VA_ARGS__); \
			fflush(stdout); \
			_Exit(1); \
		} \
	} while (0)
#endif
