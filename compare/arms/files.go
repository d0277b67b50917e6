package arms

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"braid/compare/arm"
)

// fileOf finds the file of a command that a name means: its program without a name, a library that it is linked with by the library's
// name or the name's beginning ("libm", "libm.so.6"), or any file by a path. Links are followed: it is where the file itself is.
func fileOf(command, name string) (string, error) {
	program, err := exec.LookPath(command)
	if err == nil {
		program, err = real(program)
	}
	if err != nil {
		return "", &arm.Unavailable{Why: err.Error()}
	}
	switch {
	case name == "":
		return program, nil
	case strings.Contains(name, "/"):
		path, err := real(name)
		if err != nil {
			return "", &arm.Unavailable{Why: err.Error()}
		}
		return path, nil
	}
	for _, l := range libraries(program) {
		if base := filepath.Base(l); base == name || strings.HasPrefix(base, name+".") {
			return real(l)
		}
	}
	return "", &arm.Unavailable{Why: fmt.Sprintf("%s is not linked with a library %s", program, name), Next: "give the library's path: --functions PATH:GLOB"}
}

func real(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// libraries are the files of the libraries that a program is linked with, and of those that these are linked with, as far as they are found
// where the dynamic linker would look. ld.so(8).
func libraries(program string) (found []string) {
	for todo := []string{program}; len(todo) > 0; todo = todo[1:] {
		e, err := elf.Open(todo[0])
		if err != nil {
			continue
		}
		needed, _ := e.ImportedLibraries()
		dirs := searched(e, todo[0])
		e.Close()
		for _, n := range needed {
			for _, d := range dirs {
				path := filepath.Join(d, n)
				if _, err := os.Stat(path); err != nil {
					continue
				}
				if !slices.Contains(found, path) {
					found = append(found, path)
					todo = append(todo, path)
				}
				break
			}
		}
	}
	return found
}

// searched are the folders in which the dynamic linker looks for what a file needs.
func searched(e *elf.File, file string) []string {
	var dirs []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		paths, _ := e.DynString(tag)
		for _, p := range paths {
			for d := range strings.SplitSeq(p, ":") {
				dirs = append(dirs, strings.NewReplacer("$ORIGIN", filepath.Dir(file), "${ORIGIN}", filepath.Dir(file)).Replace(d))
			}
		}
	}
	dirs = append(dirs, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))...)
	confs, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf")
	for _, c := range append(confs, "/etc/ld.so.conf") {
		b, _ := os.ReadFile(c)
		for l := range strings.Lines(string(b)) {
			if l = strings.TrimSpace(l); strings.HasPrefix(l, "/") {
				dirs = append(dirs, l)
			}
		}
	}
	triple := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	return append(dirs, "/lib/"+triple, "/usr/lib/"+triple, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/system/lib64", "/vendor/lib64",
		"/apex/com.android.runtime/lib64/bionic")
}
