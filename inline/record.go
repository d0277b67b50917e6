package inline

// The low 32 bits of a slot. Every other value is an entry, and is the low half of the method's pointer. A slot whose 64
// bits are all zero is none of them: it was reserved and never written.
const (
	// WordExit ends the innermost open method.
	WordExit uint32 = 0
	// WordEntryWide is an entry; the slot before it is the whole method pointer.
	WordEntryWide uint32 = 1
	// WordResumed says that control came back into the method whose pointer is in the slot before (an exception was
	// caught, longjmp, vfork): all methods above it have ended without an exit. Of several open calls of the method
	// it means the innermost.
	WordResumed uint32 = 2
	// WordEntryFramed is an entry; the slot before it is PackFrame of the method and of the stack pointer at the entry.
	// Methods that control can come back into write it.
	WordEntryFramed uint32 = 3
	// WordResumedFramed is WordResumed for a method that wrote WordEntryFramed; the slot before it is PackFrame of the
	// method and of the stack pointer where control came back, which tells the call.
	WordResumedFramed uint32 = 4
	// WordReservedMin and WordReservedMax bound the values that have no meaning yet.
	WordReservedMin uint32 = 5
	WordReservedMax uint32 = 15
)

// Double reports whether a record with this word has two slots.
func Double(word uint32) bool { return word-WordEntryWide <= WordResumedFramed-WordEntryWide }

// SlotSize is the length of a slot in bytes. Slots are aligned to it and little-endian.
const SlotSize = 8

// Kind says what an event is.
type Kind uint8

// The kinds of event. The first three are records; the others are what a resumed record did to the open methods. They
// come right before it, with its time.
const (
	KindEntry Kind = iota
	KindExit
	// KindResumed marks that control came back into the innermost open method. It changes nothing.
	KindResumed
	// KindUnwound ends the innermost open method, which never reached its exit.
	KindUnwound
	// KindSuspended ends the innermost open method for now: a KindReentered of the same segment goes on with it.
	KindSuspended
	// KindReentered goes on with a method that was suspended on another stack, or that was taken for unwound in an
	// earlier segment. It is on top of what is open, as an entry is.
	KindReentered

	// Within the decoder: records with a stack pointer, which is kept beside the events.
	kindEntryFramed
	kindResumedFramed
)

var kindNames = [...]string{"entry", "exit", "resumed", "unwound", "suspended", "reentered"}

// String is the kind's name in text output.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Pack makes a slot of the full counter, of which it keeps the low half, and a word.
func Pack(counter uint64, word uint32) uint64 {
	return counter<<32 | uint64(word)
}

// PackFrame makes the first slot of a framed record of the low halves of a method pointer and a stack pointer.
func PackFrame(method, sp uint64) uint64 {
	return sp<<32 | uint64(uint32(method))
}

// Narrow reports whether a method pointer can be told by its low half alone, that is, whether this half is not one of
// the words with a meaning of their own. A stub decides this when the program is loaded, by using the wide form.
func Narrow(method uint64) bool {
	return uint32(method) > WordReservedMax
}

// AppendEntry appends an entry of one slot, or of two if the method's low half does not allow one (see Narrow).
func AppendEntry(dst []uint64, counter, method uint64) []uint64 {
	if !Narrow(method) {
		return AppendEntryWide(dst, counter, method)
	}
	return append(dst, Pack(counter, uint32(method)))
}

// AppendEntryWide appends an entry of two slots, with the whole method pointer.
func AppendEntryWide(dst []uint64, counter, method uint64) []uint64 {
	return append(dst, method, Pack(counter, WordEntryWide))
}

// AppendEntryFramed appends an entry with the stack pointer at the entry.
func AppendEntryFramed(dst []uint64, counter, method, sp uint64) []uint64 {
	return append(dst, PackFrame(method, sp), Pack(counter, WordEntryFramed))
}

// AppendExit appends an exit.
func AppendExit(dst []uint64, counter uint64) []uint64 {
	return append(dst, Pack(counter, WordExit))
}

// AppendResumed appends the record of control coming back into method.
func AppendResumed(dst []uint64, counter, method uint64) []uint64 {
	return append(dst, method, Pack(counter, WordResumed))
}

// AppendResumedFramed appends the record of control coming back into the call of method whose frame holds sp.
func AppendResumedFramed(dst []uint64, counter, method, sp uint64) []uint64 {
	return append(dst, PackFrame(method, sp), Pack(counter, WordResumedFramed))
}
