package sample

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"braid/internal/tracefile"
)

// taken is what sampling a program gave.
type taken struct {
	samples []tracefile.Sample
	frames  *tracefile.Frames
	table   *tracefile.FrameTable
	sampler *Sampler
	pid     int
	cpu     int64 // that this process used from the first to the last sample, ns
}

// sampleCommand samples a program from its exec to its end. It is a shell that waits, and then becomes the program.
func sampleCommand(t testing.TB, o Options, argv ...string) *taken {
	t.Helper()
	r, _ := sampleOutput(t, o, argv...)
	return r
}

// sampleOutput returns what the program printed, too.
func sampleOutput(t testing.TB, o Options, argv ...string) (*taken, string) {
	t.Helper()
	var out strings.Builder
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	gate, opener, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer opener.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", `read go && exec "$@"`, "sh"}, argv...)...)
	cmd.Stdin, cmd.Stdout = gate, &out
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gate.Close()
	if err := s.Launch(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	r := &taken{sampler: s, pid: cmd.Process.Pid}
	done := r.run(t, s)
	if _, err := opener.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %v", argv, err)
	}
	r.finish(t, done)
	return r, out.String()
}

// run reads samples until Stop.
func (r *taken) run(t testing.TB, s *Sampler) <-chan error {
	done := make(chan error, 1)
	r.cpu = ownCPU(t)
	go func() {
		done <- s.Run(func(out *tracefile.Samples) error {
			r.samples = append(r.samples, out.Samples...)
			return nil
		})
	}()
	return done
}

func (r *taken) finish(t testing.TB, done <-chan error) {
	t.Helper()
	r.sampler.Stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r.cpu = ownCPU(t) - r.cpu
	r.frames = r.sampler.Names()
	r.table = r.frames.Table()
	if err := r.sampler.Close(); err != nil {
		t.Error(err)
	}
}

// chain returns a sample's user frames by name, innermost first.
func (r *taken) chain(s *tracefile.Sample) (names []string) {
	for _, a := range s.User {
		name := "?"
		m, f := r.table.Find(s.Tgid, a, s.Time)
		switch {
		case f != nil:
			name = f.Name
		case m != nil:
			name = "?" + filepath.Base(m.Path)
		}
		names = append(names, name)
	}
	return names
}
