package arms

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

func environment(t *testing.T) *arm.Env {
	t.Helper()
	dir := t.TempDir()
	set, err := workload.Unpack(dir, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	arms := dir + "/arms"
	if err := os.Mkdir(arms, 0o700); err != nil {
		t.Fatal(err)
	}
	return &arm.Env{Dir: arms, Workloads: set, Root: true, Ring: 1 << 20, Cache: map[string]string{}}
}

func external() (out []*arm.Arm) {
	for _, a := range arm.All() {
		if a.Group == result.GroupExternal {
			out = append(out, a)
		}
	}
	return out
}

// Every tracer of others traces real calls, and the events that it then counts are those that were made, at each alignment and
// with each number of calls, also while the others are at work.
func TestExternalCounts(t *testing.T) {
	env := environment(t)
	sessions := map[string]arm.Session{}
	defer func() { // before the context ends, which ends the programs
		for name, s := range sessions {
			if err := s.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if left, err := os.ReadDir(env.Dir); err != nil || len(left) != 0 {
			t.Errorf("left %v, %v", left, err)
		}
	}()
	for _, a := range external() {
		if err := a.Check(t.Context(), env); err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		s, err := a.Open(t.Context(), env, arm.Work{Workload: workload.Listing, CPU: 0, Aligns: []int{0, 48}})
		if err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		sessions[a.Name] = s
	}
	for i, align := range []int{48, 0} {
		for _, a := range external() {
			want := int64(70 + 300*i)
			m, err := sessions[a.Name].Run(t.Context(), workload.Request{Parameter: 3, Align: align, Calls: want})
			if err != nil {
				t.Fatalf("%s: %v", a.Name, err)
			}
			if m.Calls != want || m.WallNS <= 0 || m.CPUNS <= 0 {
				t.Errorf("%s: measured %+v, want %d calls", a.Name, m, want)
			}
			if points := uint64(a.Points); m.Recorded != m.Expected || m.Expected < points*uint64(want) || points == 0 && m.Expected != 0 {
				t.Errorf("%s: %d calls: recorded %d events, expected %d", a.Name, want, m.Recorded, m.Expected)
			}
			t.Logf("%s: %d calls: recorded %d events in %d ns", a.Name, m.Calls, m.Recorded, m.WallNS)
		}
	}
}

// Probes that a killed study left are removed by the next one; those of one that runs are not.
func TestPerfSweeps(t *testing.T) {
	env := environment(t)
	const nobody = 1<<22 + 1 // the kernel's ids end before
	dead, alive := fmt.Sprintf("braid_stat_%d", nobody), fmt.Sprintf("braid_record_%d", os.Getpid())
	file, function := env.Workloads.Path(workload.Listing, workload.Plain), workload.Function(workload.Listing, workload.Plain, 0)
	for _, group := range []string{dead, alive} {
		if _, err := output(t.Context(), nil, "perf", "probe", "-q", "-x", file, group+":"+group+"="+function); err != nil {
			t.Fatal(err)
		}
		defer output(context.Background(), nil, "perf", "probe", "-q", "--del="+group+":*")
	}
	sweep(t.Context())
	list, err := output(t.Context(), nil, "perf", "probe", "-l")
	if err != nil || strings.Contains(list, dead) || !strings.Contains(list, alive) {
		t.Errorf("after sweeping there are %s, %v", list, err)
	}
}

// Without its tools an arm says what is missing, and how to get it.
func TestExternalMissing(t *testing.T) {
	env := environment(t)
	t.Setenv("PATH", "")
	var names []string
	for _, a := range external() {
		var u *arm.Unavailable
		if err := a.Check(t.Context(), env); !errors.As(err, &u) {
			t.Errorf("%s: %v, want why it can't run", a.Name, err)
		} else if !strings.Contains(u.Why, "installed") || !strings.HasPrefix(u.Next, "apt-get install ") {
			t.Errorf("%s: %q, %q", a.Name, u.Why, u.Next)
		}
		names = append(names, a.Name)
	}
	want := []string{"uftrace", "xray-basic", "xray-fdr", "lttng", "bpftrace", "perf-stat", "perf-record", "jvm-baseline", "jvmti"}
	if !slices.Equal(names, want) {
		t.Errorf("arms %v, want %v", names, want)
	}
}
