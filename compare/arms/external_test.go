package arms

import (
	"errors"
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
// with each number of calls.
func TestExternalCounts(t *testing.T) {
	env := environment(t)
	for _, a := range external() {
		t.Run(a.Name, func(t *testing.T) {
			if err := a.Check(t.Context(), env); err != nil {
				t.Fatal(err)
			}
			s, err := a.Open(t.Context(), env, arm.Work{Workload: workload.Listing, CPU: 0, Aligns: []int{0, 48}})
			if err != nil {
				t.Fatal(err)
			}
			for i, align := range []int{0, 48} {
				want := int64(70 + 300*i)
				m, err := s.Run(t.Context(), workload.Request{Parameter: 3, Align: align, Calls: want})
				if err != nil {
					t.Fatal(err)
				}
				if m.Calls != want || m.WallNS <= 0 || m.CPUNS <= 0 {
					t.Errorf("measured %+v, want %d calls", m, want)
				}
				if points := uint64(a.Points); m.Recorded != m.Expected || m.Expected < points*uint64(want) || points == 0 && m.Expected != 0 {
					t.Errorf("%d calls: recorded %d events, expected %d", want, m.Recorded, m.Expected)
				}
				t.Logf("%d calls: recorded %d events, %d ns", m.Calls, m.Recorded, m.WallNS)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	left, err := os.ReadDir(env.Dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
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
	for _, want := range []string{"uftrace", "xray-basic", "xray-fdr"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no arm %s", want)
		}
	}
}
