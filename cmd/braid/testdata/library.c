/* A traced library, under several names: -DWORK=NAME. */
static volatile long sum;

__attribute__((noinline)) static void leaf(long i) { sum += i; }

__attribute__((noinline)) void WORK(long n)
{
	for (long i = 0; i < n; i++)
		leaf(i);
}

void work(long n) { WORK(n); }
