package targets

import (
	"slices"
	"strings"
	"testing"
)

// android is a process's main thread and whole name as they are one after another while zygote's child becomes an app.
func android(name string) []Process {
	cut := func(s string, n int) string { // SetThreadName takes 14 bytes, setArgv0 15
		if len(s) >= 15 {
			s = s[len(s)-15:]
		}
		return s[:min(n, len(s))]
	}
	return []Process{{Comm: "main", Name: "zygote64"}, {Comm: cut(name, 14), Name: "zygote64"}, {Comm: cut(name, 15), Name: "zygote64"},
		{Comm: cut(name, 15), Name: name}, {Comm: "re-initialized>", Name: name}, {Comm: "re-initialized>", Name: "<pre-initialized>"},
		{Comm: cut(name, 15), Name: "<pre-initialized>"}, {Comm: cut(name, 15), Name: name}}
}

func TestMatchStart(t *testing.T) {
	for _, c := range []struct {
		choice Choice
		name   string
		want   string // a letter for each step: n, u or y
	}{
		{Choice{Package: "com.android.systemui"}, "com.android.systemui", "nuuyyuuy"},
		{Choice{Package: "com.android.systemui"}, "com.android.systemui:screenshot", "nuuyyuuy"},
		{Choice{Package: "com.android.systemui"}, "org.example.android.systemui", "nuunnuun"},
		{Choice{Package: "com.android.systemui"}, "com.android.settings", "nnnnnunn"},
		{Choice{Package: "com.android.systemui", Components: []string{"main"}}, "com.android.systemui:screenshot", "nnnnnunn"},
		{Choice{Package: "com.android.systemui", Components: []string{":screenshot"}}, "com.android.systemui:screenshot", "nuuyyuuy"},
		{Choice{Package: "a.b"}, "a.b", "nuuyyuuy"},
		{Choice{Package: "a.b"}, "a.b:remote", "nuuyyuuy"},
		{Choice{Package: "a.b"}, "a.bc", "nnnnnunn"},
		{Choice{Package: "system_server"}, "system_server", "nuuyyuuy"},
		{Choice{Package: "com.example.app:remote"}, "com.example.app:remote", "nuuyyuuy"},
		{Choice{Package: "com.example.app"}, "com.example.app:a_component_with_a_long_name", "nnnyyuny"}, // its thread's name has nothing of the package

	} {
		got := ""
		for _, p := range android(c.name) {
			got += string("nuy"[c.choice.Match(&p)])
		}
		if got != c.want {
			t.Errorf("%v, process %s: %s, want %s", &c.choice, c.name, got, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		choice Choice
		p      Process
		want   Verdict
	}{
		{Choice{UID: 10123, HasUID: true}, Process{UID: 10123, Comm: "main", Name: "zygote64"}, Yes},
		{Choice{UID: 0, HasUID: true}, Process{UID: 10123}, No},
		{Choice{Package: "a.b", UID: 10123, HasUID: true}, Process{UID: 10124, Name: "a.b"}, No},
		{Choice{Package: "server"}, Process{Name: "/usr/bin/server"}, Yes},
		{Choice{Package: "server"}, Process{Name: "x", Exe: "/usr/bin/server"}, Yes},
		{Choice{Package: "server"}, Process{Name: "x", Exe: "/usr/bin/x", Comm: "server"}, Yes},
		{Choice{Package: "serve"}, Process{Name: "server", Exe: "/usr/bin/server", Comm: "server"}, No},
		{Choice{Package: "zygote64"}, Process{Name: "zygote64", Comm: "main"}, Yes},
		{Choice{Package: "a.b"}, Process{Name: "zygote64", Comm: "main"}, No},
	} {
		if got := c.choice.Match(&c.p); got != c.want {
			t.Errorf("%v, %+v: %v, want %v", &c.choice, c.p, got, c.want)
		}
	}
}

// TestComms checks that whatever the main thread is called on the way is among what the kernel compares.
func TestComms(t *testing.T) {
	for _, name := range []string{"a.b", "a.b:remote", "com.example.app", "com.example.app:r", "com.example.application:remote",
		"com.example.application:sandboxed0", "system_server", "com.example.x:0123456789abc"} {
		pkg, _, _ := strings.Cut(name, ":")
		for _, want := range []string{pkg, name} {
			c := &Choice{Package: want}
			comms := c.Comms()
			if len(comms) > 32 {
				t.Errorf("%s: %d names, the kernel side takes 32", want, len(comms))
			}
			for _, p := range android(name)[1:4] {
				if !c.commFits(p.Comm) {
					t.Errorf("%s: thread name %q is not among %q", want, p.Comm, comms)
				}
			}
		}
	}
	if got := Comms("com.android.systemui"); !slices.Equal(got, []string{"ndroid.systemu*", "com.android.sy*"}) {
		t.Errorf("%q", got)
	}
}

func TestCheck(t *testing.T) {
	for want, c := range map[string]Choice{
		"which processes":     {},
		"without folders":     {Package: "a/b"},
		"without folders and": {Package: "a.*"},
		"needs a package":     {Components: []string{":x"}, HasUID: true},
		"already":             {Package: "a:b", Components: []string{":x"}},
		"such as":             {Package: "a", Components: []string{":"}},
		"at most 8":           {Package: "a", Components: slices.Repeat([]string{"x"}, 9)},
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	for _, c := range []Choice{{Package: "a.b"}, {HasUID: true}, {Package: "a.b:c"}, {Package: "a", Components: []string{":x", "main"}}} {
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestParseUser(t *testing.T) {
	for s, want := range map[string]int{"0": 0, "10123": 10123, "u0_a123": 10123, "u10_a45": 1010045, "u0_i7": 99007, "u0_ai3": 90003,
		"u10_system": 1001000, "root": 0, "shell": 2000, "u0_a9999": 19999} {
		if got, err := ParseUser(s); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-1", "4294967295", "u0_a10000", "u0_i1000", "u0_x", "nobody-here", "u99999_a1"} {
		if got, err := ParseUser(s); err == nil {
			t.Errorf("%q: %d, want an error", s, got)
		}
	}
}

func TestAlike(t *testing.T) {
	var running []Process
	for _, n := range []string{"com.example.shop", "com.example.shop:remote", "com.android.systemui", "/system/bin/surfaceflinger", "org.other.workshop", "com.example.clock", "init"} {
		running = append(running, Process{Name: n})
	}
	for want, alike := range map[string][]string{
		"com.example.shopp":  {"com.example.shop", "com.example.shop:remote", "com.example.clock", "org.other.workshop"},
		"systemui":           {"com.android.systemui"},
		"surface_flinger":    {"surfaceflinger"},
		"org.unheard.of.qqq": nil,
	} {
		c := Choice{Package: want}
		got := c.Alike(running, 5)
		for _, a := range alike[:min(1, len(alike))] {
			if len(got) == 0 || got[0] != a {
				t.Errorf("%s: %q, want %q first", want, got, a)
			}
		}
		if alike == nil && len(got) > 0 {
			t.Errorf("%s: %q, want none", want, got)
		}
	}
}
