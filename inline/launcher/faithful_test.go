package launcher

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDependencies: dependency output is the compiler's own, byte for byte.
func TestDependencies(t *testing.T) {
	commands := []string{
		"-MMD -c main.c", "-MD -c main.c -o sub/x.o", "-MMD -MF deps -c main.c", "-MMD -MP -MT target -c main.c -o y.o",
		"-MMD -MQ $target -MF deps -c part.c", "-MMD main.c part.c -o OUT", "-Wp,-MMD,deps -c main.c", "-M main.c",
		"-MM -MG main.c part.c", "-MMD -S part.c -o q.s",
	}
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.write("sub/keep", "")
		for _, c := range commands {
			results := map[bool]string{}
			for _, traced := range []bool{false, true} {
				words := append([]string{cc}, strings.Fields(c)...)
				if traced {
					words = append([]string{"braid", "cc"}, words...)
				}
				text := s.mustRun(words...)
				for _, name := range s.files() {
					if filepath.Ext(name) == ".d" || name == "deps" {
						text += name + ":\n" + s.read(name)
						if err := os.Remove(filepath.Join(s.directory, name)); err != nil {
							t.Fatal(err)
						}
					}
				}
				results[traced] = text
			}
			if results[false] != results[true] || !strings.Contains(results[true], ".h") {
				t.Errorf("%s:\nplain:\n%s\nwith braid:\n%s", c, results[false], results[true])
			}
		}
	})
}

// files lists the sandbox's files.
func (s *sandbox) files() []string {
	s.t.Helper()
	var names []string
	err := filepath.WalkDir(s.directory, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(s.directory, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// TestSameFiles: a command leaves the same files behind as without braid.
func TestSameFiles(t *testing.T) {
	commands := []string{
		"-c main.c", "main.c part.c", "-save-temps -c main.c", "-save-temps=obj -O2 main.c part.c -o out/x",
		"-g -gsplit-dwarf -c main.c", "-g -gsplit-dwarf main.c part.c -o out/x", "--coverage -c main.c -o out/m.o",
		"-fstack-usage -c main.c -o out/m.o", "-S main.c part.c", "-fsyntax-only main.c", "-c broken.c", "-O2 broken.c main.c",
		"-c main.c absent.c", "-E main.c -o main.i",
	}
	for _, cc := range compilers {
		t.Run(cc, func(t *testing.T) {
			t.Parallel()
			for _, c := range commands {
				var lists [2][]string
				for i := range lists {
					s := newSandbox(t)
					s.addTestdata()
					s.write("broken.c", "int f(void) { return x; }\n")
					s.write("out/keep", "")
					words := append([]string{cc}, strings.Fields(c)...)
					if i == 1 {
						words = append([]string{"braid", "cc"}, words...)
					}
					s.run("", words...)
					lists[i] = s.files()
					s.noLitter()
				}
				if !slices.Equal(lists[0], lists[1]) {
					t.Errorf("%s:\nplain      %q\nwith braid %q", c, lists[0], lists[1])
				}
			}
		})
	}
}

// TestFaithful: with no function chosen, the object is the one that the compiler makes by way of assembly.
func TestFaithful(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		for _, flags := range []string{"", "-g", "-g -gz", "-O2", "-O2 -g -ffunction-sections", "-O3 -march=native", "-Os -fPIC -g3",
			"-O2 -fcf-protection=full -fstack-protector-all"} {
			for _, source := range []string{"main.c", "part.c", "thing.cc"} {
				driver := cc
				if filepath.Ext(source) == ".cc" {
					driver = cplus(cc)
				}
				words := append([]string{driver}, strings.Fields(flags)...)
				if cc == "gcc" {
					s.mustRun(append(words, "-fno-ipa-ra", "-c", source, "-o", "plain.o")...)
				} else {
					s.mustRun(append(words, "-S", source, "-o", "plain.s")...)
					s.mustRun(append(words, "-g0", "-Wno-unused-command-line-argument", "-c", "plain.s", "-o", "plain.o")...)
				}
				words = append([]string{"braid", "cc", "--skip", "*"}, words...)
				s.mustRun(append(words, "-c", source, "-o", "braid.o")...)
				if s.read("plain.o") != s.read("braid.o") {
					t.Errorf("%s %s: the objects differ", flags, source)
				}
			}
		}
	})
}
