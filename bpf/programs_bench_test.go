package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// BenchmarkPrograms prints what one run of each program takes, as the kernel itself counts it, while
// perf bench sched pipe runs: pinned to one CPU and not recorded, recorded, and recorded on two CPUs, where each switch
// makes a CPU idle or busy. The kernel's counting takes some 20 ns of each run itself. The lower quartile of the rounds
// is printed: a machine that is busy only adds. Nobody reads meanwhile; the ring has room for all.
//
//	go test -run '^$' -bench Programs -benchtime 15x ./bpf
func BenchmarkPrograms(b *testing.B) {
	const loops = 20_000
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Fatal(err)
	}
	defer stats.Close()
	pinned := pipeCommand(loops)
	taken := map[string][]float64{}
	for b.Loop() {
		for name, command := range map[string][]string{"others": nil, "one CPU": pinned, "two CPUs": pinned[3:]} {
			r, err := Load(Options{RingBytes: 64 << 20})
			if err != nil {
				b.Fatal(err)
			}
			if command != nil { // with this process its children are targets
				if err := r.AddTarget(os.Getpid()); err != nil {
					b.Fatal(err)
				}
			} else {
				command = pinned
			}
			out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
			pipeTime(b, out, err)
			for _, m := range r.misses {
				s, err := m.prog.Stats()
				if err != nil {
					b.Fatal(err)
				}
				if s.RunCount > loops {
					k := strings.TrimPrefix(m.name, "kernel_missed_") + ", " + name
					taken[k] = append(taken[k], float64(s.Runtime.Nanoseconds())/float64(s.RunCount))
				}
			}
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	keys := make([]string, 0, len(taken))
	for k := range taken {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(os.Stderr, "%-32s %6.0f ns\n", k, quantile(taken[k], 0.25))
	}
}
