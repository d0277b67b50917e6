package bpf

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"braid/internal/kevent"

	"golang.org/x/sys/unix"
)

// targetBinary is testdata/target.c, compiled by TestMain, or what BRAID_TEST_TARGET names (for guests without a
// compiler).
var targetBinary string

func TestMain(m *testing.M) {
	if os.Getenv("BRAID_TEST_LOAD") != "" {
		loadAndReport()
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	targetBinary = os.Getenv("BRAID_TEST_TARGET")
	if targetBinary == "" {
		dir, err := os.MkdirTemp("", "braid-target-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		targetBinary = filepath.Join(dir, "target")
		out, err := exec.Command("cc", "-O1", "-Wall", "-static", "-pthread", "-o", targetBinary, "testdata/target.c").CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "compile testdata/target.c: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// target is a running story of testdata/target.c.
type target struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// span is what a thread of the target says about itself.
type span struct {
	tid                    uint32
	start, end             uint64
	voluntary, involuntary int
	major                  int
}

// startTarget starts a story, which then waits.
func startTarget(t *testing.T, args ...string) *target {
	t.Helper()
	return startWith(t, exec.Command(targetBinary, args...))
}

// startWith starts a story with a command of its own.
func startWith(t *testing.T, cmd *exec.Cmd) *target {
	t.Helper()
	tg := &target{t: t, cmd: cmd}
	tg.cmd.Stderr = os.Stderr
	var err error
	if tg.stdin, err = tg.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := tg.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tg.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if tg.cmd.ProcessState == nil {
			tg.cmd.Process.Kill()
			tg.cmd.Wait()
		}
	})
	tg.lines = bufio.NewScanner(out)
	tg.expect("ready")
	return tg
}

func (tg *target) pid() int { return tg.cmd.Process.Pid }

func (tg *target) expect(line string) {
	tg.t.Helper()
	if !tg.lines.Scan() || tg.lines.Text() != line {
		tg.t.Fatalf("target says %q, want %q (%v)", tg.lines.Text(), line, tg.lines.Err())
	}
}

func (tg *target) run() {
	tg.t.Helper()
	if _, err := tg.stdin.Write([]byte{'\n'}); err != nil {
		tg.t.Fatal(err)
	}
}

// results reads what the story says until it is done, by the first word of each line.
func (tg *target) results() (spans []span, values map[string]uint64) {
	tg.t.Helper()
	values = map[string]uint64{}
	for tg.lines.Scan() {
		word, rest, _ := strings.Cut(tg.lines.Text(), " ")
		if word == "done" {
			return spans, values
		}
		fields := map[string]uint64{}
		for _, f := range strings.Fields(rest) {
			k, v, _ := strings.Cut(f, "=")
			n, err := strconv.ParseUint(v, 10, 64)
			if err != nil {
				tg.t.Fatalf("target says %q: %v", tg.lines.Text(), err)
			}
			fields[k] = n
			values[k] = n
		}
		if word == "span" {
			spans = append(spans, span{
				tid: uint32(fields["tid"]), start: fields["start"], end: fields["end"],
				voluntary: int(fields["voluntary"]), involuntary: int(fields["involuntary"]), major: int(fields["major"]),
			})
		}
	}
	tg.t.Fatalf("the target ended early: %v", tg.lines.Err())
	return nil, nil
}

// finish lets the target end and waits for it.
func (tg *target) finish() {
	tg.t.Helper()
	tg.stdin.Close()
	if err := tg.cmd.Wait(); err != nil {
		tg.t.Fatalf("target: %v", err)
	}
}

// kill ends the target.
func (tg *target) kill() {
	tg.cmd.Process.Signal(syscall.SIGKILL)
	tg.cmd.Wait()
}

func load(t testing.TB, opts Options) *Recorder {
	t.Helper()
	r, err := Load(opts)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// event is a decoded event's header and body.
type event struct {
	kevent.Header
	body []byte
}

func (e event) String() string { return string(kevent.AppendText(nil, e.Header, e.body)) }

// stopAndRead detaches and returns everything that was recorded, of which nothing may be lost.
func stopAndRead(t *testing.T, r *Recorder) []event {
	t.Helper()
	if err := r.Stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	var all []byte
	buf := make([]byte, 0, 1<<16)
	for {
		part, err := r.Read(buf, time.Time{})
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		all = append(all, part...)
	}
	lost, err := r.Lost()
	if err != nil || len(lost) != 0 {
		t.Fatalf("lost %v, error %v", lost, err)
	}
	return decode(t, all)
}

func decode(t *testing.T, all []byte) (events []event) {
	t.Helper()
	for len(all) > 0 {
		h, body, rest, err := kevent.Next(all)
		if err != nil {
			t.Fatalf("event %d: %v", len(events), err)
		}
		events = append(events, event{h, body})
		all = rest
	}
	return events
}

// count counts the events of a kind that fit.
func count(events []event, kind kevent.Kind, fits func(event) bool) (n int) {
	for _, e := range events {
		if e.Kind == kind && fits(e) {
			n++
		}
	}
	return n
}

// blockDir returns a directory on a file system with a block device of its own, which is where block requests can be
// seen: the first of $TMPDIR, /var/tmp, the working directory and / whose st_dev is a device in /sys/dev/block.
func blockDir(t testing.TB) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{os.TempDir(), "/var/tmp", wd, "/"} {
		if _, err := os.Stat(filepath.Join("/sys/dev/block", deviceOf(t, dir))); err != nil {
			continue
		}
		sub, err := os.MkdirTemp(dir, "braid-block-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.RemoveAll(sub) })
		return sub
	}
	t.Fatal("no directory on a block device: set TMPDIR to one (ext4, f2fs or xfs on a real or virtual disk)")
	return ""
}

// deviceOf returns major:minor of a directory's file system, or none if there is no such directory.
func deviceOf(t testing.TB, dir string) string {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		return "none"
	}
	dev := info.Sys().(*syscall.Stat_t).Dev
	return fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev))
}

// keepBusy keeps every CPU from idling; see compareFtrace.
func keepBusy(t *testing.T) {
	t.Helper()
	for cpu := range runtime.NumCPU() {
		spinner := startTarget(t, "spin", strconv.Itoa(cpu))
		spinner.run()
		spinner.expect("spinning")
	}
}
