package symbols

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// largeLibrary returns the libstdc++ that g++ links, or the file that BRAID_BENCH_ELF names.
func largeLibrary(b *testing.B) string {
	path := os.Getenv("BRAID_BENCH_ELF")
	if path == "" {
		path = strings.TrimSpace(run(b, "g++", "-print-file-name=libstdc++.so.6"))
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		b.Fatal(err)
	}
	return path
}

func benchModule(b *testing.B) Module {
	path := largeLibrary(b)
	m := Registered(path, 0x7f0000000000, nil)
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	l, err := newImageReader(f, st.Size())
	if err != nil {
		b.Fatal(err)
	}
	m.BuildID = l.img.BuildID
	return m
}

// BenchmarkNewTable reads the file's tables and builds both indexes; nothing is demangled.
func BenchmarkNewTable(b *testing.B) {
	m := benchModule(b)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n = NewTable([]Module{m}, Options{}).Modules()[0].Image.Len()
	}
	b.ReportMetric(float64(n), "functions")
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "functions/s")
}

// spread returns entry addresses of the table's functions, in an order that caches do not like.
func spread(t *Table) []uint64 {
	var addrs []uint64
	for s := range t.Functions() {
		addrs = append(addrs, s.Addr)
	}
	out := make([]uint64, 0, 1<<16)
	for i := range 1 << 16 {
		out = append(out, addrs[uint64(i)*0x9e3779b97f4a7c15>>20%uint64(len(addrs))])
	}
	return out
}

func BenchmarkLookup(b *testing.B) {
	t := NewTable([]Module{benchModule(b)}, Options{})
	addrs := spread(t)
	i := 0
	for b.Loop() {
		if _, ok := t.Lookup(addrs[i&(1<<16-1)]); !ok {
			b.Fatal("not found")
		}
		i++
	}
}

func BenchmarkResolve32(b *testing.B) {
	t := NewTable([]Module{benchModule(b)}, Options{})
	addrs := spread(t)
	i := 0
	for b.Loop() {
		if _, ok := t.Resolve32(uint32(addrs[i&(1<<16-1)])); !ok {
			b.Fatal("not found")
		}
		i++
	}
}

func BenchmarkDemangle(b *testing.B) {
	t := NewTable([]Module{benchModule(b)}, Options{})
	var raw []string
	for s := range t.Functions() {
		raw = append(raw, s.Raw)
	}
	i := 0
	for b.Loop() {
		Demangle(raw[i%len(raw)])
		i++
	}
}
