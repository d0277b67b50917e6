// Package android says where things are on a phone, whose root has no /tmp, /var and /run.
package android

import (
	"os"
	"runtime"
)

// Folder is where the shell user, and root, may write files and run programs.
const Folder = "/data/local/tmp"

// Here reports whether this is Android; a braid that was built for Linux runs there as well.
func Here() bool {
	_, err := os.Stat("/system/build.prop")
	return runtime.GOOS == "android" || err == nil
}

// Dir is a folder of braid's own on a phone, or what it is elsewhere.
func Dir(onPhone, elsewhere string) string {
	if Here() {
		return Folder + "/braid/" + onPhone
	}
	return elsewhere
}

// UseTemp makes os.TempDir a folder that is there, for this process and those that it starts, where nobody has set TMPDIR and
// there is no /tmp.
func UseTemp() {
	if os.Getenv("TMPDIR") != "" {
		return
	}
	if _, err := os.Stat(os.TempDir()); err == nil {
		return
	}
	for _, dir := range []string{Folder, "/var/tmp", "/dev"} {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			os.Setenv("TMPDIR", dir)
			return
		}
	}
}
