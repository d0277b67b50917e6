package runtime

import (
	"embed"
	"fmt"
)

//go:generate ./generate.sh

//go:embed runtime_*.o
var objects embed.FS

// Object returns the relocatable object to link into a traced program for a processor in Go's naming. It must not be
// changed by the caller.
func Object(goarch string) ([]byte, error) {
	b, err := objects.ReadFile("runtime_" + goarch + ".o")
	if err != nil {
		return nil, fmt.Errorf("no runtime for %s: stubs exist for amd64", goarch)
	}
	return b, nil
}
