package stub

// processor is what the inserter needs to know of an instruction set and of its calling convention.
type processor interface {
	// parse reads one instruction line.
	parse(text string) instr
	// unfit says why a part can't carry stubs, or "".
	unfit(p *part) string
	// entry writes the stub of a part's entry.
	entry(p *part)
	// instruction writes one instruction of a part that gets stubs, with the stub that belongs before or behind it.
	instruction(p *part, i *instr, raw []byte, text string)
	// pad writes code that records that control came back to target, and jumps there. It belongs out of line.
	pad(p *part, pad, target string)
	// entryState is how a frame is found while a function has not made one, or has given it back.
	entryState() cfiState
	// fallback defines the weak symbols that stubs need where no runtime is linked.
	fallback()
	// comment begins a comment that reaches to the end of its line.
	comment() string
}

// kind says what an instruction does to the flow of control.
type kind uint16

const (
	kindReturn  kind = 1 << iota // leaves the function, to the caller
	kindJump                     // goes elsewhere
	kindAlways                   // a jump or return without a condition
	kindCall                     // comes back behind itself
	kindTail                     // a jump that leaves the function (a sibling call)
	kindTwice                    // a call that can come back a second time
	kindStop                     // never gets to what follows
	kindOpaque                   // inline assembly, or not understood
	kindPadding                  // does nothing
	kindLanding                  // marks where indirect branches may land (endbr64, bti)
)

func (k kind) is(what kind) bool { return k&what != 0 }

// instr is one instruction of a part, with what is needed of it to follow control flow.
type instr struct {
	op      string // mnemonic, prefixes taken off
	args    string // operands as text
	pattern string // gcc's name for it, if -dp left one
	kind    kind
	index   int32 // in its part
}

// returnsTwice reports whether a function can come back a second time, after a jump out of methods that will then never
// see their exit, or from another stack.
func returnsTwice(symbol string) bool {
	switch symbol {
	case "setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "savectx", "vfork", "__vfork", "getcontext",
		"__getcontext", "swapcontext", "__swapcontext":
		return true
	}
	return false
}

// isThunk recognises the compilers' own helpers that are called like functions, but with more registers alive than a
// function's entry has.
func isThunk(name string) bool {
	for _, p := range []string{"__x86_indirect_thunk", "__x86_return_thunk", "__x86_indirect_call_thunk", "__llvm_retpoline",
		"__llvm_lvi_thunk", "__llvm_slsblr_thunk", "__call_indirect_", "OUTLINED_FUNCTION_", "__x86.get_pc_thunk", "__hwasan_check_"} {
		if len(name) >= len(p) && name[:len(p)] == p {
			return true
		}
	}
	return false
}
