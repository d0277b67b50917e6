package inline

// The low 32 bits of a slot. Every other value is an entry, and is the low half of the method's pointer.
const (
	// WordExit ends the innermost open method.
	WordExit uint32 = 0
	// WordEntryWide is an entry; the slot before it is the whole method pointer.
	WordEntryWide uint32 = 1
	// WordResumed says that control came back into the method whose pointer is in the slot before (an exception was
	// caught, longjmp, vfork): all methods above it have ended without an exit.
	WordResumed uint32 = 2
	// WordReservedMin and WordReservedMax bound the values that have no meaning yet.
	WordReservedMin uint32 = 3
	WordReservedMax uint32 = 15
)

// SlotSize is the length of a slot in bytes. Slots are aligned to it and little-endian.
const SlotSize = 8

// Kind says what a record is.
type Kind uint8

// The kinds of record.
const (
	KindEntry Kind = iota
	KindExit
	KindResumed
)

// String is the kind's name in text output.
func (k Kind) String() string {
	switch k {
	case KindEntry:
		return "entry"
	case KindExit:
		return "exit"
	case KindResumed:
		return "resumed"
	}
	return "invalid"
}

// Pack makes a slot of the full counter, of which it keeps the low half, and a word.
func Pack(counter uint64, word uint32) uint64 {
	return counter<<32 | uint64(word)
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

// AppendExit appends an exit.
func AppendExit(dst []uint64, counter uint64) []uint64 {
	return append(dst, Pack(counter, WordExit))
}

// AppendResumed appends the record of control coming back into method.
func AppendResumed(dst []uint64, counter, method uint64) []uint64 {
	return append(dst, method, Pack(counter, WordResumed))
}
