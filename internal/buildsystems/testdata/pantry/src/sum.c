#include "pantry.h"
#include "configured.h"

int sum(int a, int b)
{
	return a + b * WEIGHT;
}
