package estimate

import (
	"math"

	"braid/compare/result"
	"braid/compare/stats"

	"gonum.org/v1/gonum/stat/distuv"
)

// Width is a quick look at an interval, for deciding whether more samples are needed.
type Width struct {
	Launches    int
	Added, Base float64 // ns a call: the median difference to the baseline, and the baseline
	Half        float64 // half the interval's width of Added, roughly
}

// WidthOf looks at an arm's samples beside its baseline's. It is what the bootstrap would find for a normal distribution, at a
// thousandth of its time.
func WidthOf(arm, base *result.Series, wall bool, confidence float64) Width {
	p := observe(arm, base, wall)
	n := len(p.launches)
	if n < 2 {
		return Width{Launches: n, Half: math.Inf(1)}
	}
	t := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(1 - (1-confidence)/2)
	// The median of a normal distribution's values varies by sqrt(pi/2) more than their mean.
	half := t * math.Sqrt(math.Pi/2) * stats.MAD(p.of(difference)) / math.Sqrt(float64(n))
	return Width{Launches: n, Added: stats.Median(p.of(difference)), Base: stats.Median(p.of(baseTime)), Half: half}
}
