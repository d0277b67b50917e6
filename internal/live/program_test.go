package live

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"braid/control"
	"braid/inline/runtime"
	"braid/inline/stub"
	"braid/internal/counter"
	"braid/internal/trigger"
	"braid/symbols"
)

// build returns a program of control's tests, with stubs.
func build(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	bin, s, o := filepath.Join(dir, name), filepath.Join(dir, "stubs.s"), filepath.Join(dir, "runtime.o")
	asm, err := exec.Command("gcc", "-O1", "-dp", "-fno-ipa-ra", "-S", "-o", "-", "../../control/testdata/"+name+".c").Output()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := stub.Insert(&out, asm, stub.Options{Arch: "amd64"}); err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.Object("amd64")
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{s: out.Bytes(), o: rt} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("gcc", "-o", bin, s, o, "-pthread").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// TestTracedProgram follows a program whose method beat sleeps for 1 ms, again and again. Each call takes longer than the
// limit, none as long as the other rule's.
func TestTracedProgram(t *testing.T) {
	s, err := control.NewSession(runtime.PolicyMain, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := exec.Command(build(t, "beat"))
	c.Env = append(os.Environ(), s.Env())
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	areas, err := s.Areas()
	if err != nil || len(areas) != 1 {
		t.Fatalf("%d areas, %v", len(areas), err)
	}
	defer areas[0].Close()
	conf, err := trigger.Parse("test", []byte("version: 1\nprograms: [{name: beat}]\ntriggers:\n"+
		"  - {name: slow, method: {name: be*, longer: 900us}}\n  - {name: never, method: {name: beat, longer: 1h}}\n"+
		"  - {name: mean, stack: {pattern: main > beat, mean_longer: 900us, calls: 10}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	clock, err := NewClock()
	if err != nil {
		t.Fatal(err)
	}
	p := New(c.Process.Pid, conf.Needs(&trigger.Target{Name: "beat"}).Ring, clock)
	var mods []symbols.Module
	for _, m := range areas[0].Modules() {
		one := symbols.Registered(m.Path, m.Bias, m.BuildID)
		one.Pid, one.Ranges = c.Process.Pid, []symbols.Range{{Start: m.Low, End: m.High}}
		mods = append(mods, one)
	}
	p.SetModules(mods)
	e := trigger.NewEngine(conf)
	fired, seen := map[string]int{}, 0
	// Two rules make observations of a call: that there are 30 does not mean 30 calls.
	for deadline := time.Now().Add(20 * time.Second); (seen < 30 || p.Stats().Slots < 60) && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var threads []Thread
		for _, th := range areas[0].Threads() {
			threads = append(threads, Thread{th, th.Tid, th.Tid == c.Process.Pid})
		}
		before, err := counter.Boottime()
		if err != nil {
			t.Fatal(err)
		}
		obs, err := p.Poll(threads, counter.Now(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		seen += len(obs)
		for _, o := range obs {
			if o.Value < 900e3 || o.Target != c.Process.Pid || o.Tid != c.Process.Pid || o.Time > before+1e9 || o.Time < before-60e9 {
				t.Errorf("observation %+v at %d", o, before)
			}
			for _, f := range e.Observe(o) {
				if fired[f.Rule.Name]++; f.Method != "beat" || !strings.Contains(f.Reason, "beat took") {
					t.Errorf("fired %+v", f)
				}
			}
		}
	}
	if st := p.Stats(); seen < 30 || st.Slots < 60 || st.Skipped != 0 || st.Decoding.Damaged+st.Decoding.Ambiguous != 0 {
		t.Errorf("%d observations, stats %+v", seen, st)
	}
	if fired["slow"] != 1 || fired["mean"] != 1 || fired["never"] != 0 { // cooldown
		t.Errorf("fired %v", fired)
	}
}
