package control

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"braid/inline"
	"braid/inline/runtime"
)

// TestSignalsWithinStubs has a thread that does almost nothing but trace points interrupted by signals whose handler has
// trace points as well. Wherever in a stub a signal lands, every call of both must be there, and the calls must nest.
func TestSignalsWithinStubs(t *testing.T) {
	bin := build(t, `
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
static volatile int over; static volatile long handled;
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) int inner(int x) { __asm__ volatile(""); return x - 1; }
void handler(int s) { handled += inner(inner(s)) == s - 2; }
static pthread_t target;
__attribute__((section(".text.braid_notrace"))) static void *nag(void *p) {
  while (!over) { pthread_kill(target, SIGUSR1); pthread_kill(target, SIGUSR2); for (volatile int i = 0; i < 300; i++) ; } return p; }
int main(void) { // each may interrupt the other's handler, and neither its own: the stack is bounded
  struct sigaction a = {.sa_handler = handler}; sigaction(SIGUSR1, &a, 0); sigaction(SIGUSR2, &a, 0);
  target = pthread_self(); pthread_t t; pthread_create(&t, 0, nag, 0);
  volatile int s = 0;
  for (int i = 0; i < 2000003; i++) s = leaf(s);
  over = 1; pthread_join(t, 0);
  a.sa_handler = SIG_IGN; sigaction(SIGUSR1, &a, 0); sigaction(SIGUSR2, &a, 0);
  printf("%ld\n", handled);
  return 0;
}`)
	s, err := NewSession(runtime.PolicyMain, 256<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := exec.Command(bin)
	c.Env = append(os.Environ(), s.Env())
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var handled int
	if _, err := fmt.Sscan(strings.TrimSpace(string(out)), &handled); err != nil || handled == 0 {
		t.Fatalf("%d signals handled (%q): %v", handled, out, err)
	}
	seg := drain(t, s)[0]
	m := inline.NewMethods(8)
	for _, v := range seg.Slots {
		if uint32(v) > 15 {
			m.Add(uint64(uint32(v)))
		}
	}
	d, err := (&inline.Decoder{Methods: m}).Decode(&seg.Segment, nil)
	if err != nil {
		t.Fatal(err)
	}
	entries, exits := count(seg.Segment)
	if want := 1 + 2000003 + 3*handled; entries != want || exits != want {
		t.Errorf("%d entries and %d exits with %d signals, want %d of both", entries, exits, handled, want)
	}
	if len(d.Open) != 0 || d.Orphans != 0 || d.Stats.Damaged != 0 || d.Stats.Ambiguous != 0 {
		t.Errorf("open %d, orphans %d, %+v", len(d.Open), d.Orphans, d.Stats)
	}
	back := 0
	for i := 1; i < len(seg.Slots); i++ {
		if int32(uint32(seg.Slots[i]>>32)-uint32(seg.Slots[i-1]>>32)) < 0 {
			back++
		}
	}
	t.Logf("%d signals, %d steps back in time", handled, back)
}
