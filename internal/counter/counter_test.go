package counter

import "testing"

func TestTakeAdvances(t *testing.T) {
	a, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	if a.Before > a.After || b.Before <= a.After || b.Boottime <= a.Boottime {
		t.Errorf("samples do not advance: %+v then %+v", a, b)
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
