package sample

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"braid/internal/tracefile"
)

// kernelSymbol is a function of the kernel.
type kernelSymbol struct {
	addr   uint64
	name   string
	module string // empty: the kernel itself
}

// parseKallsyms reads the functions in /proc/kallsyms, in order of addresses: "address type name", and for modules a tab and
// "[module]". Addresses that may not be seen are 0; those are left out.
func parseKallsyms(r io.Reader) (all []kernelSymbol) {
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		addr, rest, _ := strings.Cut(sc.Text(), " ")
		kind, name, _ := strings.Cut(rest, " ")
		a, err := strconv.ParseUint(addr, 16, 64)
		if err != nil || a == 0 || kind != "t" && kind != "T" && kind != "w" && kind != "W" {
			continue
		}
		name, module, _ := strings.Cut(name, "\t")
		if strings.HasPrefix(name, "$") { // arm64 marks where code and data begin
			continue
		}
		all = append(all, kernelSymbol{a, strings.Clone(name), strings.Clone(strings.Trim(module, "[]"))})
	}
	slices.SortStableFunc(all, func(a, b kernelSymbol) int { return cmp.Compare(a.addr, b.addr) })
	return all
}

const kernelPath = "[kernel.kallsyms]"

// maxKernelFunction is the end of a function after which no other follows.
const maxKernelFunction = 64 << 10

// kernelNames adds what kernel addresses are called.
func kernelNames(out *tracefile.Frames, addrs map[uint64]struct{}) {
	var all []kernelSymbol
	if f, err := os.Open("/proc/kallsyms"); err == nil {
		all = parseKallsyms(f)
		f.Close()
	}
	nameKernel(out, slices.Sorted(maps.Keys(addrs)), all)
}

// nameKernel adds a mapping for the kernel and one for each of its modules, with the functions in which the addresses
// lie. Functions that programs were made of at run time have a mapping each, as they lie scattered.
func nameKernel(out *tracefile.Frames, addrs []uint64, all []kernelSymbol) {
	if len(all) == 0 {
		out.Mappings = append(out.Mappings, tracefile.Mapping{Flags: tracefile.MappingKernel | tracefile.MappingHidden,
			Start: addrs[0], End: addrs[len(addrs)-1] + 1, Path: kernelPath})
		return
	}
	index := map[string]uint32{}
	var last uint64
	for _, addr := range addrs {
		i, found := slices.BinarySearchFunc(all, addr, func(s kernelSymbol, addr uint64) int { return cmp.Compare(s.addr, addr) })
		if !found {
			i--
		}
		if i < 0 {
			continue
		}
		for i > 0 && all[i-1].addr == all[i].addr { // the first of several names
			i--
		}
		s := all[i]
		end := s.addr + maxKernelFunction
		for _, next := range all[i:] {
			if next.addr > s.addr {
				end = min(end, next.addr)
				break
			}
		}
		if addr >= end || s.addr == last {
			continue
		}
		last = s.addr
		path := kernelPath
		if s.module != "" {
			path = "[" + s.module + "]"
		}
		m, ok := index[path]
		if !ok || s.module == "bpf" {
			m = uint32(len(out.Mappings))
			index[path] = m
			out.Mappings = append(out.Mappings, tracefile.Mapping{Flags: tracefile.MappingKernel, Start: s.addr, End: end, Path: path})
		}
		out.Mappings[m].End = end
		out.Functions = append(out.Functions, tracefile.Function{Mapping: m, Start: s.addr, End: end, Name: s.name, Raw: s.name})
	}
}
