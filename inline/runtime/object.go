package runtime

import (
	"embed"
	"fmt"
)

//go:generate ./generate.sh

//go:embed runtime_*.o
var objects embed.FS

// Object returns the relocatable object to link into a traced program for a processor in Go's naming. It defines what
// stubs use that reach their control block through a thread-local variable: __braid_tls and __braid_slow. The result must
// not be changed by the caller.
func Object(goarch string) ([]byte, error) { return object("runtime_", goarch) }

// WordObject is Object for stubs that find the control block's address in a word of memory that belongs to the thread
// (docs/protocol.md, "Doors"): it defines __braid_slow_word and has no thread-local variable.
func WordObject(goarch string) ([]byte, error) { return object("runtime_word_", goarch) }

func object(prefix, goarch string) ([]byte, error) {
	b, err := objects.ReadFile(prefix + goarch + ".o")
	if err != nil {
		return nil, fmt.Errorf("no runtime for %s: there are ones for amd64, arm64 and arm", goarch)
	}
	return b, nil
}
