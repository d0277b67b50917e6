#include "textflag.h"

// func now() uint64
// The barriers keep the read in its place: a processor may read the counter earlier or later than the loads around it
// (Arm Architecture Reference Manual, "The Generic Timer").
TEXT ·now(SB), NOSPLIT, $0-8
	ISB  $15
	MRS  CNTVCT_EL0, R0
	ISB  $15
	MOVD R0, ret+0(FP)
	RET

// func hz() uint64
TEXT ·hz(SB), NOSPLIT, $0-8
	MRS  CNTFRQ_EL0, R0
	MOVD R0, ret+0(FP)
	RET
