package probe

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// Kind is a way to put probes into a program.
type Kind string

// The kinds. Those at entries and at static sites need no return probe.
const (
	Entry   Kind = "uprobe"    // a perf event for each function: its entry
	Return  Kind = "uretprobe" // a perf event for each function: its return, for which the kernel stops it at its entry too
	Pair    Kind = "pair"      // both of these
	Multi   Kind = "multi"     // one link for all entries, one for all returns (Linux 6.6)
	Session Kind = "session"   // one link for both (Linux 6.13)
	Static  Kind = "usdt"      // at static sites: one link for all if the kernel has it, else a perf event for each
)

// Points is how many events each call of a function makes.
func (k Kind) Points() int {
	if k == Entry || k == Return {
		return 1
	}
	return 2
}

// ErrNoKind says that this kernel lacks a kind of probes. What follows it says what is missing.
var ErrNoKind = errors.New("this kernel lacks the probes")

// Supported says whether this kernel has a kind of probes: nil, or ErrNoKind, or why that can't be found out (os.ErrPermission
// if this process may not load eBPF programs).
func Supported(k Kind) error {
	if !slices.Contains([]Kind{Entry, Return, Pair, Multi, Session, Static}, k) {
		return fmt.Errorf("there is no kind of probes called %q", k)
	}
	if err := features.HaveProgramType(ebpf.Kprobe); err != nil {
		return explain(err, "it can't load eBPF programs for probes (CONFIG_BPF_SYSCALL, CONFIG_UPROBE_EVENTS, CONFIG_BPF_EVENTS; braid doctor: config, uprobes)")
	}
	if err := features.HaveMapType(ebpf.RingBuf); err != nil {
		return explain(err, "the BPF ring buffer came with Linux 5.8 (braid doctor: ringbuf)")
	}
	switch k {
	case Multi:
		return explain(features.HaveBPFLinkUprobeMulti(), "uprobe_multi came with Linux 6.6 (braid doctor: uprobes)")
	case Session:
		return explain(haveSession(), "sessions of uprobe_multi came with Linux 6.13 (braid doctor: uprobes)")
	case Static:
		if features.HaveBPFLinkUprobeMulti() == nil {
			return nil
		}
	}
	if _, err := os.Stat("/sys/bus/event_source/devices/uprobe/type"); err != nil {
		return fmt.Errorf("%w: it was built without CONFIG_UPROBE_EVENTS (braid doctor: uprobes)", ErrNoKind)
	}
	return nil
}

func explain(err error, missing string) error {
	if errors.Is(err, ebpf.ErrNotSupported) {
		return fmt.Errorf("%w: %s", ErrNoKind, missing)
	}
	return err
}

// haveSession attaches a session to a folder, which fails in another way on kernels that know sessions: see
// bpf_uprobe_multi_link_attach in kernel/trace/bpf_trace.c of Linux 6.18.
func haveSession() error {
	t, err := load("count_session", 0)
	if err != nil {
		return err
	}
	l, err := attachMulti(t.programs["count_session"], multiLink{kind: traceUprobeSession, path: "/", sites: []Site{{}}})
	closeErr := t.Close()
	switch {
	case err == nil:
		return errors.Join(errors.New("a session was attached to a folder"), l.Close(), closeErr)
	case errors.Is(err, unix.EBADF):
		return closeErr
	case errors.Is(err, unix.EINVAL):
		return ebpf.ErrNotSupported
	}
	return err
}

// haveCookie says whether programs of probes can read the value of their attachment.
func haveCookie() bool {
	return features.HaveProgramHelper(ebpf.Kprobe, asm.FnGetAttachCookie) == nil
}
