package main_test

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"braid/internal/perfetto/tptest"
)

var commands = []string{"cc", "demo", "doctor", "dump", "export", "record", "report"}

// Help goes to stdout, says how to use the command, and fits 80 columns.
func TestHelp(t *testing.T) {
	all := must(t, "--help")
	for _, c := range commands {
		if !strings.Contains(all, "\n  "+c+" ") {
			t.Errorf("braid --help does not name %s", c)
		}
		o := braid(t, c, "--help")
		if o.code != 0 || o.stderr != "" || !strings.Contains(o.stdout, "braid "+c) {
			t.Errorf("braid %s --help: exit code %d, %q, %q", c, o.code, o.stdout, o.stderr)
		}
		for line := range strings.Lines(all + o.stdout) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("braid %s --help is wider than 80 columns: %s", c, line)
			}
		}
	}
	if o := braid(t, "--version"); o.code != 0 || !strings.HasPrefix(o.stdout, "braid version ") {
		t.Errorf("--version: %d, %q", o.code, o.stdout)
	}
}

// A command line that makes no sense ends with 2, says why, and shows the usage.
func TestUsageErrors(t *testing.T) {
	file, _ := record(t, 0, "--kernel", "none", "--", programs["target"], "count", "3")
	for _, c := range []struct {
		args string
		says string
	}{
		{"nonsense", `unknown command "nonsense"`},
		{"--nonsense", "unknown flag: --nonsense"},
		{"record", "give either a command, or -p PID"},
		{"record -p 1 -- true", "give either a command, or -p PID"},
		{"record -p -5", "-5"},
		{"record -p x", "invalid argument"},
		{"record --nonsense -- true", "unknown flag"},
		{"record --ring 1x -- true", "32M"},
		{"record --ring 0 -- true", "32M"},
		{"record --ring -4K -- true", "32M"},
		{"record --ring 64G -- true", "at most 16G"},
		{"record --threads [ -- true", "pattern"},
		{"record --threads a,,b -- true", "pattern"},
		{"record --kernel waits -- true", "want sched, io, wait, sample or none"},
		{"record --kernel sched,none -- true", "want sched, io, wait, sample or none"},
		{"record --for 3 -- true", "invalid argument"},
		{"record --for -3s -- true", "must not be negative"},
		{"report", "want one trace file"},
		{"report a b", "want one trace file"},
		{"report --top -1 FILE", "must not be negative"},
		{"report --sort size FILE", "self"},
		{"report --thread [ FILE", "pattern"},
		{"export", "want one trace file"},
		{"export --format pdf FILE", "perfetto"},
		{"dump", "want one trace file"},
		{"dump --section rings FILE", "ring"},
		{"dump --limit x FILE", "invalid argument"},
		{"demo extra", ""},
		{"doctor extra", ""},
		{"cc", "ompiler"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "FILE", file))
		o := braid(t, args...)
		if o.code != 2 || o.stdout != "" || !strings.Contains(o.stderr, c.says) {
			t.Errorf("braid %s: exit code %d, stdout %q, stderr %q", c.args, o.code, o.stdout, o.stderr)
		}
		if low := strings.ToLower(o.stderr); !strings.Contains(low, "usage: braid") && !strings.Contains(low, "try: braid cc") {
			t.Errorf("braid %s shows no usage: %q", c.args, o.stderr)
		}
	}
}

// Every name of a section that dump's help offers can be asked for.
func TestDumpSections(t *testing.T) {
	file, _ := record(t, 0, "--", programs["target"], "count", "3")
	whole := must(t, "dump", file)
	for name, title := range map[string]string{"meta": "meta", "clock": "clock", "processes": "processes", "modules": "modules",
		"symbols": "symbols", "ring": "ring", "events": "kernel events", "lost": "lost"} {
		part := must(t, "dump", "--section", name, file)
		if !strings.Contains(part, "\n"+title+", ") || len(part) >= len(whole) {
			t.Errorf("--section %s shows %q", name, part)
		}
		if name == "meta" && !strings.Contains(part, `"processors"`) {
			t.Errorf("the machine's processors are not in %q", part)
		}
	}
}

// The text report fits 80 columns.
func TestReportWidth(t *testing.T) {
	file, _ := record(t, 0, "--threads", "all", "--", programs["target"], "threads", "11")
	for _, args := range [][]string{{}, {"--sort", "total"}, {"--top", "3"}, {"--thread", "worker-*"}} {
		for line := range strings.Lines(must(t, append(append([]string{"report"}, args...), file)...)) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("report %v is wider than 80 columns: %s", args, line)
			}
		}
	}
}

