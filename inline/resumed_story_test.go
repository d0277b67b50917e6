package inline

// resumedStories are about control that comes back without exits.
var resumedStories = []story{
	{"caught", "D throws, A catches: B, C and D end when A is resumed", storyStart, 0, func() *writer {
		w := newStory()
		w.step("ABCD")
		w.now += 500
		w.resumed(3)
		w.step("E))")
		return w
	}},
	{"caught-below", "B throws to a method that was entered before the ring's start, which then ends", storyStart, 5, func() *writer {
		w := newStory()
		w.step("ZAB")
		w.now += 50
		w.resumed(2)
		w.step("C))")
		return w
	}},
	{"recursion", "A calls itself; longjmp goes to its second call, as the stack pointer says", storyStart, 0, func() *writer {
		w := newStory()
		w.step("aaBaaC4)D))")
		return w
	}},
	{"cleanups", "D throws; C and B destroy objects on the way, A catches", storyStart, 0, func() *writer {
		w := newStory()
		w.step("abcD1X)1Y)1Z))")
		return w
	}},
	{"rethrow", "C throws, B catches and throws again, which ends its handler in a landing pad of its own; A catches", storyStart, 0, func() *writer {
		w := newStory()
		w.step("abC1H)01H))")
		return w
	}},
	{"coroutine", "R resumes a coroutine C, which yields twice and ends", storyStart, 0, func() *writer {
		w := newStory()
		w.step("Ar")
		w.start(1)
		w.step("Cy")
		for range 2 {
			w.now += 100
			w.swap(0) // into R, which returns and is called again
			w.step(")r")
			w.now += 100
			w.swap(1) // into Y, which returns
			w.step(")")
			w.step("Y)y")
		}
		w.step("))")
		w.now += 100
		w.back() // C has ended: its stack's link leads to R
		w.step("))")
		return w
	}},
	{"symmetric", "coroutines B and C switch to each other and then to their starter A", storyStart, 0, func() *writer {
		w := newStory()
		w.step("a")
		w.start(1)
		w.step("By")
		w.start(2)
		w.step("Cy")
		for _, to := range []int{1, 2, 1, 0, 2, 0, 1} {
			w.now += 100
			w.swap(to)
			if to > 0 {
				w.step(")y")
			}
		}
		return w
	}},
	{"resumed-lost", "the ring begins after the entry that control comes back into; a later call of A is not mistaken for it", storyStart, 9, func() *writer {
		w := newStory()
		w.step("aBCa")
		w.now += 50
		w.resumed(3)
		w.step("D))")
		return w
	}},
	{"two-stacks", "A on a coroutine's stack lies above A on the thread's: the nearest one above the stack pointer is meant", storyStart, 0, func() *writer {
		w := newStory()
		w.step("sab")
		w.start(3)
		w.step("Cab")
		w.now += 100
		w.resumed(1)
		w.now += 100
		w.swap(0)
		w.step("1)")
		return w
	}},
}

// unwrittenStories are about slots that were reserved and never written.
var unwrittenStories = []story{
	{"unwritten", "a signal handler H leaves a trace point for good between A and B, once for one slot and once for two", storyStart, 0, func() *writer {
		w := newStory()
		w.step("a")
		w.unwritten(0)
		w.step("H1B)")
		w.unwritten(0, 0)
		w.step("H1)")
		return w
	}},
	{"unwritten-end", "the thread was killed in a trace point", storyStart, 0, func() *writer {
		w := newStory()
		w.step("AB)")
		w.unwritten(0)
		return w
	}},
	{"stale", "a slot that was reserved only holds what the lap before left there, 2^30 ticks earlier", storyStart, 0, func() *writer {
		w := newStory()
		w.step("AB)")
		w.unwritten(Pack(w.now-1<<30, 0x40_0460))
		w.step("C)B)")
		w.unwritten(PackFrame(0x40_0470, 0x7fff_1234_5678), Pack(w.now-1<<30, WordEntryFramed))
		w.step("C))")
		return w
	}},
	{"half-written", "a trace point wrote the first of its two slots", storyStart, 0, func() *writer {
		w := newStory()
		w.step("AB)")
		w.unwritten(PackFrame(0x40_0470, 0x7fff_1234_5678), 0)
		w.step("C))")
		return w
	}},
}
