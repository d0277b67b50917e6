package arms

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"

	"braid/compare/arm"
	"braid/compare/workload"
)

// named returns an arm.
func named(t *testing.T, name string) *arm.Arm {
	t.Helper()
	for _, a := range arm.All() {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("there is no arm %s", name)
	return nil
}

func studied(t *testing.T) *arm.Env {
	t.Helper()
	dir := t.TempDir()
	set, err := workload.Unpack(dir, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	return &arm.Env{Dir: dir, Workloads: set, Root: os.Getuid() == 0, Cache: map[string]string{}}
}

// TestCompiledArmsCountExactly: each arm that is compiled in records two events for each call, whatever the workload, and those
// that record nothing say so. Rings come round meanwhile.
func TestCompiledArmsCountExactly(t *testing.T) {
	recorders := []string{"stub-on", "stub-on-kernel", "handler", "gettime"}
	env := studied(t)
	for _, name := range append([]string{"baseline", "baseline2", "clock", "stub-off"}, recorders...) {
		a := named(t, name)
		if a.Check != nil {
			if err := a.Check(t.Context(), env); err != nil {
				t.Fatal(err)
			}
		}
		for _, load := range []struct {
			name string
			runs []workload.Request
		}{
			{workload.Listing, []workload.Request{{Calls: 1009}, {Calls: 1_000_003, Align: 48}, {Parameter: 10, Calls: 10_007, Align: 16}}},
			{workload.Matrix, []workload.Request{{Parameter: 16, Calls: 100_003}, {Parameter: 2048, Calls: 3_000_001, Align: 32}}},
			{workload.Schedule, []workload.Request{{Calls: 997}, {Calls: 503}}},
			{workload.IO, []workload.Request{{Calls: 7}, {Calls: 5}}},
			{workload.Startup, []workload.Request{{Calls: 1}, {Calls: 1}}},
		} {
			if a.Workloads != nil && !slices.Contains(a.Workloads, load.name) {
				continue
			}
			t.Run(name+"/"+load.name, func(t *testing.T) {
				s, err := a.Open(t.Context(), env, arm.Work{Workload: load.name, CPU: 0, Aligns: []int{0, 16, 32, 48}})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range load.runs {
					m, err := s.Run(t.Context(), r)
					if err != nil {
						t.Fatal(err)
					}
					if m.Calls < r.Calls || m.WallNS <= 0 || m.CPUNS <= 0 {
						t.Errorf("%+v: %+v", r, m)
					}
					want := 2 * uint64(m.Calls)
					if !slices.Contains(recorders, name) {
						want = 0
					}
					if m.Expected != m.Recorded || m.Expected < want || name != "stub-on-kernel" && m.Expected != want {
						t.Errorf("%+v: %d events expected, %d recorded; it has %d trace points", r, m.Expected, m.Recorded, want)
					}
					if name == "stub-on-kernel" && load.name == workload.Schedule && m.Recorded < want+uint64(m.Calls)/2 {
						t.Errorf("%+v: %d events recorded: too few context switches", r, m.Recorded-want)
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestOrdinaryCommand: a command that was built without stubs is measured, but not by the stub's arms.
func TestOrdinaryCommand(t *testing.T) {
	env := studied(t)
	w := arm.Work{Workload: workload.Command, CPU: -1, Command: []string{"/bin/true"}}
	s, err := named(t, "baseline").Open(t.Context(), env, w)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.Run(t.Context(), workload.Request{Calls: 3}); err != nil || m.Calls != 3 {
		t.Errorf("%+v, %v", m, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	_, err = named(t, "stub-on").Open(t.Context(), env, w)
	if u := (*arm.Unavailable)(nil); !errors.As(err, &u) {
		t.Errorf("the stub's arm on /bin/true: %v", err)
	}
}

// TestCommandWithStubs: a command that was built with stubs is recorded, each time anew.
func TestCommandWithStubs(t *testing.T) {
	env := studied(t)
	w := arm.Work{Workload: workload.Command, CPU: 0, Command: []string{env.Workloads.Path(workload.Startup, workload.Stub), "-e", "return #tostring(1)"}}
	s, err := named(t, "stub-on").Open(context.Background(), env, w)
	if err != nil {
		t.Fatal(err)
	}
	var first uint64
	for range 3 {
		m, err := s.Run(t.Context(), workload.Request{Calls: 2})
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = m.Recorded
		}
		if m.Calls != 2 || m.Recorded != first || m.Recorded < 1000 || m.Expected != m.Recorded {
			t.Errorf("%+v", m)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
