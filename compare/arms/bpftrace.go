package arms

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// bpftrace: a probe at each entry and one at each return, with a program that counts.
func init() {
	arm.Register(&arm.Arm{
		Name: "bpftrace", Title: "bpftrace, count", Group: result.GroupExternal, Order: 40, Points: 2,
		Workloads: nested,
		Check: func(_ context.Context, env *arm.Env) error {
			if err := missing(need{"bpftrace", "bpftrace"}); err != nil {
				return err
			}
			return rooted(env)
		},
		Open: openBPFtrace,
	})
}

// bpftrace is attached to the workload's process for the whole session, because compiling its program takes a second. Where it
// has nothing to do, it is stopped.
type bpftrace struct {
	p      *workload.Process
	dir    string
	tool   *service
	counts chan counts // the tool shows them again and again
	last   counts      // of the last measurement, as the tool has counted on since
	facts  map[string]string
}

// counts are what probes at entries and at returns have seen since they were attached.
type counts struct{ entries, returns uint64 }

func openBPFtrace(ctx context.Context, env *arm.Env, w arm.Work) (_ arm.Session, err error) {
	b := &bpftrace{counts: make(chan counts)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("attaching bpftrace: %w", err), b.Close())
		}
	}()
	if b.dir, err = os.MkdirTemp(env.Dir, "bpftrace-"); err != nil {
		return nil, err
	}
	if b.p, b.facts, err = probed(ctx, env, w, b.dir); err != nil {
		return nil, err
	}
	if err := b.launch(w.Aligns); err != nil {
		return nil, err
	}
	if err := b.attached(ctx, w.Aligns); err != nil {
		return nil, err
	}
	return b, b.tool.cmd.Process.Signal(syscall.SIGSTOP)
}

func (b *bpftrace) launch(aligns []int) (err error) {
	var entries, returns []string
	for _, align := range aligns {
		for _, f := range b.p.Functions(align) {
			entries = append(entries, "uprobe:"+b.p.Path()+":"+f)
			returns = append(returns, "uretprobe:"+b.p.Path()+":"+f)
		}
	}
	script := fmt.Sprintf(
		"%s { @entries = count(); } %s { @returns = count(); } interval:ms:50 { print(@entries); print(@returns); }",
		strings.Join(entries, ","), strings.Join(returns, ","))
	b.facts["counted by"] = "maps of the script"
	c := exec.Command("bpftrace", "-f", "json", "-p", strconv.Itoa(b.p.PID()), "-e", script)
	out, in := io.Pipe()
	c.Stdout = in
	if b.tool, err = serve(c); err != nil {
		return err
	}
	go b.read(out)
	go func() {
		<-b.tool.ended
		in.Close()
	}()
	return nil
}

// read hands on what the tool shows, until its end. What nobody asks for is dropped, so that the newest is there for who asks.
func (b *bpftrace) read(out io.Reader) {
	defer close(b.counts)
	var c counts
	for s := bufio.NewScanner(out); s.Scan(); {
		var line struct {
			Type string
			Data map[string]json.RawMessage
		}
		if json.Unmarshal(s.Bytes(), &line) != nil || line.Type != "map" {
			continue
		}
		if n, ok := line.Data["@entries"]; ok {
			json.Unmarshal(n, &c.entries)
			continue
		}
		if n, ok := line.Data["@returns"]; !ok || json.Unmarshal(n, &c.returns) != nil {
			continue
		}
		select {
		case b.counts <- c:
		default:
		}
	}
}

// next is the next that the tool shows.
func (b *bpftrace) next(ctx context.Context) (counts, error) {
	select {
	case c, ok := <-b.counts:
		if !ok {
			return c, b.tool.failure()
		}
		return c, nil
	case <-ctx.Done():
		return counts{}, ctx.Err()
	case <-time.After(patience):
		return counts{}, errors.New("bpftrace shows no counts")
	}
}

// settled waits for counts that no longer grow and are at least those: what the tool shows may be from before the last call. If
// they stay below, it returns them after some time.
func (b *bpftrace) settled(ctx context.Context, least counts, tries int) (last counts, err error) {
	if last, err = b.next(ctx); err != nil {
		return last, err
	}
	for range tries {
		c, err := b.next(ctx)
		if err != nil {
			return c, err
		}
		if c == last && c.entries >= least.entries && c.returns >= least.returns {
			return c, nil
		}
		last = c
	}
	return last, nil
}

// attached makes calls until all of them are counted: the tool doesn't say when its last probe is there.
func (b *bpftrace) attached(ctx context.Context, aligns []int) error {
	before, err := b.next(ctx)
	for end := time.Now().Add(patience); err == nil; {
		want := before
		for _, align := range aligns {
			r, err := b.p.Run(workload.Request{Parameter: 16, Align: align, Calls: 10})
			if err != nil {
				return err
			}
			want.entries += uint64(r.Calls)
			want.returns += uint64(r.Calls)
		}
		before, err = b.settled(ctx, want, 4)
		if before == want {
			b.last = want
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("it counted %+v of %+v", before, want)
		}
	}
	return err
}

// Run leaves the tool stopped while it measures: the probes are in the kernel.
func (b *bpftrace) Run(ctx context.Context, r workload.Request) (m arm.Measured, err error) {
	before := b.last
	if m.Reply, err = b.p.Run(r); err != nil {
		return m, err
	}
	if err := b.tool.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return m, err
	}
	calls := uint64(m.Calls)
	if b.last, err = b.settled(ctx, counts{before.entries + calls, before.returns + calls}, 40); err != nil {
		return m, err
	}
	m.Expected = 2 * calls
	m.Recorded = b.last.entries - before.entries + b.last.returns - before.returns
	return m, b.tool.cmd.Process.Signal(syscall.SIGSTOP)
}

func (b *bpftrace) Facts() map[string]string { return b.facts }

func (b *bpftrace) Close() error {
	var errs []error
	if b.tool != nil {
		b.tool.cmd.Process.Signal(syscall.SIGCONT)
		errs = append(errs, b.tool.end(syscall.SIGINT))
	}
	if b.p != nil {
		errs = append(errs, b.p.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}
