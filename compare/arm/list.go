package arm

import (
	"cmp"
	"slices"

	"braid/compare/result"
)

// Groups in the order in which they are shown.
var Groups = []string{result.GroupFloor, result.GroupInline, result.GroupCompiled, result.GroupProbe, result.GroupExternal}

// All returns every registered arm in the order in which they are shown: by group, by Order, by name. The slice is the caller's.
func All() []*Arm {
	out := slices.Clone(all)
	Sort(out)
	return out
}

// Sort puts arms into the order in which they are shown. Groups that are not known come last.
func Sort(arms []*Arm) {
	group := func(a *Arm) int {
		if i := slices.Index(Groups, a.Group); i >= 0 {
			return i
		}
		return len(Groups)
	}
	slices.SortStableFunc(arms, func(a, b *Arm) int {
		return cmp.Or(cmp.Compare(group(a), group(b)), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name, b.Name))
	})
}

// Keys of Session.Facts that go to fields of result.Arm.
const (
	FactSite      = "site"      // the probed instruction, as text
	FactClass     = "class"     // its class
	FactEstimated = "estimated" // why events can't be counted exactly; samples of such an arm are not thrown away for their counts
)
