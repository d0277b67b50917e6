package tracefile

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// onlyFile fails unless dir holds exactly the file, with this content.
func onlyFile(t *testing.T, dir, name, content string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("the folder holds %v, not just %s", entries, name)
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || string(b) != content {
		t.Errorf("the old file is not intact: %d bytes, %v", len(b), err)
	}
}

func TestReplaceOnlyAtClose(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.braid")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteMeta(sampleMeta); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Fatal("the old file was touched before Close")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Abort() // must not remove the finished file
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o640 || uint64(st.Size()) != w.Size() {
		t.Errorf("stat: %v, mode %v, size %d of %d", err, st.Mode(), st.Size(), w.Size())
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	if err := w.WriteMeta(sampleMeta); !errors.Is(err, ErrClosed) {
		t.Errorf("write after Close: %v", err)
	}
	if err := w.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	r, err := Open(path)
	if err != nil || !r.Complete() || len(r.Problems()) != 0 {
		t.Fatalf("open: %v, %v", err, r)
	}
	r.Close()
}

func TestNewFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.braid")
	writeSample(t, path)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}

func TestAbort(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.braid")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
	w.Abort()
	onlyFile(t, dir, "app.braid", "old")
	if err := w.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("close after Abort: %v", err)
	}
}

func TestThroughSymlink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "real", "a"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(filepath.Dir(target), 0o777), os.WriteFile(target, nil, 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	writeSample(t, link)
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", st, err)
	}
	r, err := Open(target)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

func TestCreateErrors(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, os.DevNull, filepath.Join(dir, "no", "such", "folder"), filepath.Join(os.DevNull, "x")} {
		if w, err := Create(path); err == nil {
			w.Abort()
			t.Errorf("%s: no error", path)
		}
	}
	for _, path := range []string{dir, os.DevNull, filepath.Join(dir, "none")} {
		if _, err := Open(path); err == nil {
			t.Errorf("open %s: no error", path)
		}
	}
}

func TestRefusedSections(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.WriteSection(KindEnd); err == nil {
		t.Error("an end section was written")
	}
	part := make([]byte, 1<<20)
	parts := make([][]byte, MaxContent>>20+1)
	for i := range parts {
		parts[i] = part
	}
	if err := w.WriteSection(KindEvents, parts...); err == nil {
		t.Error("a section beyond MaxContent was written")
	}
	if err := errors.Join(w.WriteMeta(sampleMeta), w.Close()); err != nil {
		t.Errorf("after refused sections: %v", err)
	}
}

// fill writes sections until one fails.
func fill(path string) error {
	w, err := Create(path)
	if err != nil {
		return err
	}
	b := make([]byte, 100_000)
	for range 1000 {
		if err := w.WriteSection(KindEvents, b); err != nil {
			if again := w.WriteSection(KindEvents, b); again != err {
				return errors.New("the error did not stay")
			}
			return err
		}
	}
	return w.Close()
}

func TestDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("not root: the full disk is left to TestFileSizeLimit")
		return
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v; is a file still open?", err)
		}
	}()
	old := strings.Repeat("old", 1000)
	path := filepath.Join(dir, "app.braid")
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	err := fill(path)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("error: %v", err)
	}
	onlyFile(t, dir, "app.braid", old)

	// The disk is so full that only the end does not fit: what was written is still in the writer's buffer.
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, st.Bavail*uint64(st.Bsize)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteMeta(sampleMeta); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
	os.Remove(filepath.Join(dir, "fill"))
	onlyFile(t, dir, "app.braid", old)
}

func TestFileSizeLimit(t *testing.T) {
	const env = "BRAID_TEST_FILL"
	if path := os.Getenv(env); path != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		if err := fill(path); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("error: %v", err)
		}
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "app.braid")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFileSizeLimit$")
	cmd.Env = append(os.Environ(), env+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	onlyFile(t, dir, "app.braid", "old")
}

// A recorder that is killed leaves a file that reads up to its last flushed section.
func TestFlushedSectionsSurvive(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(filepath.Join(dir, "app.braid"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := errors.Join(w.WriteMeta(sampleMeta), w.WriteRing(sampleRing), w.Flush()); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".app.braid.tmp-*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	b, err := os.ReadFile(left[0])
	if err != nil {
		t.Fatal(err)
	}
	if r := read(t, b); r.Len() != 2 || r.Complete() {
		t.Errorf("%d sections, complete %v", r.Len(), r.Complete())
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	b := appendFileHeader(nil)
	for i := range uint32(3 * maxProblems) {
		b = sectionHeader{kind: KindMeta, index: i, crc: 1}.append(b)
	}
	r := read(t, b)
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Problems()); n != maxProblems+1 {
		t.Errorf("%d problems", n)
	}
	if _, err := r.Meta(); !errors.Is(err, ErrNoSection) {
		t.Errorf("meta: %v", err)
	}
}

func BenchmarkWriteRing(b *testing.B) {
	ring := &Ring{Slots: make([]uint64, 4<<20)}
	b.SetBytes(int64(len(ring.Slots) * 8))
	b.ReportAllocs()
	for b.Loop() {
		w, err := Create(filepath.Join(b.TempDir(), "a"))
		if err != nil {
			b.Fatal(err)
		}
		if err := w.WriteRing(ring); err != nil {
			b.Fatal(err)
		}
		w.Abort()
	}
}

func BenchmarkReadRing(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a")
	w, err := Create(path)
	if err != nil {
		b.Fatal(err)
	}
	ring := &Ring{Slots: make([]uint64, 4<<20)}
	if err := errors.Join(w.WriteRing(ring), w.Close()); err != nil {
		b.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		for s := range r.Sections(KindRing) {
			var got *Ring
			if got, buf, err = r.Ring(s, buf); err != nil || len(got.Slots) != 4<<20 {
				b.Fatal(err)
			}
		}
	}
}
