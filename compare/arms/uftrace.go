package arms

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// uftrace: the compiler calls mcount at entries, and uftrace's library replaces return addresses; both write to shared memory
// that another process writes to files.
func init() {
	arm.Register(&arm.Arm{
		Name: "uftrace", Title: "uftrace", Group: result.GroupExternal, Order: 10, Points: 2,
		Workloads: nested,
		Check: func(context.Context, *arm.Env) error {
			return missing(need{"uftrace", "uftrace"}, need{"gcc", "gcc"})
		},
		Open: func(ctx context.Context, env *arm.Env, w arm.Work) (arm.Session, error) {
			return open(ctx, env, w, "uftrace", 1_000_000, func(dir string) (filer, map[string]string, error) {
				program, err := build(ctx, env, dir, "gcc", []string{"-pg"})
				return uftrace{program}, map[string]string{"build": "gcc -pg", "counted by": "uftrace report"}, err
			})
		},
	})
}

type uftrace struct{ program string }

func (u uftrace) start(_ context.Context, dir string, _ int64) (workload.Start, error) {
	// Calls of libraries and the kernel's events are not part of what is compared.
	wrap := []string{"uftrace", "record", "--no-libcall", "--no-event", "--no-pager", "-d", dir + "/data"}
	return workload.Start{Wrap: wrap, Path: u.program}, nil
}

func (u uftrace) count(ctx context.Context, dir string, functions []string) (events uint64, err error) {
	out, err := output(ctx, nil, "uftrace", "report", "--no-pager", "--no-event", "-d", dir+"/data")
	if err != nil {
		return 0, err
	}
	// Total time and its unit, own time and its unit, calls, function.
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) != 6 || !slices.Contains(functions, f[5]) {
			continue
		}
		n, err := strconv.ParseUint(f[4], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("uftrace report says %q", s.Text())
		}
		events += 2 * n // of a whole call
	}
	return events, nil
}

func (u uftrace) close() error { return nil }
