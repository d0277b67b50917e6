/* Tells how often the functions of a program were called: each counts its calls here (calls.awk). */
#include <stdio.h>

unsigned long traced_calls;

__attribute__((destructor)) static void tell(void)
{
	printf("%lu\n", traced_calls);
}
