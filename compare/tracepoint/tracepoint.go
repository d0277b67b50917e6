package tracepoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"braid/control"
	"braid/inline/runtime"
	"braid/inline/stub"
)

// Workload is the measured program: for each line read it makes a number of calls and answers with the ns they took.
// align shifts the method's start, which alone moves an empty call by some tenths of a nanosecond.
func workload(align int) string {
	return fmt.Sprintf(`
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <time.h>
__asm__(".text\n.p2align 6\n.skip %d, 0x90\n");
__attribute__((noinline, aligned(1))) void empty(void) { __asm__ volatile(""); }
__attribute__((noinline, section(".text.braid_notrace"))) static void run(long n) {
	for (long i = 0; i < n; i++) empty();
}
__attribute__((section(".text.braid_notrace"))) int main(void) {
	cpu_set_t set; CPU_ZERO(&set); CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof set, &set);
	long n; struct timespec a, b;
	while (scanf("%%ld", &n) == 1) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		run(n);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		printf("%%ld\n", (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec);
		fflush(stdout);
	}
	return 0;
}
`, align)
}

// Variant is what stands at the method's entry and return.
type Variant string

// The variants.
const (
	Nothing Variant = "nothing"
	Clock   Variant = "bare counter read"
	Off     Variant = "stub, off"
	On      Variant = "stub, on"
	NoClock Variant = "stub, on, no clock" // all of the stub but the counter's read
)

// Options of a measurement; zero values are the defaults.
type Options struct {
	Rounds int   // default 200
	Calls  int64 // in each round, default 200,000
	Aligns []int // start of the method within a cache line, default 0, 16, 32, 48
	CC     string
}

// Figure is the cost of one trace point in ns, as the median over rounds and alignments with its quartiles.
type Figure struct {
	Variant         Variant
	Median, Q1, Q3  float64
	LeastAlign      float64 // the median of the alignment that was best
	MostAlign       float64
	RecordsVerified uint64 // what the ring really held, for On
}

type arm struct {
	variant Variant
	align   int
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	ns      []float64
	session *control.Session
}

// Run measures. It needs a C compiler. Every figure comes from the same interleaved rounds.
func Run(o Options) ([]Figure, error) {
	if o.Rounds == 0 {
		o.Rounds = 200
	}
	if o.Calls == 0 {
		o.Calls = 200_000
	}
	if o.Aligns == nil {
		o.Aligns = []int{0, 16, 32, 48}
	}
	if o.CC == "" {
		o.CC = "gcc"
	}
	dir, err := os.MkdirTemp("", "braid-tracepoint")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var arms []*arm
	defer func() {
		for _, a := range arms {
			a.close()
		}
	}()
	for _, align := range o.Aligns {
		bins, err := build(dir, o.CC, align)
		if err != nil {
			return nil, err
		}
		for _, v := range []Variant{Nothing, Clock, Off, On, NoClock} {
			a, err := start(v, align, bins[v])
			if err != nil {
				return nil, err
			}
			arms = append(arms, a)
		}
	}
	for r := range o.Rounds + 5 {
		for _, i := range rand.Perm(len(arms)) {
			ns, err := arms[i].round(o.Calls)
			if err != nil {
				return nil, err
			}
			if r >= 5 { // the first ones warm up
				arms[i].ns = append(arms[i].ns, ns)
			}
		}
	}
	return figures(arms, o)
}

func build(dir, cc string, align int) (map[Variant]string, error) {
	c := exec.Command(cc, "-O2", "-dp", "-fno-ipa-ra", "-S", "-x", "c", "-o", "-", "-")
	c.Stdin = strings.NewReader(workload(align))
	asm, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("compiling the workload: %w", err)
	}
	rt, err := runtime.Object("amd64")
	if err != nil {
		return nil, err
	}
	obj := filepath.Join(dir, "runtime.o")
	if err := os.WriteFile(obj, rt, 0o600); err != nil {
		return nil, err
	}
	out := map[Variant]string{}
	for v, so := range map[Variant]*stub.Options{Nothing: {Trace: func(string) bool { return false }}, Clock: {ClockOnly: true}, On: {},
		NoClock: {NoClock: true}} {
		var b bytes.Buffer
		if _, err := stub.Insert(&b, asm, *so); err != nil {
			return nil, err
		}
		base := filepath.Join(dir, strings.ReplaceAll(string(v), " ", "_")+strconv.Itoa(align))
		if err := os.WriteFile(base+".s", b.Bytes(), 0o600); err != nil {
			return nil, err
		}
		if msg, err := exec.Command(cc, "-o", base, base+".s", obj).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("linking the workload: %w: %s", err, msg)
		}
		out[v] = base
	}
	out[Off] = out[On]
	return out, nil
}

