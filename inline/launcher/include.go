package launcher

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"braid/inline/include"
)

// includeVariables name the directories that gcc and clang look into behind those of -isystem. Variables and no options,
// because commands that run untouched (-E, -M) must find the header, too.
var includeVariables = []string{"C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"}

// offerHeader has compilers that this process starts find braid.h, behind all that their commands name.
func offerHeader() error {
	directory, err := includeDirectory()
	if err != nil {
		return err
	}
	for _, name := range includeVariables {
		value := directory
		if old := os.Getenv(name); old != "" { // an empty one would mean the current directory as well
			value = old + string(os.PathListSeparator) + directory
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("offering %s: %w", include.Name, err)
		}
	}
	return nil
}

// includeDirectory is the directory that holds this version's braid.h and nothing else, in the user's cache directory. It
// must stay there: dependency files name it.
func includeDirectory() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("placing %s: %w", include.Name, err)
	}
	sum := sha256.Sum256([]byte(include.Header))
	parent := filepath.Join(cache, "braid")
	directory := filepath.Join(parent, "include-"+hex.EncodeToString(sum[:8]))
	if info, err := os.Stat(filepath.Join(directory, include.Name)); err == nil && info.Size() == int64(len(include.Header)) {
		return directory, nil
	}
	if err := wholeDirectory(parent, directory, func(made string) error {
		return os.WriteFile(filepath.Join(made, include.Name), []byte(include.Header), 0o600)
	}); err != nil {
		return "", fmt.Errorf("placing %s: %w", include.Name, err)
	}
	return directory, nil
}

// wholeDirectory makes a directory with what fill puts into it, whole or not at all. If another process was faster, its
// directory is as good.
func wholeDirectory(parent, directory string, fill func(made string) error) error {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	made, err := os.MkdirTemp(parent, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if err := fill(made); err != nil {
		return err
	}
	if err := os.Rename(made, directory); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
