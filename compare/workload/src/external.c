/* The traced functions as another compiler or tracer makes them: one variant, called plain, at all alignments. */
#define VARIANT plain
#define ALIGN 0
#include "traced.c"
#undef ALIGN
#define ALIGN 16
#include "traced.c"
#undef ALIGN
#define ALIGN 32
#include "traced.c"
#undef ALIGN
#define ALIGN 48
#include "traced.c"

const struct traced traced[] = { TRACED_ALIGNS(TRACED_ENTRY, plain) };
const int traced_count = sizeof traced / sizeof traced[0];
