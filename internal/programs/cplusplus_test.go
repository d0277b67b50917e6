package programs

import (
	"path/filepath"
	"testing"
)

// TestCPlusPlus: a C++ program prints the same with stubs, recorded or not; its methods' names are shown as a
// programmer writes them; and the calls of its main thread are counted as callgrind counts them.
func TestCPlusPlus(t *testing.T) {
	source, err := filepath.Abs("testdata/objects.cc")
	if err != nil {
		t.Fatal(err)
	}
	compile := func(t *testing.T, driver, flags string) string {
		t.Helper()
		bin := filepath.Join(t.TempDir(), "objects")
		mustRun(t, filepath.Dir(bin), nil, "sh", "-c", driver+" -pthread "+flags+" -o "+bin+" "+source)
		return bin
	}
	want := run(t, t.TempDir(), nil, compile(t, plain.plus, "-O2"))
	if want.code != 0 || lastOf(want.stdout) != "static destroyed" {
		t.Fatalf("it fails without stubs: %+v", want)
	}
	withCompilers(t, func(t *testing.T, cc compiler) {
		for _, flags := range []string{"-O0", "-O2 -static", withoutTailCalls} {
			t.Run(flags, func(t *testing.T) {
				bin := compile(t, cc.plus, flags)
				if got := run(t, t.TempDir(), nil, bin); got != want {
					t.Errorf("not recorded: %+v, want %+v", got, want)
				}
				got, file := recorded(t, t.TempDir(), nil, []string{"--threads", "all"}, bin)
				if got != want {
					t.Errorf("recorded: %+v, want %+v", got, want)
				}
				report := reportOf(t, file)
				for name, n := range map[string]uint64{
					"descend(int)": 21*100 + 2*4 + 6, "climb(int)": 11 + 6, "shapes::Square::area() const": 3, "shapes::Square::name[abi:cxx11]() const": 3,
					"Buffer<double, 2>::sum() const": 1, "int apply<std::function<int (int)> >(std::function<int (int)>, int)": 5,
					"Early::~Early()": 1,
				} {
					if report[name] != n {
						t.Errorf("%d calls of %s, want %d", report[name], name, n)
					}
				}

				o, c := exact(t, t.TempDir(), nil, []*image{openImage(t, bin)}, 2, flags == withoutTailCalls, bin)
				if o != want {
					t.Errorf("under callgrind: %+v, want %+v", o, want)
				}
				allEnded(t, c)
			})
		}
	})
}
