package buildsystems

import (
	"testing"
)

// TestLanguages: what gcc's other languages are compiled to has no stubs, but works, also together with C that has. The
// C function is traced in each program.
func TestLanguages(t *testing.T) {
	for _, c := range []struct{ name, build, want string }{
		{"Fortran", "braid cc gfortran -O2 -o program hello.f90 part.o", "84\n"},
		{"Fortran by gcc", "braid cc gcc -O2 -c hello.f90; braid cc gfortran -o program hello.o part.o", "84\n"},
		{"Fortran and C at once", "braid cc gfortran -O2 -o program hello.f90 part.c -Wl,--defsym=unused=0; " +
			"braid cc gfortran -o program hello.f90 part.o", "84\n"},
		{"Ada", "braid cc gcc -c greet.adb; gnatbind greet; gnatlink --LINK=./braid-gcc greet part.o -o program", " 84\n"},
		{"Ada by gnatmake", "gnatmake -q --GCC=./braid-gcc greet.adb -o program -largs part.o --LINK=./braid-gcc", " 84\n"},
		{"Objective-C", "braid cc gcc -O2 -o program thing.m part.o -lobjc", "84\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newDirectory(t, "languages", "testdata/languages")
			p.run(`printf '#!/bin/sh\nexec braid cc gcc "$@"\n' > braid-gcc; chmod +x braid-gcc; braid cc gcc -O1 -c part.c`)
			p.run(c.build)
			if calls := p.both("./program", c.want); calls["part"] != 1 {
				t.Errorf("calls in the trace: %v", calls)
			}
			p.noLitter()
		})
	}
}
