package arms

import (
	"context"

	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// Workloads whose calls do nothing else, those that have all variants, and those that a user's command does without.
var (
	nested     = []string{workload.Listing, workload.Call, workload.Matrix}
	called     = []string{workload.Listing, workload.Call, workload.Matrix, workload.Schedule, workload.IO}
	withWhole  = append([]string{workload.Startup}, called...)
	everywhere = append([]string{workload.Command}, withWhole...)
)

// The baseline, and once more, as its noise.
func init() {
	arm.Register(&arm.Arm{
		Name: "baseline", Title: "baseline", Group: result.GroupFloor, Order: 0, Quick: true,
		Open: opener(workload.Plain, nil),
	})
	arm.Register(&arm.Arm{
		Name: "baseline2", Title: "baseline, again", Group: result.GroupFloor, Order: 1, Quick: true,
		Open: opener(workload.Plain, nil),
	})
}

// opener opens sessions of a variant that needs nothing from outside.
func opener(v workload.Variant, facts map[string]string) func(context.Context, *arm.Env, arm.Work) (arm.Session, error) {
	return func(ctx context.Context, env *arm.Env, w arm.Work) (arm.Session, error) {
		p, err := env.Workloads.Start(ctx, workload.Start{Workload: w.Workload, Variant: v, CPU: w.CPU, Aligns: w.Aligns, Command: w.Command})
		if err != nil {
			return nil, err
		}
		return &plain{p: p, facts: facts, kept: v == workload.Handler || v == workload.GetTime}, nil
	}
}

// plain is a workload with what was compiled into it.
type plain struct {
	p     *workload.Process
	facts map[string]string
	kept  bool // it counts what it keeps
}

func (s *plain) Run(_ context.Context, r workload.Request) (arm.Measured, error) {
	reply, err := s.p.Run(r)
	m := arm.Measured{Reply: reply}
	if s.kept {
		m.Expected, m.Recorded = 2*uint64(reply.Calls), reply.Recorded
	}
	return m, err
}

func (s *plain) Facts() map[string]string { return s.facts }
func (s *plain) Close() error             { return s.p.Close() }
