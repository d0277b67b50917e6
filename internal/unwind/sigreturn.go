package unwind

// The frame that arm64 Linux puts on the stack for a signal handler (arch/arm64/kernel/signal.c struct rt_sigframe and
// include/uapi/asm/sigcontext.h, Linux 6.12): siginfo, 128 bytes; ucontext, whose uc_mcontext begins at 176; there the fault's address, x0 to
// x30, sp, pc. The vdso's unwind tables leave its trampoline out since Linux 5.8, so it is known by its code.
const (
	arm64SigRegs = 128 + 176 + 8
	arm64SigPC   = arm64SigRegs + 8*32
)

// trampoline reports whether a signal handler's return address is that of the trampoline.
func (w *Walker) trampoline(pc uint64, code Code) bool {
	return code.Trampoline || w.Find(pc).Trampoline
}

// sigreturn makes regs those that the signal interrupted.
func (w *Walker) sigreturn(regs *Regs, mem Memory) (End, bool) {
	sp := regs.R[w.Arch.sp]
	var next Regs
	for i := range 32 { // sp follows x30, and is DWARF's register 31
		v, ok := mem.Word(sp + arm64SigRegs + uint64(i)*8)
		if !ok {
			return Cut, false
		}
		next.R[i] = v
	}
	pc, ok := mem.Word(sp + arm64SigPC)
	if !ok {
		return Cut, false
	}
	next.PC = w.Arch.Strip(pc)
	*regs = next
	return Complete, true
}
