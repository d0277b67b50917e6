package arms

import (
	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// Calls at entries and returns, made by the compiler (-finstrument-functions), to the smallest handler there can be.
func init() {
	arm.Register(&arm.Arm{
		Name: "handler", Title: "compiled-in call, minimal handler", Group: result.GroupCompiled, Order: 0, Points: 2, Quick: true, Workloads: withWhole,
		Open: opener(workload.Handler, map[string]string{"build": "gcc -finstrument-functions", "record": "16 bytes"}),
	})
}
