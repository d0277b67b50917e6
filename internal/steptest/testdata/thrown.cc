// Exceptions through frames with and without cleanups.
#include "targets.h"

static volatile long cleaned;

struct cleaner {
	~cleaner() { cleaned = cleaned + 1; }
};

extern "C" TARGET long thrower(long a)
{
	if (a == 11)
		throw a;
	return a;
}

extern "C" TARGET long cleaning(long a)
{
	cleaner c;
	return thrower(a) + 1;
}

extern "C" TARGET long catcher(long a)
{
	try {
		return cleaning(a);
	} catch (long b) {
		return b + 100;
	}
}

extern "C" TARGET long again(long a)
{
	try {
		return cleaning(a);
	} catch (...) {
		throw;
	}
}

extern "C" TARGET long passer(long a)
{
	try {
		return again(a);
	} catch (...) {
		return 5;
	}
}