func start(v Variant, align int, bin string) (*arm, error) {
	a := &arm{variant: v, align: align, cmd: exec.Command(bin)}
	a.cmd.Env = os.Environ()
	if v == On || v == NoClock {
		s, err := control.NewSession(runtime.PolicyMain, 32<<20)
		if err != nil {
			return nil, err
		}
		a.session = s
		a.cmd.Env = append(a.cmd.Env, s.Env())
	}
	var err error
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.out = bufio.NewReader(out)
	return a, a.cmd.Start()
}

func (a *arm) round(calls int64) (float64, error) {
	if _, err := fmt.Fprintln(a.in, calls); err != nil {
		return 0, fmt.Errorf("%s: the workload died: %w", a.variant, err)
	}
	l, err := a.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("%s: the workload died: %w", a.variant, err)
	}
	ns, err := strconv.ParseFloat(strings.TrimSpace(l), 64)
	return ns / float64(calls), err
}

func (a *arm) close() {
	if a.in != nil {
		a.in.Close()
		a.cmd.Wait()
		a.in = nil
	}
	if a.session != nil {
		a.session.Close()
		a.session = nil
	}
}

// records returns how many slots of the arm's ring hold something, which proves that it recorded.
func (a *arm) records() (uint64, error) {
	areas, err := a.session.Areas()
	if err != nil {
		return 0, err
	}
	var n uint64
	for _, ar := range areas {
		for _, t := range ar.Threads() {
			s, err := t.Collect(nil)
			if err != nil {
				return 0, err
			}
			n += uint64(len(s.Slots))
		}
		ar.Close()
	}
	if n == 0 {
		return 0, errors.New("the arm that should record did not")
	}
	return n, nil
}

func figures(arms []*arm, o Options) ([]Figure, error) {
	base := map[int]float64{}
	for _, a := range arms {
		if a.variant == Nothing {
			base[a.align] = quantile(a.ns, 0.5)
		}
	}
	byVariant := map[Variant]*Figure{}
	all := map[Variant][]float64{}
	for _, a := range arms {
		f := byVariant[a.variant]
		if f == nil {
			f = &Figure{Variant: a.variant}
			byVariant[a.variant] = f
		}
		var points []float64
		for _, ns := range a.ns {
			points = append(points, (ns-base[a.align])/2)
		}
		m := quantile(points, 0.5)
		if len(all[a.variant]) == 0 || m < f.LeastAlign {
			f.LeastAlign = m
		}
		if len(all[a.variant]) == 0 || m > f.MostAlign {
			f.MostAlign = m
		}
		all[a.variant] = append(all[a.variant], points...)
		if a.variant == On || a.variant == NoClock {
			a.in.Close()
			a.cmd.Wait()
			a.in = nil
			n, err := a.records()
			if err != nil {
				return nil, err
			}
			f.RecordsVerified += n
		}
	}
	var out []Figure
	for _, v := range []Variant{Nothing, Clock, Off, On, NoClock} {
		f := byVariant[v]
		f.Median, f.Q1, f.Q3 = quantile(all[v], 0.5), quantile(all[v], 0.25), quantile(all[v], 0.75)
		out = append(out, *f)
	}
	return out, nil
}

func quantile(v []float64, q float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[int(float64(len(s)-1)*q)]
}

// Print writes the figures as a table.
func Print(w io.Writer, fs []Figure) {
	var clock float64
	for _, f := range fs {
		if f.Variant == Clock {
			clock = f.Median
		}
	}
	fmt.Fprintf(w, "%-20s %8s %17s %19s %9s\n", "trace point", "ns", "middle half", "over alignments", "vs clock")
	for _, f := range fs {
		fmt.Fprintf(w, "%-20s %8.2f %8.2f-%8.2f %9.2f-%9.2f %8.2fx\n", f.Variant, f.Median, f.Q1, f.Q3, f.LeastAlign, f.MostAlign, f.Median/clock)
	}
}