// What is no trace file is refused with a reason.
func TestWrongFiles(t *testing.T) {
	dir := t.TempDir()
	good, _ := record(t, 0, "--kernel", "none", "--", programs["target"], "count", "3")
	perfetto := filepath.Join(dir, "x.pftrace")
	must(t, "export", good, "-o", perfetto)
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newer := append([]byte(nil), whole...)
	binary.LittleEndian.PutUint32(newer[12:], 99)
	binary.LittleEndian.PutUint32(newer[20:], crc32.Checksum(newer[:20], crc32.MakeTable(crc32.Castagnoli)))
	for _, c := range []struct{ path, says string }{
		{programs["target"], "ELF"},
		{perfetto, "Perfetto"},
		{write("empty", nil), "empty"},
		{write("text", []byte("hello, this is a text\n")), "not a braid trace"},
		{write("short", whole[:11]), ""},
		{write("newer", newer), "99"},
		{filepath.Join(dir, "missing"), "no such file"},
		{dir, "not a regular file"},
	} {
		for _, cmd := range [][]string{{"report"}, {"report", "--json"}, {"dump"}, {"export", "-o", filepath.Join(dir, "out")}} {
			o := braid(t, append(cmd, c.path)...)
			if o.code != 1 || o.stdout != "" || !strings.Contains(o.stderr, c.path) || !strings.Contains(o.stderr, c.says) || strings.Count(o.stderr, "\n") != 1 {
				t.Errorf("%v %s: exit code %d, stdout %q, stderr %q", cmd, filepath.Base(c.path), o.code, o.stdout, o.stderr)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, "out")); err == nil {
			t.Errorf("export of %s wrote a file", c.path)
		}
	}
}

// A damaged file gives what can be read, says what can't, and ends with 3.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	good, _ := record(t, 0, "--", programs["target"], "count", "1009")
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	find := func(kind uint32) int { // the first section of a kind
		for at := 24; ; {
			if binary.LittleEndian.Uint32(whole[at+4:]) == kind {
				return at
			}
			at += 32 + int(binary.LittleEndian.Uint64(whole[at+16:])+7)&^7
		}
	}
	flip := func(at int) []byte {
		b := append([]byte(nil), whole...)
		b[at] ^= 0x40
		return b
	}
	const modules, symbols, ring, events, meta, lost, end = 4, 5, 6, 7, 1, 8, 255
	for _, c := range []struct {
		name  string
		file  []byte
		calls map[string]int // what must still be there
	}{
		{"without its end", whole[:find(end)], map[string]int{"leaf": 1009}},
		{"cut within its end", whole[:len(whole)-3], map[string]int{"leaf": 1009}},
		{"with more after its end", append(append([]byte(nil), whole...), "more"...), map[string]int{"leaf": 1009}},
		{"with a flipped bit in an event", flip(find(events) + 40), map[string]int{"leaf": 1009}},
		{"with a flipped bit in the meta section", flip(find(meta) + 40), map[string]int{"leaf": 1009}},
		{"with a flipped bit in the lost section", flip(find(lost) + 34), map[string]int{"leaf": 1009}},
		{"with a flipped bit in a section's header", flip(find(lost) + 17), map[string]int{"leaf": 1009}},
		{"with a flipped bit in its ring", flip(find(ring) + 200), nil},
		{"with a flipped bit in its modules", flip(find(modules) + 40), nil},
		{"with a flipped bit in its symbols", flip(find(symbols) + 40), nil},
		{"cut in its ring", whole[:find(ring)+200], nil},
		{"with a flipped bit in its header", flip(21), map[string]int{"leaf": 1009}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, "damaged.braid")
			if err := os.WriteFile(path, c.file, 0o644); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, "out.pftrace")
			for _, cmd := range [][]string{{"report"}, {"report", "--json"}, {"dump"}, {"export", "-o", out}} {
				o := braid(t, append(cmd, path)...)
				if o.code != 3 || !strings.Contains(o.stderr, "damaged") || !strings.Contains(o.stderr, "offset ") {
					t.Errorf("%v: exit code %d, stderr %q", cmd, o.code, o.stderr)
				}
				if cmd[0] != "export" && o.stdout == "" {
					t.Errorf("%v shows nothing", cmd)
				}
				if len(cmd) == 2 {
					parseReport(t, o.stdout).calls(t, c.calls)
				}
			}
			tptest.Open(t, out)
		})
	}
}
