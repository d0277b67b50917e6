package workload

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// emulators are what runs the programs for a processor; none for this machine's own.
var emulators = map[string][]string{"amd64": nil, "arm64": {"qemu-aarch64"}, "arm": {"qemu-arm"}}

// emulated are the variants that are tried under emulators: these take a second to make a process's area.
var emulated = map[string][]Variant{Listing: {Clock, GetTime}, Call: {Handler}, Matrix: {Plain}, Schedule: {Handler}, IO: {Push}}

var variants = []Variant{Plain, Stub, Clock, Handler, GetTime, USDT, Nop5, Push, Other}

// unpacked returns the programs for a processor.
func unpacked(t *testing.T, arch string) *Set {
	t.Helper()
	s, err := Unpack(t.TempDir(), arch)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t *testing.T, s *Set, st Start) *Process {
	t.Helper()
	p, err := s.Start(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// each runs a test with the programs of each processor.
func each(t *testing.T, f func(t *testing.T, s *Set, wrap []string)) {
	for arch, wrap := range emulators {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			f(t, unpacked(t, arch), wrap)
		})
	}
}

// TestCalls: each variant of each workload makes the calls that it was asked for, at all alignments, and handlers keep two
// records of each.
func TestCalls(t *testing.T) {
	each(t, func(t *testing.T, s *Set, wrap []string) {
		for name, requests := range map[string][]Request{
			Listing:  {{Calls: 1009}, {Parameter: 10, Calls: 20, Align: 48}},
			Call:     {{Calls: 1009}, {Parameter: 10, Calls: 21, Align: 48}},
			Matrix:   {{Parameter: 16, Calls: 1009, Align: 32}, {Parameter: 2048, Calls: 1, Skip: 4096}},
			Schedule: {{Calls: 11, Align: 16}, {Calls: 2}},
			IO:       {{Calls: 2}, {Parameter: 65536, Calls: 1, Align: 32}},
		} {
			wants := map[string][]Reply{
				Listing:  {{Calls: 1010}, {Calls: 20}},
				Call:     {{Calls: 1009}, {Calls: 21}},
				Matrix:   {{Calls: 1024, Bytes: 8 * 1024}, {Calls: 2048, Bytes: 8 * 2048}},
				Schedule: {{Calls: 12}, {Calls: 2}},
				IO:       {{Calls: 2, Bytes: 1024}, {Calls: 1, Bytes: 65536}},
			}[name]
			for _, v := range variants {
				if v == Clock && (name == Listing || name == Call) && slices.Equal(wrap, emulators["arm"]) {
					// This emulator has no counter, and the program finds that out.
					if p, err := s.Start(t.Context(), Start{Workload: name, Variant: v, Wrap: wrap}); err == nil || !strings.Contains(err.Error(), "counter") {
						t.Errorf("%s %s: %v", name, v, err)
						if err == nil {
							p.Close()
						}
					}
					continue
				}
				if len(wrap) > 0 && !slices.Contains(emulated[name], v) {
					continue
				}
				p := start(t, s, Start{Workload: name, Variant: v, Wrap: wrap})
				for i, r := range requests {
					got, err := p.Run(r)
					if err != nil {
						t.Fatalf("%s %s: %v", name, v, err)
					}
					want := wants[i]
					if v == Handler || v == GetTime {
						want.Recorded = 2 * uint64(want.Calls)
					}
					if got.WallNS <= 0 || got.CPUNS <= 0 {
						t.Errorf("%s %s took no time: %+v", name, v, got)
					}
					got.WallNS, got.CPUNS, got.CacheMisses = 0, 0, 0
					if got != want {
						t.Errorf("%s %s: %+v, want %+v", name, v, got, want)
					}
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// TestStartup: each Lua runs the script, and makes the calls that were counted when it was built.
func TestStartup(t *testing.T) {
	each(t, func(t *testing.T, s *Set, wrap []string) {
		s.emulator = wrap
		for _, v := range []Variant{Plain, Stub, Handler} {
			if v == Plain && len(wrap) > 0 {
				continue
			}
			p := start(t, s, Start{Workload: Startup, Variant: v, Wrap: wrap})
			r, err := p.Run(Request{Calls: 1})
			if err != nil {
				t.Fatal(err)
			}
			if r.Calls < 300_000 || r.Calls > 2_000_000 {
				t.Errorf("%s: %d calls", v, r.Calls)
			}
			if v == Handler && r.Recorded != 2*uint64(r.Calls) {
				t.Errorf("%d calls, %d records", r.Calls, r.Recorded)
			}
			if names := p.Functions(0); len(names) < 600 || !slices.Contains(names, "luaV_execute") || slices.Contains(names, "printf") {
				t.Errorf("functions: %q", names)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestRequestsThatMakeNoSense are answered, and the next one is served.
func TestRequestsThatMakeNoSense(t *testing.T) {
	s := unpacked(t, "amd64")
	for _, w := range []struct {
		st   Start
		bad  Request
		want string
	}{
		{Start{Workload: Listing}, Request{Calls: 1, Align: 3}, "alignment"},
		{Start{Workload: Listing}, Request{}, "calls"},
		{Start{Workload: Listing}, Request{Calls: 1, Parameter: -1}, "work"},
		{Start{Workload: Matrix}, Request{Calls: 1, Parameter: 3}, "divides"},
		{Start{Workload: IO}, Request{Calls: 1, Parameter: 1 << 20}, "65536"},
		{Start{Workload: Command, Command: []string{"false"}}, Request{Calls: 1}, "status 1"},
		{Start{Workload: Command, Command: []string{"sh", "-c", "kill -9 $$"}}, Request{Calls: 1}, "signal 9"},
		{Start{Workload: Command, Command: []string{"/nowhere"}}, Request{Calls: 1}, "No such file"},
	} {
		p := start(t, s, w.st)
		for range 2 {
			if _, err := p.Run(w.bad); err == nil || !strings.Contains(err.Error(), w.want) {
				t.Errorf("%+v: %v", w.bad, err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, st := range []Start{{Workload: "listening"}, {Workload: Startup, Variant: Clock}, {Workload: Listing, CPU: 4095}, {Workload: Command},
		{Workload: Listing, Path: "/nowhere"}} {
		if p, err := s.Start(t.Context(), st); err == nil {
			t.Errorf("%+v was started", st)
			p.Close()
		}
	}
	if _, err := Unpack(t.TempDir(), "riscv64"); err == nil {
		t.Error("there are programs for riscv64")
	}
}

// TestProcess: it is pinned, is who it says, ends with its input, and its death is told.
func TestProcess(t *testing.T) {
	s := unpacked(t, "amd64")
	p := start(t, s, Start{Workload: Listing, Variant: Stub, CPU: 0, Wrap: []string{"nice", "-n", "3"}})
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(status), "\nCpus_allowed_list:\t0\n") {
		t.Error("it is not pinned")
	}
	if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID())); exe != p.Path() {
		t.Errorf("it is %s, and says that it is %s", exe, p.Path())
	}
	if names := p.Functions(16); !slices.Equal(names, []string{"listing_stub_16"}) {
		t.Error(names)
	}
	self, err := os.FindProcess(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.Run(Request{Calls: 1}); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("after its death: %v", err)
		}
	}
	if err := p.Close(); err == nil {
		t.Error("its death is no error")
	}
}

// TestEnvironment: what is given for a run of a whole program reaches that program, and not the one that starts it.
func TestEnvironment(t *testing.T) {
	s := unpacked(t, "amd64")
	out := filepath.Join(t.TempDir(), "out")
	p := start(t, s, Start{Workload: Command, Env: []string{"WORKLOAD_TEST=a b"}, Wrap: []string{"env", "MORE=c"},
		Command: []string{"sh", "-c", `echo "$WORKLOAD_TEST $MORE" >>` + out + `; cat /proc/$PPID/environ >>` + out}})
	r, err := p.Run(Request{Calls: 2})
	if err != nil || r.Calls != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(got), "a b c\n"); n != 2 {
		t.Errorf("%q", got)
	}
	if strings.Contains(string(got), "WORKLOAD_TEST=") {
		t.Error("the program that starts the others has their environment")
	}
}

// TestSource: what it writes can be compiled by any compiler, and is a workload.
func TestSource(t *testing.T) {
	s := unpacked(t, "amd64")
	dir := t.TempDir()
	files, err := s.Source(dir)
	if err != nil {
		t.Fatal(err)
	}
	header := filepath.Join(dir, "hooks.h")
	if err := os.WriteFile(header, []byte("extern long entered;\n#define TRACED_ENTER(function) entered++\n#define TRACED_LEAVE(function) entered++\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hooks := filepath.Join(dir, "hooks.c")
	if err := os.WriteFile(hooks, []byte("#include <stdint.h>\nlong entered;\nuint64_t handler_kept(void) { return entered; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cc := range []string{"gcc", "clang"} {
		bin := filepath.Join(dir, cc)
		args := append([]string{"-O2", "-fno-optimize-sibling-calls", "-include", header, "-o", bin, hooks}, files...)
		if out, err := exec.Command(cc, append(args, "-lpthread")...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", cc, err, out)
		}
		for _, w := range []string{Listing, Call, Schedule, IO} {
			p := start(t, s, Start{Workload: w, Path: bin})
			for _, align := range Aligns() {
				r, err := p.Run(Request{Align: align, Calls: 10})
				if err != nil || r.Calls != 10 || r.Recorded != 20 {
					t.Errorf("%s, %s: %+v, %v", cc, w, r, err)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
