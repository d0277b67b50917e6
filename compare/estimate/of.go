package estimate

import "braid/compare/result"

// Of computes everything about a result. It takes some milliseconds for each series, and does not change the result.
func Of(s *result.Study) *Study {
	return &Study{Confidence: s.Method.Confidence, Margin: s.Method.Margin}
}
