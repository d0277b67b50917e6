package control

import (
	"strings"
	"sync/atomic"
	"time"
	"unicode"
)

// Trigger returns the last call of braid_trigger in the program: how many there were so far (it wraps), why, by which
// thread, and the counter of then. lost counts calls that found another one under way. A program that is killed within
// such a call leaves why, tid and at as they were then, possibly of two calls. why is at most 63 bytes of printable text.
func (a *Area) Trigger() (seq uint32, why string, tid int, at uint64, lost uint64) {
	h := a.hdr
	for deadline := time.Now().Add(settling); ; time.Sleep(look) {
		seq = atomic.LoadUint32(&h.TriggerSeq)
		free := atomic.LoadUint32(&h.TriggerLock) == 0
		text := h.TriggerWhy
		tid, at = int(atomic.LoadUint32(&h.TriggerTid)), atomic.LoadUint64(&h.TriggerAt)
		ordered()
		whole := free && atomic.LoadUint32(&h.TriggerLock) == 0 && seq == atomic.LoadUint32(&h.TriggerSeq)
		if whole || seq == 0 || time.Now().After(deadline) {
			text[len(text)-1] = 0
			return seq, printable(cString(text[:])), tid, at, atomic.LoadUint64(&h.TriggerLost)
		}
	}
}

// printable replaces what is no printable text: it comes from the program, and may be shown on a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
