#include "pantry.h"
#include <stdio.h>

int jars(int n); /* in C++ */

int main(void)
{
	int all = 0;
	for (int i = 0; i < 7; i++)
		all += sum(i, 1);
	for (int i = 0; i < 11; i++)
		all += shelf(i);
	printf("%d\n", all + jars(13));
	return 0;
}
