// A program of two files: main.c calls into part.c. Prints a result that depends on both.
#include <stdio.h>
#include "part.h"

static int twice(int x) { return 2 * x; }

int main(int argc, char **argv) {
	(void)argv;
	printf("%d\n", part(twice(argc + 20)));
	return 0;
}
