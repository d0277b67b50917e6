package arms

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// LTTng-UST: the compiler calls LTTng's handlers at entries and returns, which write an event to a buffer of the CPU in memory
// that is shared with a daemon; that one writes it to files.
func init() {
	arm.Register(&arm.Arm{
		Name: "lttng", Title: "LTTng-UST", Group: result.GroupExternal, Order: 30, Points: 2,
		Workloads: nested,
		Check:     checkLTTng,
		Open: func(ctx context.Context, env *arm.Env, w arm.Work) (arm.Session, error) {
			return open(ctx, env, w, "lttng", 1_000_000, func(dir string) (filer, map[string]string, error) {
				program, err := build(ctx, env, dir, "gcc", []string{"-finstrument-functions"}, linkLTTng...)
				if err != nil {
					return nil, nil, err
				}
				l := &lttng{program: program, env: []string{"LTTNG_HOME=" + dir}, session: fmt.Sprintf("braid-%d-%s", os.Getpid(), filepath.Base(dir))}
				facts := map[string]string{"build": "gcc -finstrument-functions -llttng-ust-cyg-profile-fast", "counted by": "babeltrace2"}
				return l, facts, l.begin(ctx)
			})
		},
	})
}

var linkLTTng = []string{"-Wl,--no-as-needed", "-llttng-ust-cyg-profile-fast"}

func checkLTTng(ctx context.Context, env *arm.Env) error {
	err := missing(need{"lttng", "lttng-tools"}, need{"lttng-sessiond", "lttng-tools"}, need{"babeltrace2", "babeltrace2"}, need{"gcc", "gcc"})
	if err != nil {
		return err
	}
	if err := links(ctx, env, append([]string{"gcc"}, linkLTTng...)...); err != nil {
		return &arm.Unavailable{Why: "the library lttng-ust-cyg-profile-fast is not installed", Next: "apt-get install liblttng-ust-dev"}
	}
	return nil
}

type lttng struct {
	program string
	env     []string
	session string
	daemon  *service // nil if another's is used
}

func (l *lttng) do(ctx context.Context, args ...string) error {
	_, err := output(ctx, l.env, append([]string{"lttng", "--no-sessiond"}, args...)...)
	return err
}

// begin starts a daemon. There can be but one of root's, because that one's sockets are always in the same place: if there is
// one already, it is used.
func (l *lttng) begin(ctx context.Context) error {
	if l.do(ctx, "list") == nil {
		return nil
	}
	c := exec.Command("lttng-sessiond", "--no-kernel")
	c.Env = append(os.Environ(), l.env...)
	var err error
	if l.daemon, err = serve(c); err != nil {
		return err
	}
	for {
		failure := l.do(ctx, "list")
		if failure == nil {
			return nil
		}
		select {
		case <-l.daemon.ended:
			return l.daemon.failure()
		case <-ctx.Done():
			return errors.Join(failure, l.close())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// start makes a session whose buffers hold what a measurement records, so that nothing is lost if the daemon is slow. They are
// not larger than that, because the daemon fills all of them with zeroes first, for each CPU.
func (l *lttng) start(ctx context.Context, dir string, calls int64) (workload.Start, error) {
	const parts, perCall = 8, 64 // an event has some 20 bytes
	size := max(64<<10, 1<<bits.Len64(uint64(calls*perCall/parts)))
	for _, args := range [][]string{
		{"create", l.session, "--output=" + dir},
		{"enable-channel", "--userspace", "--session=" + l.session, fmt.Sprint("--subbuf-size=", size), fmt.Sprint("--num-subbuf=", parts), "calls"},
		{"enable-event", "--userspace", "--session=" + l.session, "--channel=calls", "lttng_ust_cyg_profile_fast:*"},
		{"start", l.session},
	} {
		err := l.do(ctx, args...)
		if err != nil && l.daemon == nil && args[0] == "create" {
			// Another's daemon that answered a moment ago has ended.
			if err = l.begin(ctx); err == nil {
				err = l.do(ctx, args...)
			}
		}
		if err != nil {
			return workload.Start{}, err
		}
	}
	// The program waits until the daemon knows it.
	return workload.Start{Path: l.program, Env: append([]string{"LTTNG_UST_REGISTER_TIMEOUT=-1"}, l.env...)}, nil
}

var messages = regexp.MustCompile(`(\d+) Event messages?`)

// count asks for all events, because nothing else is traced. Those that were lost are not among them.
func (l *lttng) count(ctx context.Context, dir string, _ []string) (uint64, error) {
	for _, command := range []string{"stop", "destroy"} {
		if err := l.do(ctx, command, l.session); err != nil {
			return 0, err
		}
	}
	// Only the counts of the end are shown.
	out, err := output(ctx, nil, "babeltrace2", dir, "--component=count:sink.utils.counter", "--params=step=+0")
	if err != nil {
		return 0, err
	}
	found := messages.FindStringSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("babeltrace2 says %q", out)
	}
	return strconv.ParseUint(found[1], 10, 64)
}

// close also removes the session that a failure has left with another's daemon; most often there is none.
func (l *lttng) close() error {
	l.do(context.Background(), "destroy", l.session)
	if l.daemon == nil {
		return nil
	}
	return l.daemon.end(syscall.SIGTERM)
}
