package tptest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Trace is a trace that was imported by the trace processor. It may be used from one goroutine at a time.
type Trace struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	errs    strings.Builder
	problem string
}

var install = sync.OnceValues(Install)

// Load imports the trace file at path. The caller closes the Trace.
func Load(path string) (*Trace, error) {
	dir, err := install()
	if err != nil {
		return nil, err
	}
	script, err := os.CreateTemp("", "braid-engine-*.js")
	if err != nil {
		return nil, fmt.Errorf("start trace processor: %w", err)
	}
	defer os.Remove(script.Name()) // node has read it once the trace is loaded
	_, err = script.Write(engineJS)
	if err = errors.Join(err, script.Close()); err != nil {
		return nil, fmt.Errorf("start trace processor: %w", err)
	}
	t := &Trace{cmd: exec.Command("node", script.Name(), dir, path)}
	t.cmd.Stderr = &t.errs
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start trace processor: %w", err)
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start trace processor: %w", err)
	}
	t.out = bufio.NewReaderSize(out, 1<<20)
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start trace processor: %w", err)
	}
	a, err := t.answer()
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("import trace: %w", err)
	}
	t.problem = a.Problem
	return t, nil
}

// Close ends the trace processor.
func (t *Trace) Close() {
	t.in.Close()
	t.cmd.Process.Kill()
	t.cmd.Wait()
}

type answer struct {
	Error   string
	Problem string
	Columns []string
	Rows    [][]any
}

func (t *Trace) answer() (*answer, error) {
	line, err := t.out.ReadBytes('\n')
	if err != nil {
		t.cmd.Wait()
		return nil, fmt.Errorf("the trace processor ended: %w\n%s", err, &t.errs)
	}
	var a answer
	d := json.NewDecoder(strings.NewReader(string(line)))
	d.UseNumber()
	if err := d.Decode(&a); err != nil {
		return nil, fmt.Errorf("the trace processor answered what is no JSON: %w", err)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return &a, nil
}

// Query runs SQL and returns the rows as text, NULL as "NULL", and the names of the columns.
func (t *Trace) Query(sql string) (columns []string, rows [][]string, err error) {
	request, err := json.Marshal(map[string]string{"sql": sql})
	if err != nil {
		return nil, nil, err
	}
	if _, err := t.in.Write(append(request, '\n')); err != nil {
		t.cmd.Wait() // it has gone, or else the write would not fail
		return nil, nil, fmt.Errorf("query: %w\n%s", err, &t.errs)
	}
	a, err := t.answer()
	if err != nil {
		return nil, nil, fmt.Errorf("query %q: %w", sql, err)
	}
	rows = make([][]string, len(a.Rows))
	for i, row := range a.Rows {
		rows[i] = make([]string, len(row))
		for j, cell := range row {
			if rows[i][j] = fmt.Sprint(cell); cell == nil {
				rows[i][j] = "NULL"
			}
		}
	}
	return a.Columns, rows, nil
}

// Check says what is wrong with the import: an empty file or one that ends within a packet, and every statistic of
// the trace processor that counts errors, lost data or skipped packets.
func (t *Trace) Check() error {
	if t.problem != "" {
		return errors.New(t.problem)
	}
	_, rows, err := t.Query(`select name, idx, severity, value from stats where value > 0
		and (severity in ('error', 'data_loss') or name glob '*_error' or name glob '*_errors' or name glob '*_skipped*')`)
	if err != nil {
		return err
	}
	var all []error
	for _, r := range rows {
		all = append(all, fmt.Errorf("import statistic %s (index %s, %s): %s", r[0], r[1], r[2], r[3]))
	}
	return errors.Join(all...)
}

// Open imports the trace file at path for a test, and fails it if anything is wrong with the import. The Trace is
// closed when the test ends.
func Open(t testing.TB, path string) *Trace {
	t.Helper()
	tr, err := Load(path)
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(path), err)
	}
	t.Cleanup(tr.Close)
	if err := tr.Check(); err != nil {
		t.Errorf("%s: %v", filepath.Base(path), err)
	}
	return tr
}

// Rows runs SQL for a test and returns each row as one string, its cells separated by a space.
func (t *Trace) Rows(tb testing.TB, sql string) []string {
	tb.Helper()
	_, rows, err := t.Query(sql)
	if err != nil {
		tb.Fatal(err)
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = strings.Join(r, " ")
	}
	return out
}

// Orphans returns how many slices join neither a thread's nor a process's track, directly or through parents.
func (t *Trace) Orphans(tb testing.TB) string {
	tb.Helper()
	return t.Rows(tb, `with recursive up(leaf, track) as (
			select id, id from track
			union all select up.leaf, track.parent_id from up join track on track.id = up.track where track.parent_id is not null),
		owned as (select leaf from up where track in (select id from thread_track union select id from process_track))
		select count(*) from slice where track_id not in (select leaf from owned)`)[0]
}
