package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests of this package use the built binary as a user does. They run as root.
var (
	scratch  string // of this run; anybody may read and execute what is in it
	braidBin string
	programs = map[string]string{} // name to binary
)

const nobody = 65534

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if how := os.Getenv(confineEnv); how != "" {
		return confine(how)
	}
	if os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "the tests of the binary record kernel events: run them as root")
		return 1
	}
	var err error
	if scratch, err = os.MkdirTemp("", "braid-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if left := orphanPrograms(); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "eBPF programs are left behind: %v\n", left)
		code = 1
	}
	return code
}

// outcome is what a finished command left.
type outcome struct {
	code           int
	stdout, stderr string
}

// summary is braid's last line.
func (o outcome) summary() string {
	lines := strings.Split(strings.TrimRight(o.stderr, "\n"), "\n")
	return lines[len(lines)-1]
}

// command is braid with these arguments, in the test's own folder.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(braidBin, args...)
	c.Dir = t.TempDir()
	return c
}

// finish runs a command to its end, which must come.
func finish(t *testing.T, c *exec.Cmd) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	if c.Stderr == nil {
		c.Stderr = &errs
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	code := waitCode(t, c)
	return outcome{code, out.String(), errs.String()}
}

// hang is after what time a command is taken to hang. An emulated processor is slow.
var hang = func() time.Duration {
	if testBin != "" {
		return 5 * time.Minute
	}
	return time.Minute
}()

// waitCode waits for a started command and returns its exit code as a shell does.
func waitCode(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	watchdog := time.AfterFunc(hang, func() { c.Process.Kill() })
	err := c.Wait()
	if !watchdog.Stop() {
		t.Fatalf("%v did not end within %v", c.Args[1:], hang)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ws := c.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return c.ProcessState.ExitCode()
}

// braid runs braid to its end.
func braid(t *testing.T, args ...string) outcome {
	t.Helper()
	return finish(t, command(t, args...))
}

// must runs braid, which has to succeed, and returns its stdout.
func must(t *testing.T, args ...string) string {
	t.Helper()
	o := braid(t, args...)
	if o.code != 0 {
		t.Fatalf("braid %s ended with %d:\n%s", strings.Join(args, " "), o.code, o.stderr)
	}
	return o.stdout
}

var summaryLine = regexp.MustCompile(`^braid: (\d+) records of (\d+) threads?( \(the newest: \d+ rings? filled up\))?(, \d+ kernel events)?(?:, \d+ samples?(?: \(\d+ with an incomplete stack\))?)?(, nothing lost|; lost: [a-z0-9_, ]+): (\S+) \(\d+ (bytes|KiB|MiB)\)$`)

// record records with these options and arguments into a new file. The exit code must be want, nothing lost, no eBPF
// program left, and the last line the summary.
func record(t *testing.T, want int, args ...string) (file string, o outcome) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "out.braid")
	o = braid(t, append([]string{"record", "-o", file}, args...)...)
	checkRecorded(t, file, o, want)
	return file, o
}

func checkRecorded(t *testing.T, file string, o outcome, want int) {
	t.Helper()
	if o.code != want {
		t.Fatalf("braid record ended with %d, want %d:\n%s", o.code, want, o.stderr)
	}
	m := summaryLine.FindStringSubmatch(o.summary())
	if m == nil || m[6] != file {
		t.Fatalf("the last line is no summary: %q", o.summary())
	}
	if m[5] != ", nothing lost" {
		t.Errorf("records were lost: %s", o.summary())
	}
	if left := orphanPrograms(); len(left) > 0 {
		t.Errorf("eBPF programs are left behind: %v", left)
	}
}

// The report's JSON as the documentation names it.
type (
	times struct {
		Wall     int64 `json:"wall_ns"`
		Running  int64 `json:"running_ns"`
		Runnable int64 `json:"runnable_ns"`
		Sleeping int64 `json:"sleeping_ns"`
		Blocked  int64 `json:"blocked_ns"`
		Unknown  int64 `json:"unknown_ns"`
		IOBytes  int64 `json:"io_bytes"`
	}
	method struct {
		Name        string
		Module      string
		Calls, Cut  int
		Self, Total times
	}
	thread struct {
		Pid, Tid int
		Name     string
		Records  int
		times
	}
	summed struct {
		Methods []method
		Threads []thread
		Clock   struct {
			Source    string
			Frequency int64 `json:"frequency_hz"`
			Residual  int64 `json:"max_residual_ns"`
		}
		Lost  map[string]int
		Notes []string
	}
)

// report reads a trace file's report; further arguments are options of braid report.
func report(t *testing.T, file string, args ...string) *summed {
	t.Helper()
	return parseReport(t, must(t, append(append([]string{"report", "--json", "--top", "0"}, args...), file)...))
}

func parseReport(t *testing.T, text string) *summed {
	t.Helper()
	r := new(summed)
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(r); err != nil {
		t.Fatalf("the report is no JSON: %v", err)
	}
	if r.Lost == nil || r.Clock.Source == "" {
		t.Errorf("the report lacks lost counts or the clock: %s", text)
	}
	return r
}

// method returns a method's row, which must be there.
func (r *summed) method(t *testing.T, name string) method {
	t.Helper()
	i := slices.IndexFunc(r.Methods, func(m method) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("the report has no method %s: %+v", name, r.Methods)
	}
	return r.Methods[i]
}

// calls checks methods' exact numbers of calls.
func (r *summed) calls(t *testing.T, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for _, m := range r.Methods {
		got[m.Name] += m.Calls
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d calls, want %d", name, got[name], n)
		}
	}
}

// recorded returns the names of the threads with records, sorted.
func (r *summed) recorded() (names []string) {
	for _, th := range r.Threads {
		if th.Records > 0 {
			names = append(names, th.Name)
		}
	}
	slices.Sort(names)
	return names
}

// running is a program that runs beside braid, and says things in lines of "word number".
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *lineReader
}

// start starts a command whose stdin stays open until end. Its pipes outlive it, for the program that it records.
func start(t *testing.T, c *exec.Cmd) *running {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdin, c.Stdout = inR, outW
	r := &running{t, c, inW, newLineReader(outR)}
	err = c.Start()
	inR.Close()
	outW.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
		if c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
		}
	})
	return r
}

// expect waits for a line that begins with word and returns its number.
func (r *running) expect(word string) int {
	r.t.Helper()
	n, err := strconv.Atoi(r.lines.find(r.t, word+" "))
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// end closes the program's stdin and waits for it.
func (r *running) end() int {
	r.t.Helper()
	r.stdin.Close()
	r.lines.drain()
	return waitCode(r.t, r.cmd)
}

func TestDoctor(t *testing.T) {
	var doc struct {
		Checks []map[string]string // all fields of a check are text
	}
	if err := json.Unmarshal([]byte(must(t, "doctor", "--json")), &doc); err != nil || len(doc.Checks) < 20 {
		t.Errorf("doctor --json says %v (%v)", doc, err)
	}
	for _, c := range doc.Checks {
		if c["id"] == "" || c["title"] == "" || c["found"] == "" || c["status"] != "ok" && c["lost"] == "" {
			t.Errorf("a check says too little: %v", c)
		}
	}
	for line := range strings.Lines(must(t, "doctor")) {
		if len([]rune(line)) > 81 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}
