package main_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// lineReader reads a stream line by line without ever blocking its writer.
type lineReader struct {
	lines chan string
}

func newLineReader(r io.Reader) *lineReader {
	l := &lineReader{make(chan string, 1<<16)}
	go func() {
		defer close(l.lines)
		for sc := bufio.NewScanner(r); sc.Scan(); {
			l.lines <- sc.Text()
		}
	}()
	return l
}

// find returns what stands after the prefix in the next line that has it.
func (l *lineReader) find(t *testing.T, prefix string) string {
	t.Helper()
	late := time.After(hang)
	for {
		select {
		case line, ok := <-l.lines:
			if !ok {
				t.Fatalf("it ended without saying %q", prefix)
			}
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return rest
			}
		case <-late:
			t.Fatalf("it did not say %q within %v", prefix, hang)
		}
	}
}

func (l *lineReader) drain() {
	for range l.lines {
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// until waits for a condition that must come true.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for late := time.Now().Add(hang); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%s: not within %v", what, hang)
		}
	}
}

// firstProgram is the newest eBPF program of before the tests.
var firstProgram = func() ebpf.ProgramID {
	last := ebpf.ProgramID(0)
	for {
		next, err := ebpf.ProgramGetNextID(last)
		if err != nil {
			return last
		}
		last = next
	}
}()

// orphanPrograms returns braid's eBPF programs that were loaded since the tests began and that no process holds. The
// kernel frees programs a little after their holder has ended. Other recorders on the machine hold theirs.
func orphanPrograms() (left []string) {
	for range 500 {
		if left = orphansNow(); len(left) == 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return left
}

func orphansNow() (left []string) {
	found := map[ebpf.ProgramID]string{}
	for last := firstProgram; ; {
		next, err := ebpf.ProgramGetNextID(last)
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			return []string{err.Error()}
		}
		last = next
		p, err := ebpf.NewProgramFromID(next)
		if err != nil {
			continue // gone meanwhile
		}
		info, err := p.Info()
		p.Close()
		if err == nil {
			found[next] = info.Name
		}
	}
	if len(found) == 0 {
		return nil
	}
	for id := range heldPrograms() {
		delete(found, id)
	}
	for id, name := range found {
		left = append(left, fmt.Sprintf("%d %s", id, name))
	}
	return left
}

var progLine = regexp.MustCompile(`(?m)^prog_id:\s*(\d+)$`)

// heldPrograms are the programs that processes hold, themselves or through a link.
func heldPrograms() map[ebpf.ProgramID]bool {
	held := map[ebpf.ProgramID]bool{}
	files, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, m := range progLine.FindAllSubmatch(b, -1) {
			if n, err := strconv.ParseUint(string(m[1]), 10, 32); err == nil {
				held[ebpf.ProgramID(n)] = true
			}
		}
	}
	return held
}
