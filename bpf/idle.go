package bpf

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"braid/internal/cpus"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// maxIdleCPUs is MAX_IDLE_CPUS of idle.h.
const maxIdleCPUs = 64

// cpuLine is struct cpu_line of idle.h.
type cpuLine struct {
	Foreigner, Idle, Target, Stronger, Weaker uint64
	_                                         [3]uint64
}

// configureIdle says which CPUs there are, and which are stronger than which. all are Options.CPUs.
func configureIdle(spec *ebpf.CollectionSpec, all []cpus.CPU) error {
	n := int(spec.Maps["cpus"].MaxEntries)
	if n > maxIdleCPUs {
		return nil
	}
	if all == nil {
		all = cpus.Read(os.DirFS("/"))
	}
	clusters := cpus.Clusters(all)
	lines := make([]cpuLine, n)
	for i := range clusters {
		for _, cpu := range clusters[i].CPUs {
			for j := range clusters {
				switch {
				case cpu >= n: // more CPUs than the kernel can have
				case j < i:
					lines[cpu].Stronger |= word(clusters[j].CPUs)
				case j > i:
					lines[cpu].Weaker |= word(clusters[j].CPUs)
				}
			}
		}
	}
	spec.Maps["cpus"].Contents = nil
	for cpu := range lines {
		spec.Maps["cpus"].Contents = append(spec.Maps["cpus"].Contents, ebpf.MapKV{Key: uint32(cpu), Value: lines[cpu]})
	}
	spec.Maps["usable"].Contents = []ebpf.MapKV{{Key: uint32(0), Value: word(onlineOf(all))}}
	for name, value := range map[string]any{
		"tells_idle": true, "has_clusters": len(clusters) > 1, "possible_cpus": ^uint64(0) >> (maxIdleCPUs - n),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// word has a bit for each CPU of a list, as the words of idle.h.
func word(list []int) (w uint64) {
	for _, cpu := range list {
		if cpu < maxIdleCPUs {
			w |= 1 << cpu
		}
	}
	return w
}

func onlineOf(all []cpus.CPU) (list []int) {
	for _, c := range cpus.Online(all) {
		list = append(list, c.ID)
	}
	return list
}

// visitCPUs runs on each CPU for a moment, so that each switches once and says whether it is idle: one that sleeps would
// not, until it has something to do. CPUs on which this process may not run are left out, and count as busy until then.
func visitCPUs() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread, which may run anywhere it was sent, ends here
		for cpu := range maxIdleCPUs {
			var one unix.CPUSet
			one.Set(cpu)
			_ = unix.SchedSetaffinity(0, &one) // fails for a CPU that is not there, or off
		}
	}()
	<-done
}

// onlineCheck keeps the kernel's word of CPUs that are online.
type onlineCheck struct {
	usable *ebpf.Map // nil without unit sched, and where Options.CPUs was given

	mu   sync.Mutex
	next time.Time
	last uint64
}

// onlinePeriod is how often it is looked whether CPUs went or came. In between, a CPU that went counts as idle.
const onlinePeriod = 100 * time.Millisecond

func (c *onlineCheck) look(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.usable == nil || now.Before(c.next) {
		return
	}
	c.next = now.Add(onlinePeriod)
	text, err := os.ReadFile("/" + cpus.Dir + "/online")
	if err != nil {
		return
	}
	list, err := cpus.Parse(string(text))
	if err != nil || word(list) == c.last {
		return
	}
	if c.usable.Update(uint32(0), word(list), ebpf.UpdateAny) == nil {
		c.last = word(list)
	}
}
