package cpus

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func root(text map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, t := range text {
		m[name] = &fstest.MapFile{Data: []byte(t)}
	}
	return m
}

// phone has four little, two middle and two big processors; number 6 is off, and has no frequency then.
func phone() map[string]string {
	f := map[string]string{Dir + "/online": "0-5,7\n", Dir + "/cpufreq/policy0/x": "", Dir + "/cpuidle/x": ""}
	info := ""
	for cpu := range 8 {
		capacity, part := 325, "0xd05"
		switch {
		case cpu >= 6:
			capacity, part = 1024, "0xd44"
		case cpu >= 4:
			capacity, part = 743, "0xd41"
		}
		dir := fmt.Sprintf("%s/cpu%d/", Dir, cpu)
		f[dir+"cpu_capacity"] = fmt.Sprintln(capacity)
		f[dir+"topology/thread_siblings_list"] = fmt.Sprintln(cpu)
		if cpu != 6 {
			f[dir+"cpufreq/cpuinfo_min_freq"] = "300000\n"
			f[dir+"cpufreq/cpuinfo_max_freq"] = fmt.Sprintln(capacity * 2800)
			f[dir+"cpufreq/scaling_cur_freq"] = fmt.Sprintln(600000 + cpu)
		}
		info += fmt.Sprintf("processor\t: %d\nCPU implementer\t: 0x41\nCPU part\t: %s\n\n", cpu, part)
	}
	f["proc/cpuinfo"] = info
	return f
}

func text(all []CPU) (s string) {
	for _, k := range Clusters(all) {
		s += fmt.Sprintf("%s %s %d; ", k.Name, Format(k.CPUs), k.Capacity)
	}
	return s
}

func TestRead(t *testing.T) {
	all := Read(root(phone()))
	if len(all) != 8 || len(Online(all)) != 7 {
		t.Fatalf("%+v", all)
	}
	want := CPU{ID: 7, Online: true, Capacity: 1024, Cluster: "big", Model: "Cortex-X1", MinKHz: 300000, MaxKHz: 1024 * 2800, KHz: 600007}
	if d := cmp.Diff(want, all[7]); d != "" {
		t.Error(d)
	}
	want = CPU{ID: 6, Capacity: 1024, Cluster: "big", Model: "Cortex-X1"}
	if d := cmp.Diff(want, all[6]); d != "" {
		t.Error(d)
	}
	desktop := map[string]string{Dir + "/online": "0-3", "proc/cpuinfo": "processor : 2\nmodel name : Any\n"}
	for cpu, siblings := range []string{"0,2", "1,3", "0,2", "1,3"} {
		desktop[fmt.Sprintf("%s/cpu%d/topology/thread_siblings_list", Dir, cpu)] = siblings
	}
	all = Read(root(desktop))
	if d := cmp.Diff(CPU{ID: 2, Online: true, Cluster: "all", Model: "Any", Siblings: []int{0, 2}}, all[2]); d != "" {
		t.Error(d)
	}
	if all := Read(root(nil)); len(all) != 1 || !all[0].Online || all[0].Cluster != "all" {
		t.Errorf("of nothing: %+v", all)
	}
}

func TestClusters(t *testing.T) {
	without := func(name string) map[string]string {
		f := phone()
		maps.DeleteFunc(f, func(k, _ string) bool { return k == name })
		return f
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"by capacity": {phone(), "big 6-7 1024; middle 4-5 743; little 0-3 325; "},
		// Number 6 is off and has no frequency: nothing is known of it.
		"by frequency":    {without(Dir + "/cpu2/cpu_capacity"), "big 7 1024; middle 4-5 743; little 0-3 325; "},
		"one that is off": {without(Dir + "/cpu6/cpu_capacity"), "big 7 1024; middle 4-5 743; little 0-3 325; "},
		"nothing":         {nil, "all 0 1024; "},
	} {
		if got := text(Read(root(c.files))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	f := without(Dir + "/cpu2/cpu_capacity")
	delete(f, Dir+"/cpu0/cpufreq/cpuinfo_max_freq")
	if all := Read(root(f)); text(all) != "all 0-7 1024; " || all[3].Capacity != 0 {
		t.Errorf("neither: %s %+v", text(all), all)
	}
	of := func(capacity ...int) (all []CPU) {
		for i, c := range capacity {
			all = append(all, CPU{ID: i, Capacity: c})
		}
		return all
	}
	for want, all := range map[string][]CPU{
		"big 0 1000; middle1 1 700; middle2 2 500; little 3 200; ": of(1000, 700, 500, 200),
		"all 0-2 1024; ":             of(1010, 1024, 980), // favoured cores
		"big 1 1024; little 0 960; ": of(960, 1024),
	} {
		if got := text(all); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, list := range []string{"0-2,7", "3", "1,3,5-6"} {
		if l, err := Parse(list + "\n"); err != nil || Format(l) != list {
			t.Errorf("%s: %v %v", list, l, err)
		}
	}
	if l, err := Parse("0-2,7,1"); err != nil || !slices.Equal(l, []int{0, 1, 2, 7}) {
		t.Errorf("%v %v", l, err)
	}
	for _, bad := range []string{"", "a", "3-1", "-1", "1,", "0-99999999"} {
		if l, err := Parse(bad); err == nil {
			t.Errorf("%q is %v", bad, l)
		}
	}
}
