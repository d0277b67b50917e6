package timeline

import "testing"

func TestOwnersAt(t *testing.T) {
	const here, far = 0x7000_1000, 0x1_7000_1000 // the same low half
	o := owners{
		5: {{here, 5, 100, 200}, {here, 9, 300, 400}, {here, 5, 500, 0}},
		6: {{here, 6, 100, 200}, {far, 7, 150, 0}},
		8: {{here, 10, 100, 0}, {here, 11, 300, 0}},
	}
	for _, c := range []struct {
		index   uint32
		counter uint64
		want    uint32
		why     string
	}{
		{4, 150, 4, "not contested"},
		{5, 50, 5, "before the first"},
		{5, 150, 5, "the first"},
		{5, 250, 5, "a thread that goes on when the first has been closed"},
		{5, 300, 9, "the second, from its beginning"},
		{5, 450, 9, "between the second and the first's return"},
		{5, 600, 5, "the first again"},
		{6, 120, 6, "the only one there"},
		{6, 170, 6, "both there: the index stands for both"},
		{6, 300, 7, "only the other one is left"},
		{8, 350, 11, "loaded over one whose end was not seen"},
	} {
		if c.index == 6 && c.counter == 170 {
			o[6][0].method = 60 // so that the index is none of the two
		}
		if got := o.at(c.index, c.counter); got != c.want {
			t.Errorf("index %d at %d: method %d, want %d: %s", c.index, c.counter, got, c.want, c.why)
		}
		o[6][0].method = 6
	}
}
