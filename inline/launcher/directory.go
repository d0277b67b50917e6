package launcher

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// words are command line words and the like. They need not be UTF-8, which strings in JSON must be.
type words []string

// MarshalJSON encodes each word as base64.
func (w words) MarshalJSON() ([]byte, error) {
	raw := make([][]byte, len(w))
	for i, s := range w {
		raw[i] = []byte(s)
	}
	return json.Marshal(raw)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (w *words) UnmarshalJSON(text []byte) error {
	var raw [][]byte
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	*w = make(words, len(raw))
	for i, b := range raw {
		(*w)[i] = string(b)
	}
	return nil
}

// write puts the wrapper's link and settings into a directory.
func (s *settings) write(directory string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing the assembler's settings: %w", err)
	}
	if err := os.WriteFile(filepath.Join(directory, settingsFile), text, 0o600); err != nil {
		return fmt.Errorf("writing the assembler's settings: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding braid's own file: %w", err)
	}
	if err := os.Symlink(self, filepath.Join(directory, "as")); err != nil {
		return fmt.Errorf("linking the assembler: %w", err)
	}
	return nil
}

// buildID is what Go's linker wrote into an executable to tell it from all others, nil if that cannot be read. Packages
// may have the same size and the same, fixed, time in each version.
func buildID(name string) []byte {
	f, err := elf.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	note := f.Section(".note.go.buildid")
	if note == nil || note.Size > 4096 {
		return nil
	}
	id, err := note.Data()
	if err != nil {
		return nil
	}
	return id
}

// stableDirectory is the wrapper's directory for a command that ccache runs. ccache takes the compiler's arguments as
// part of its key, so a new name each time would never hit, and it does not know of the wrapper, so the name must
// differ whenever the wrapper might do something else: it is a hash of the settings and of this very executable. It
// stays in the user's cache directory.
func stableDirectory(s *settings) (string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %d %d %x\n", self, info.Size(), info.ModTime().UnixNano(), buildID(self))
	hash.Write(text)
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(cache, "braid")
	directory := filepath.Join(parent, "cc-"+hex.EncodeToString(hash.Sum(nil)[:16]))
	if _, err := os.Stat(directory); err == nil {
		return directory, nil
	}
	return directory, wholeDirectory(parent, directory, s.write)
}
