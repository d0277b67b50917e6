// Package include holds braid.h, the header for traced programs (docs/api.md).
package include

import _ "embed"

// Name is the header's file name.
const Name = "braid.h"

// Header is the header's text.
//
//go:embed braid.h
var Header string
