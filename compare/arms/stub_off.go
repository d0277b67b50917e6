package arms

import (
	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// braid's stubs, compiled in, and nobody records.
func init() {
	arm.Register(&arm.Arm{
		Name: "stub-off", Title: "stub, off", Group: result.GroupInline, Order: 0, Points: 2, Quick: true, Workloads: withWhole,
		Open: opener(workload.Stub, nil),
	})
}
