package arms

import (
	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// The bare read of the counter, in the places of the stubs: no trace point that says when can be cheaper.
func init() {
	arm.Register(&arm.Arm{
		Name: "clock", Title: "bare clock read", Group: result.GroupFloor, Order: 2, Points: 2, Quick: true, Workloads: called,
		Open: opener(workload.Clock, map[string]string{"records": "nothing"}),
	})
}
