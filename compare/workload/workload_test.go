package workload

import (
	"testing"
)

// unpacked returns the programs for a processor.
func unpacked(t *testing.T, arch string) *Set {
	t.Helper()
	s, err := Unpack(t.TempDir(), arch)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestListing(t *testing.T) {
	p, err := unpacked(t, "amd64").Start(t.Context(), Start{Workload: Listing, Variant: Handler})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Run(Request{Align: 16, Calls: 1009})
	if err != nil {
		t.Fatal(err)
	}
	if r.Calls != 1010 || r.Recorded != 2020 || r.WallNS <= 0 {
		t.Errorf("%+v", r)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
