package control

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"braid/inline/runtime"
)

// TestKilledWithinStubs kills a thread that does nothing but trace points, in a ring that it has filled many times: a
// slot that it had reserved and not written holds a record of the lap before, which must not be taken for its last.
func TestKilledWithinStubs(t *testing.T) {
	bin := build(t, "killed")
	dropped := 0
	for round := range 31 {
		s, err := NewSession(runtime.PolicyMain, 64<<10)
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(bin)
		c.Env = append(os.Environ(), s.Env())
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(1+round) * time.Millisecond)
		c.Process.Kill()
		c.Wait()
		seg := drain(t, s)[0]
		s.Close()
		if seg.Complete || !seg.Gone || len(seg.Slots) < 8<<10-2 {
			t.Fatalf("round %d: %d slots, complete %v", round, len(seg.Slots), seg.Complete)
		}
		dropped += seg.DroppedNewest
		for i := 1; i < len(seg.Slots); i++ {
			a, b := seg.Slots[i-1], seg.Slots[i]
			if d := int32(uint32(b>>32) - uint32(a>>32)); d < 0 || uint32(a) == uint32(b) {
				t.Fatalf("round %d: slot %d of %d: %#x then %#x", round, i, len(seg.Slots), a, b)
			}
		}
	}
	t.Logf("%d unwritten slots left out of 31 recordings", dropped)
}
