package sample

import (
	"os"
	"os/exec"
	"path/filepath"
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
}

// sampleCommand samples a program from its exec to its end. It is a shell that waits, and then becomes the program.
func sampleCommand(t *testing.T, o Options, argv ...string) *taken {
	t.Helper()
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
	cmd.Stdin = gate
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gate.Close()
	if err := s.Launch(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	r := &taken{sampler: s, pid: cmd.Process.Pid}
	done := r.run(s)
	if _, err := opener.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %v", argv, err)
	}
	r.finish(t, done)
	return r
}

// run reads samples until Stop.
func (r *taken) run(s *Sampler) <-chan error {
	done := make(chan error, 1)
	go func() {
		done <- s.Run(func(out *tracefile.Samples) error {
			r.samples = append(r.samples, out.Samples...)
			return nil
		})
	}()
	return done
}

func (r *taken) finish(t *testing.T, done <-chan error) {
	t.Helper()
	r.sampler.Stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
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
