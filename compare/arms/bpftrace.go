package arms

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
		Workloads: []string{workload.Listing, workload.Matrix},
		Check: func(_ context.Context, env *arm.Env) error {
			if err := missing(need{"bpftrace", "bpftrace"}); err != nil {
				return err
			}
			return rooted(env)
		},
		Open: openBPFtrace,
	})
}

// rooted says that only root may probe.
func rooted(env *arm.Env) error {
	if !env.Root {
		return &arm.Unavailable{Why: "probes need root", Next: "run as root"}
	}
	return nil
}

// bpftrace is attached to the workload's process for the whole session, because compiling its program takes a second.
type bpftrace struct {
	p      *workload.Process
	tool   *service
	counts chan counts // the tool shows them again and again
	script string
}

// counts are what probes at entries and at returns have seen since they were attached.
type counts struct{ entries, returns uint64 }

func openBPFtrace(ctx context.Context, env *arm.Env, w arm.Work) (arm.Session, error) {
	p, err := env.Workloads.Start(ctx, workload.Start{Workload: w.Workload, CPU: w.CPU, Aligns: w.Aligns})
	if err != nil {
		return nil, err
	}
	var entries, returns []string
	for _, align := range w.Aligns {
		for _, f := range p.Functions(align) {
			entries = append(entries, "uprobe:"+p.Path()+":"+f)
			returns = append(returns, "uretprobe:"+p.Path()+":"+f)
		}
	}
	b := &bpftrace{p: p, counts: make(chan counts), script: fmt.Sprintf(
		"%s { @entries = count(); } %s { @returns = count(); } interval:ms:50 { print(@entries); print(@returns); }",
		strings.Join(entries, ","), strings.Join(returns, ","))}
	out, in := io.Pipe()
	c := exec.Command("bpftrace", "-f", "json", "-p", strconv.Itoa(p.PID()), "-e", b.script)
	c.Stdout = in
	if b.tool, err = serve(c); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	go b.read(out)
	go func() {
		<-b.tool.ended
		in.Close()
	}()
	if err := b.attached(ctx, w.Aligns); err != nil {
		return nil, errors.Join(fmt.Errorf("attaching bpftrace: %w", err), b.Close())
	}
	return b, nil
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
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("it counted %+v of %+v", before, want)
		}
	}
	return err
}

func (b *bpftrace) Run(ctx context.Context, r workload.Request) (m arm.Measured, err error) {
	before, err := b.settled(ctx, counts{}, 4)
	if err != nil {
		return m, err
	}
	if m.Reply, err = b.p.Run(r); err != nil {
		return m, err
	}
	calls := uint64(m.Calls)
	after, err := b.settled(ctx, counts{before.entries + calls, before.returns + calls}, 40)
	m.Expected = 2 * calls
	m.Recorded = after.entries - before.entries + after.returns - before.returns
	return m, err
}

func (b *bpftrace) Facts() map[string]string {
	return map[string]string{"script": b.script, "counted by": "the script's maps"}
}

func (b *bpftrace) Close() error { return errors.Join(b.tool.end(syscall.SIGINT), b.p.Close()) }
