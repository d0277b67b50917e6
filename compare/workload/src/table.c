/* All variants at all alignments. */
#include "traced.h"

#define VARIANTS(X)                                                                              \
	TRACED_ALIGNS(X, plain) TRACED_ALIGNS(X, stub) TRACED_ALIGNS(X, clock)                    \
	TRACED_ALIGNS(X, handler) TRACED_ALIGNS(X, gettime) TRACED_ALIGNS(X, usdt)                \
	TRACED_ALIGNS(X, nop5) TRACED_ALIGNS(X, push) TRACED_ALIGNS(X, other)

VARIANTS(TRACED_DECLARE)
const struct traced traced[] = { VARIANTS(TRACED_ENTRY) };
const int traced_count = sizeof traced / sizeof traced[0];
