package unwind

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every row of the C libraries' tables is what readelf makes of it.
func TestRowsAgreeWithReadelf(t *testing.T) {
	libc, err := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	if err != nil || len(libc) == 0 {
		t.Fatalf("no C library: %v", err)
	}
	for _, c := range []struct {
		path string
		arch *Arch
		regs map[string]int
	}{
		{libc[0], AMD64, map[string]int{"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "r8": 8, "r9": 9,
			"r10": 10, "r11": 11, "r12": 12, "r13": 13, "r14": 14, "r15": 15, "ra": 16}},
		{"/usr/aarch64-linux-gnu/lib/libc.so.6", ARM64, arm64Names()},
	} {
		f, err := os.Open(c.path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		table, err := Read(f)
		if err != nil {
			t.Fatal(err)
		}
		if table.arch != c.arch {
			t.Errorf("%s: the wrong processor", c.path)
		}
		// It ends with 1 if it does not find the separate debug file.
		out, err := exec.Command("readelf", "--wide", "--debug-dump=frames-interp", c.path).Output()
		if err != nil && len(out) == 0 {
			t.Fatal(err)
		}
		rows, wrong := 0, 0
		for _, want := range interpreted(t, out) {
			rows++
			r := table.row(want.loc)
			if r == nil {
				t.Errorf("%s: no row for %x", c.path, want.loc)
				continue
			}
			got := map[string]string{"CFA": cfaText(r, c.regs)}
			for name := range want.columns {
				if i, ok := c.regs[name]; ok {
					got[name] = ruleText(r.regs[i])
				} else if name != "CFA" {
					delete(want.columns, name) // vectors
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want.columns) {
				if wrong++; wrong < 10 {
					t.Errorf("%s at %x: %v, readelf says %v", c.path, want.loc, got, want.columns)
				}
			}
		}
		if rows < 5000 {
			t.Errorf("%s: only %d rows", c.path, rows)
		}
	}
}

func arm64Names() map[string]int {
	m := map[string]int{"sp": 31, "ra": 30}
	for i := range 31 {
		m[fmt.Sprintf("x%d", i)] = i
	}
	return m
}

// interpretedRow is a row of readelf's.
type interpretedRow struct {
	loc     uint64
	columns map[string]string
}

var address = regexp.MustCompile(`^[0-9a-f]{16} `)

// interpreted parses what readelf says. Of rows with the same address the last counts.
func interpreted(t *testing.T, out []byte) (rows []interpretedRow) {
	t.Helper()
	var columns []string
	entry := false
	sc := bufio.NewScanner(bytes.NewReader(out))
	for sc.Scan() {
		line := sc.Text()
		f := strings.Fields(line)
		switch {
		case strings.Contains(line, " FDE "):
			entry = true
		case strings.Contains(line, " CIE "):
			entry = false
		case strings.HasPrefix(strings.TrimSpace(line), "LOC "):
			columns = f[1:]
		case entry && address.MatchString(line) && len(f) == len(columns)+1:
			loc, err := strconv.ParseUint(f[0], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			r := interpretedRow{loc, map[string]string{}}
			for i, name := range columns {
				if r.columns[name] = f[i+1]; f[i+1] == "s" {
					r.columns[name] = "u"
				}
			}
			if n := len(rows); n > 0 && rows[n-1].loc == loc {
				rows = rows[:n-1]
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func cfaText(r *row, names map[string]int) string {
	if r.cfaExpr != nil {
		return "exp"
	}
	for name, i := range names {
		if i == r.cfaReg {
			return fmt.Sprintf("%s%+d", name, r.cfaOff)
		}
	}
	return "?"
}

func ruleText(r rule) string {
	switch r.kind {
	case ruleOffset:
		return fmt.Sprintf("c%+d", r.value)
	case ruleValue:
		return fmt.Sprintf("v%+d", r.value)
	case ruleExpr:
		return "exp"
	case ruleExprValue:
		return "vexp"
	}
	return "u" // readelf does not tell undefined from nothing; what is the same is taken for nothing
}

func TestNoTable(t *testing.T) {
	if _, err := Read(bytes.NewReader([]byte("no ELF file"))); err == nil {
		t.Error("text has tables")
	}
	out := filepath.Join(t.TempDir(), "none.o")
	c := exec.Command("gcc", "-c", "-x", "c", "-fno-asynchronous-unwind-tables", "-o", out, "-")
	c.Stdin = strings.NewReader("int f(void) { return 1; }")
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Read(f); !errors.Is(err, ErrNoTable) {
		t.Errorf("a file without tables: %v", err)
	}
}

// bytesMemory is memory from 0x1000 on.
type bytesMemory []byte

func (m bytesMemory) Word(addr uint64) (uint64, bool) {
	c := cursor{b: m}
	if addr < 0x1000 || addr-0x1000 > uint64(len(m)) {
		return 0, false
	}
	c.off = int(addr - 0x1000)
	v := c.u64()
	return v, c.err == nil
}

// FuzzTable: neither tables nor stacks that make no sense do harm.
func FuzzTable(f *testing.F) {
	self, err := elf.Open("/proc/self/exe")
	if err == nil {
		if s := self.Section(".eh_frame"); s != nil {
			if b, err := s.Data(); err == nil {
				f.Add(b[:min(len(b), 2000)], make([]byte, 200), true)
			}
		}
		self.Close()
	}
	libc, _ := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	for _, path := range libc {
		e, err := elf.Open(path)
		if err != nil {
			f.Fatal(err)
		}
		b, err := e.Section(".eh_frame").Data()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:3000], make([]byte, 300), true)
		f.Add(b[:3000], make([]byte, 300), false)
		e.Close()
	}
	f.Fuzz(func(t *testing.T, section, stack []byte, eh bool) {
		for _, arch := range []*Arch{AMD64, ARM64} {
			table := &Table{arch: arch, rows: map[uint64]*row{}}
			table.scan(section, 0x10000, eh)
			w := Walker{Arch: arch, Limit: 20, FramePointers: true, Find: func(uint64) Code { return Code{Known: true, Table: table} }}
			for i, e := range table.entries {
				if i == 100 {
					break
				}
				var regs Regs
				for n := range regs.R {
					regs.R[n] = 0x1000 + uint64(n)*8
				}
				regs.PC = e.start + (e.end-e.start)/2
				frames, _, _, _ := w.Walk(nil, &regs, bytesMemory(stack))
				if len(frames) == 0 || len(frames) > w.Limit {
					t.Fatalf("%d frames", len(frames))
				}
			}
		}
	})
}
