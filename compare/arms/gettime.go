package arms

import (
	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// The same handler, which asks the C library for the time in place of the processor.
func init() {
	arm.Register(&arm.Arm{
		Name: "gettime", Title: "the same, with clock_gettime", Group: result.GroupCompiled, Order: 1, Points: 2, Workloads: called,
		Open: opener(workload.GetTime, map[string]string{"build": "gcc -finstrument-functions", "record": "16 bytes", "clock": "CLOCK_MONOTONIC"}),
	})
}
