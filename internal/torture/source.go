package torture

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// gccTarball is the source of gcc as Debian's package gcc-12-source installs it. It still has the test suites.
const gccTarball = "/usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz"

// gccFolders are what is unpacked of it: 460 MB of 1 GB.
var gccFolders = []string{"gcc-12.2.0/gcc/testsuite", "gcc-12.2.0/libstdc++-v3/testsuite", "gcc-12.2.0/libgomp/testsuite", "gcc-12.2.0/libatomic/testsuite"}

// gccSource unpacks gcc's test suites below dir, unless an earlier call has, and returns the folder that they are in.
func gccSource(dir string) (string, error) {
	dest := filepath.Join(dir, "gcc-12.2.0")
	if _, err := os.Stat(dest); err == nil {
		return dest, nil
	}
	if _, err := os.Stat(gccTarball); err != nil {
		return "", fmt.Errorf("gcc's test suites: %w: install gcc-12-source", err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(dir, "part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	// Names match a directory's whole content. Ownership and times of the archive mean nothing here.
	args := append([]string{"-x", "-J", "-m", "--no-same-owner", "-f", gccTarball, "-C", part}, gccFolders...)
	if out, err := exec.Command("tar", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpacking gcc's test suites: %w\n%s", err, out)
	}
	return dest, place(filepath.Join(part, "gcc-12.2.0"), dest)
}

// place moves a finished folder to where it is looked for. Someone else may have been faster.
func place(from, to string) error {
	err := os.Rename(from, to)
	if _, there := os.Stat(to); there == nil && (errors.Is(err, os.ErrExist) || err != nil) {
		return nil
	}
	return err
}

// debianSource unpacks the source of a Debian package below dir by scripts/debsrc.
func debianSource(root, dir, name string) (string, error) {
	dest := filepath.Join(dir, name)
	if out, err := exec.Command(filepath.Join(root, "scripts/debsrc"), name, dest).CombinedOutput(); err != nil {
		return "", fmt.Errorf("the source of %s: %w\n%s", name, err, out)
	}
	return dest, nil
}

// csmith writes random program number seed into dir, unless it is there.
func csmith(dir, name string, seed int) error {
	file := filepath.Join(dir, name)
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	part, err := os.MkdirTemp(dir, "part-") // csmith leaves a file platform.info where it runs
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	c := exec.Command("csmith", "--seed", fmt.Sprint(seed), "--output", name)
	c.Dir = part
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("csmith --seed %d: %w\n%s", seed, err, out)
	}
	return os.Rename(filepath.Join(part, name), file)
}
