package inline

import (
	"math/rand/v2"
	"testing"
)

func TestMethods(t *testing.T) {
	m := NewMethods(0)
	rng := rand.New(rand.NewPCG(1, 9))
	addr := make(map[uint64]uint32)
	for len(addr) < 5000 { // grows many times
		a := 0x7f00_0000_0000 | uint64(rng.Uint32())
		if Narrow(a) {
			addr[a] = m.Add(a)
		}
	}
	for a, i := range addr {
		if m.Narrow(uint32(a)) != i || m.Wide(a) != i || m.Resumed(a) != i || m.Add(a) != i {
			t.Fatalf("%#x has indices %d, %d, %d", a, i, m.Narrow(uint32(a)), m.Wide(a))
		}
		if r := m.Row(i); r.Addr != a || r.State != MethodKnown {
			t.Fatalf("%#x is %+v", a, r)
		}
	}
	if m.Collisions() != 0 || m.Len() != 5001 {
		t.Errorf("%d collisions, %d methods", m.Collisions(), m.Len())
	}
}

func TestMethodsAmbiguous(t *testing.T) {
	m := NewMethods(0)
	a, b := m.Add(1<<40+0x1000), m.Add(2<<40+0x1000)
	i := m.Narrow(0x1000)
	if i == a || i == b || m.Row(i).State != MethodAmbiguous || m.Collisions() != 1 {
		t.Errorf("index %d is %+v, %d collisions", i, m.Row(i), m.Collisions())
	}
	if m.Wide(1<<40+0x1000) != a || m.Resumed(1<<40+0x1000) != i {
		t.Error("a whole pointer tells them apart, a resumed record must find the entry")
	}
}

func TestMethodsUnresolved(t *testing.T) {
	m := NewMethods(0)
	i := m.Narrow(0x1000)
	if r := m.Row(i); r.State != MethodUnresolved || r.Wide {
		t.Errorf("%+v", r)
	}
	if m.Narrow(0x1000) != i || m.Wide(1<<40+0x1000) != i || !m.Row(i).Wide {
		t.Error("a word and its whole pointer are one method")
	}
	if m.Wide(2<<40+0x1000) == i {
		t.Error("two pointers are two methods")
	}
	w := m.Wide(3<<40 + 0x2000)
	if m.Narrow(0x2000) != w {
		t.Error("a whole pointer and its word are one method")
	}
	if z := m.Wide(0); z == Unknown {
		t.Error("the null pointer is not the unknown method")
	}
}

// TestMethodsThumb: records may hold the bit that selects the instruction set, symbols do not.
func TestMethodsThumb(t *testing.T) {
	m := NewMethods(0)
	m.Thumb = true
	i := m.Add(0x1_0400)
	if m.Narrow(0x1_0401) != i || m.Narrow(0x1_0400) != i || m.Wide(0x1_0401) != i || m.Low(0x1_0401) != i || m.Resumed(0x1_0401) != i {
		t.Error("a method has several indices")
	}
	if u := m.Narrow(0x2_0001); m.Narrow(0x2_0000) != u || m.Wide(0x2_0001) != u || m.Row(u).Addr != 0x2_0000 {
		t.Errorf("%+v", m.Row(u))
	}
}

// TestMethodsLow: framed records hold low halves that entries of one slot can not.
func TestMethodsLow(t *testing.T) {
	m := NewMethods(0)
	a, b := m.Add(0x7f12_0000_0001), m.Add(0x7f12_0000_0100)
	if m.Low(1) != a || m.Low(0x100) != b {
		t.Error("a known method is not found by its low half")
	}
	if z := m.Low(0); z == Unknown || m.Low(0) != z || m.Row(z).State != MethodUnresolved {
		t.Errorf("low half 0 is %d", z)
	}
	m.Add(0x7f13_0000_0001)
	if r := m.Row(m.Low(1)); r.State != MethodAmbiguous || m.Collisions() != 1 {
		t.Errorf("%+v, %d collisions", r, m.Collisions())
	}
}
