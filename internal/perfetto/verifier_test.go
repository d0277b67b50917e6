package perfetto

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"braid/internal/perfetto/tptest"
)

// The tests rely on the verifier: it has to notice what is wrong.
func TestVerifierNotices(t *testing.T) {
	trace := func(f func(w *Writer, th *Track)) []byte {
		var b bytes.Buffer
		w := NewWriter(&b, Options{Start: start})
		w.Process(Process{Pid: 100, Name: "app"})
		th := w.Thread(100, 100, "app")
		w.Begin(th, start, w.Name("f"))
		w.End(th, start+10)
		f(w, th)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	nothing := func(*Writer, *Track) {}
	for what, c := range map[string]struct {
		trace   []byte
		check   string // part of what Check says, "" if nothing
		orphans string
	}{
		"nothing": {trace(nothing), "", "0"},
		"a slice on an unknown track": {trace(func(w *Writer, _ *Track) {
			o := &Track{uuid: 999}
			w.Begin(o, start+5, w.Name("f"))
			w.End(o, start+6)
		}), "", "1"},
		"a name that was never written": {trace(func(w *Writer, th *Track) {
			lost := w.Name("lost")
			th.names.add(uint32(lost))
			w.Begin(th, start+20, lost)
			w.End(th, start+21)
		}), "interned_data_tokenizer_errors", "0"},
		"a cut file":     {trace(nothing)[:len(trace(nothing))-3], "ends within a packet", "0"},
		"an empty file":  {nil, "empty", "0"},
		"a damaged file": {append(trace(nothing), 0x7f, 1, 2), "packet", "0"},
	} {
		path := filepath.Join(t.TempDir(), "a.pftrace")
		if err := os.WriteFile(path, c.trace, 0o666); err != nil {
			t.Fatal(err)
		}
		tr, err := tptest.Load(path)
		if err != nil { // refusing the whole file is noticing, too
			if c.check == "" {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		err = tr.Check()
		if c.check == "" && err != nil || c.check != "" && (err == nil || !strings.Contains(err.Error(), c.check)) {
			t.Errorf("%s: check says %v, not %q", what, err, c.check)
		}
		if n := tr.Orphans(t); n != c.orphans {
			t.Errorf("%s: %s orphans, want %s", what, n, c.orphans)
		}
		if _, _, err := tr.Query("select nonsense"); err == nil {
			t.Errorf("%s: a wrong query gave no error", what)
		}
		tr.Close()
	}
}
