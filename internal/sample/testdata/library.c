/* A library that is deleted while it is in use. */
volatile int spins;

void spin(void (*call)(void))
{
	call();
	spins++;
}
