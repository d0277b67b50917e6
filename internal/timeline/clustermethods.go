package timeline

// MethodPlaces sums where the calls of one method ran.
type MethodPlaces struct {
	// Self is of the time while no method that it called was open. Total is of the time while it was open, recursion
	// counted once.
	Self, Total Placed

	active uint32 // calls that are open in the thread being swept
}

// PlaceTable sums places by method index. The zero value is ready. One table may sum many threads, one after another, as
// long as they use the same Methods.
type PlaceTable struct {
	Rows []MethodPlaces // by method index
}

// placeFrame is an open method. The first one of a stack stands for being in none.
type placeFrame struct {
	method         uint32
	self, children Placed
}

// SumPlaces adds the places of a thread's calls to table. It decodes the thread's records once more: Sum pays nothing
// for processors, of which most traces have nothing to say.
func (j *Joiner) SumPlaces(segments Segments, activity *Activity, table *PlaceTable) error {
	if activity == nil || len(activity.Places) == 0 {
		return nil
	}
	places, stack := activity.Places, []placeFrame{{}}
	last, next := int64(minTime), 0
	return j.Edges(segments, func(edges []Edge) error {
		for i := range edges {
			e := &edges[i]
			self := &stack[len(stack)-1].self
			for k := next; k < len(places) && places[k].Start < e.Ns; k++ {
				self.add(&places[k], last, e.Ns)
				if places[k].End <= e.Ns && k == next {
					next++
				}
			}
			last = max(last, e.Ns)
			if n := int(e.Method) + 1; n > len(table.Rows) {
				table.Rows = append(table.Rows, make([]MethodPlaces, n-len(table.Rows))...)
			}
			if e.Begin {
				table.Rows[e.Method].active++
				stack = append(stack, placeFrame{method: e.Method})
			} else {
				stack = table.end(stack)
			}
		}
		return nil
	})
}

const minTime = -1 << 62

// end takes the innermost method from the stack.
func (t *PlaceTable) end(stack []placeFrame) []placeFrame {
	f := &stack[len(stack)-1]
	row := &t.Rows[f.method]
	row.Self.Add(&f.self)
	f.self.Add(&f.children)
	if row.active--; row.active == 0 {
		row.Total.Add(&f.self)
	}
	stack[len(stack)-2].children.Add(&f.self)
	return stack[:len(stack)-1]
}
