package timeline

import "braid/inline"

// MethodTotals sums the calls of one method.
type MethodTotals struct {
	Calls uint64 // entries; a method that was open when recording began is not counted
	Cut   uint64 // slices whose beginning or end was not recorded
	// Unwound calls ended without an exit: by an exception, longjmp, or for good on another stack.
	Unwound uint64
	// Self is the time while no method that it called was open. Total is the time while it was open: within
	// recursion only the outermost call counts, so that no time counts twice.
	Self, Total Split

	active uint32 // calls that are open in the thread being swept
}

// MethodTable sums calls by method index. The zero value is ready. One table may sum many threads, one after another,
// as long as they use the same Methods.
type MethodTable struct {
	Rows []MethodTotals // by method index
}

func (t *MethodTable) grow(n int) {
	if n > len(t.Rows) {
		t.Rows = append(t.Rows, make([]MethodTotals, n-len(t.Rows))...)
	}
}

func (t *MethodTable) push(method uint32, flags SliceFlags) {
	r := &t.Rows[method]
	r.active++
	if flags&(inline.CutStart|inline.Reentered) == 0 {
		r.Calls++
	}
}

// ended counts a slice that has flags.
func (t *MethodTable) ended(method uint32, flags SliceFlags) {
	r := &t.Rows[method]
	if flags&(inline.CutStart|inline.CutEnd) != 0 {
		r.Cut++
	}
	if flags&inline.Unwound != 0 {
		r.Unwound++
	}
}

// popSingle ends a call whose whole time is in one state.
func (t *MethodTable) popSingle(method uint32, self, total int64, state State, ioWait bool) {
	r := &t.Rows[method]
	r.active--
	if r.active > 0 {
		total = 0
	}
	r.Self.Ns[state] += self
	r.Total.Ns[state] += total
	if ioWait {
		r.Self.IOWaitNs += self
		r.Total.IOWaitNs += total
	}
}

func (t *MethodTable) pop(method uint32, self, total *Split) {
	r := &t.Rows[method]
	r.active--
	r.Self.Add(self)
	if r.active == 0 {
		r.Total.Add(total)
	}
}
