/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the library that carries keep.c. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *l = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
	int (*keep)(void) = l ? (int (*)(void))dlsym(l, "keep_main") : 0;
	if (!keep)
		puts(l ? "no keep_main" : "no library");
	return keep ? keep() : 1;
}
