package sample

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"braid/internal/tracefile"
)

// Stripped programs that nobody here compiled, with perf's own unwinder as judge: of perf's stacks, as large a share or a
// smaller one reaches the C library's start.
func TestPrograms(t *testing.T) {
	if os.Getenv("BRAID_TEST_SAMPLE") != "" {
		t.Log("a guest has none of these programs")
		return
	}
	gcc, err := exec.Command("gcc", "-print-prog-name=cc1").Output() // a large file
	if err != nil {
		t.Fatal(err)
	}
	large := strings.TrimSpace(string(gcc))
	for name, argv := range map[string][]string{
		"gzip": {"sh", "-c", `head -c 8000000 "$0" | exec gzip -c >/dev/null`, large},
		"xz":   {"sh", "-c", `head -c 3000000 "$0" | exec xz -1 -T1 -c >/dev/null`, large},
		"sqlite3": {"sqlite3", ":memory:", `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<150000)
			SELECT count(*), sum(length(hex(i))) FROM (SELECT i FROM n ORDER BY i*7919%150001)`},
	} {
		t.Run(name, func(t *testing.T) {
			r := sampleCommand(t, Options{Hz: 199, NoCycles: true}, argv...)
			ours, all := 0, 0
			var odd []string
			for i := range r.samples {
				s := &r.samples[i]
				if len(s.User) == 0 {
					continue
				}
				all++
				if chain := r.chain(s); fromStart(chain) {
					ours++
				} else {
					odd = append(odd, s.End.String()+": "+strings.Join(chain, " "))
				}
			}
			theirs, total := perfShare(t, argv)
			t.Logf("%d of %d here, %d of perf's %d", ours, all, theirs, total)
			if all < 20 || total < 20 {
				t.Fatalf("too few samples: %d, and %d of perf's", all, total)
			}
			if float64(ours)/float64(all) < float64(theirs)/float64(total)-0.05 || ours < all*9/10 {
				t.Errorf("%d of %d samples reach the start, %d of perf's %d:\n%s", ours, all, theirs, total, strings.Join(odd, "\n"))
			}
		})
	}
}

// fromStart reports whether a chain has the start of a program, or of its dynamic linker.
func fromStart(chain []string) bool {
	for _, name := range chain {
		if strings.HasPrefix(name, "__libc_start_main") || strings.HasPrefix(name, "__libc_start_call_main") || name == "_dl_start" {
			return true
		}
	}
	return len(chain) > 0 && strings.HasPrefix(chain[len(chain)-1], "?ld-linux")
}

// perfShare returns how many of perf's samples reach the start, and how many there are.
func perfShare(t *testing.T, argv []string) (complete, all int) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "perf.data")
	record := exec.Command("perf", append([]string{"record", "-q", "-o", data, "-e", "cpu-clock", "-F", "199", "--call-graph", "dwarf,16384", "--"}, argv...)...)
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := exec.Command("perf", "script", "-i", data, "-F", "ip,sym,dso", "--no-inline")
	out, err := script.Output()
	if err != nil {
		t.Fatal(err)
	}
	for stack := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n\n") {
		var chain []string
		user := false
		for line := range strings.SplitSeq(strings.TrimSpace(stack), "\n") { // address, name, (file)
			f := strings.Fields(line)
			if len(f) < 2 || strings.HasPrefix(f[0], "ffff") {
				continue
			}
			user = true
			name := f[1]
			if name == "[unknown]" {
				name = "?" + filepath.Base(strings.Trim(f[len(f)-1], "()"))
			}
			chain = append(chain, name)
		}
		if user {
			all++
		}
		if fromStart(chain) {
			complete++
		}
	}
	return complete, all
}

// An attached process's threads are all sampled, those that it creates later too, and no other process is.
func TestAttach(t *testing.T) {
	other := exec.Command(chains(t, false), "0.2")
	cmd := exec.Command(other.Path, "0.2")
	for _, c := range []*exec.Cmd{other, cmd} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(Options{Hz: 199})
	if err != nil {
		t.Fatal(err)
	}
	r := &taken{sampler: s, pid: cmd.Process.Pid}
	done := r.run(t, s)
	for range 2 { // again changes nothing
		if err := s.Attach(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Wait()
	other.Wait()
	r.finish(t, done)
	n := 0
	at := map[[2]uint64]bool{}
	for i := range r.samples {
		s := &r.samples[i]
		if int(s.Tgid) == other.Process.Pid {
			t.Fatal("another process was sampled")
		}
		if at[[2]uint64{uint64(s.Tid), s.Time}] {
			t.Error("a thread has two samples of one moment")
		}
		at[[2]uint64{uint64(s.Tid), s.Time}] = true
		if s.End == tracefile.EndComplete {
			n++
		}
	}
	if n < len(r.samples)*3/4 || n < 20 {
		t.Errorf("%d of %d samples are complete", n, len(r.samples))
	}
}
