package symbols

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMaps(t *testing.T) {
	const text = `00400000-00401000 r-xp 00002000 fe:01 123                                /usr/bin/app
7f0000000000-7f0000001000 r-xp 00000000 00:2c 18446744073709551615           /opt/my lib/a\012b (deleted)
7f0000002000-7f0000003000 rwxp 00000000 00:00 0
7f0000004000-7f0000005000 rw-s 00000000 00:01 7                              /memfd:braid (deleted)
7ffd00000000-7ffd00001000 rw-p 00000000 00:00 0                              [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                      [vsyscall]
`
	got, err := ParseMaps(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Mapping{
		{Start: 0x400000, End: 0x401000, Offset: 0x2000, Exec: true, Dev: 0xfe<<32 | 1, Inode: 123, Path: "/usr/bin/app"},
		{Start: 0x7f0000000000, End: 0x7f0000001000, Exec: true, Dev: 0x2c, Inode: 1<<64 - 1, Path: "/opt/my lib/a\nb", Deleted: true},
		{Start: 0x7f0000002000, End: 0x7f0000003000, Exec: true},
		{Start: 0x7f0000004000, End: 0x7f0000005000, Dev: 1, Inode: 7, Path: "/memfd:braid", Deleted: true},
		{Start: 0x7ffd00000000, End: 0x7ffd00001000, Path: "[stack]"},
		{Start: 0xffffffffff600000, End: 0xffffffffff601000, Exec: true, Path: "[vsyscall]"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseMapsErrors(t *testing.T) {
	const good = "00400000-00401000 r-xp 00000000 fe:01 1 /a\n"
	for _, c := range []struct{ line, want string }{
		{"hello", `maps line 2: bad start "hello"`},
		{"2000-1000 r-xp 0 0:0 0", "maps line 2: empty range 0x2000-0x1000"},
		{"1000-2000 rx 0 0:0 0", `maps line 2: bad permissions "rx"`},
		{"1000-11112222333344445 r-xp 0 0:0 0", `maps line 2: bad end "11112222333344445"`},
		{"1000-2000 r-xp 0 0 0", `maps line 2: bad device ""`},
		{"1000-2000 r-xp 0 0:0 -1", `maps line 2: bad inode "-1"`},
		{strings.Repeat("a", maxMapsLine), "maps line 2: bufio.Scanner: token too long"},
	} {
		got, err := ParseMaps(strings.NewReader(good + c.line + "\n"))
		if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" {
			t.Error(diff)
		}
		if len(got) != 1 {
			t.Errorf("%.20q: %d mappings before the error, want 1", c.line, len(got))
		}
	}
}

func TestReadMapsOfItself(t *testing.T) {
	maps, err := ReadMaps(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range maps {
		found = found || m.Path == exe && m.Exec && m.File()
	}
	if !found {
		t.Errorf("no executable mapping of %s in %+v", exe, maps)
	}
	if _, err := ReadMaps(1 << 30); err == nil {
		t.Error("no error for a process that cannot exist")
	}
}

func FuzzMaps(f *testing.F) {
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add("00400000-00401000 r-xp 00002000 fe:01 123 /usr/bin/a\\012b (deleted)\n")
	f.Add("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n")
	f.Add("0-ffffffffffffffff r-xp ffffffffffffffff ffffffff:ffffffff 18446744073709551615 /\n")
	f.Fuzz(func(t *testing.T, text string) {
		maps, err := ParseMaps(strings.NewReader(text))
		if err == nil && len(maps) != strings.Count(strings.TrimSuffix(text, "\n")+"\n", "\n") && text != "" {
			t.Errorf("%d mappings from %q", len(maps), text)
		}
		// What was parsed must be usable: grouping and placing it must not panic for any numbers.
		img := &Image{Segments: []Segment{{Off: 0x1000, Vaddr: 0x2000, Filesz: 0x1000, Memsz: 0x1000, Exec: true}}}
		mods := modulesOf(0, maps, func(*Module) (*Image, FileID) { return img, FileID{} })
		ranges := 0
		for i := range mods {
			ranges += len(mods[i].Ranges)
			mods[i].Path = "[none]" // no file is opened
		}
		table := NewTable(mods, Options{})
		for _, m := range maps {
			if m.Exec && m.Path != "" {
				ranges--
				if s, _ := table.Lookup(m.Start); s.Module < 0 {
					t.Errorf("%#x is in no module", m.Start)
				}
			}
		}
		if ranges != 0 {
			t.Errorf("%d ranges too many", ranges)
		}
	})
}
