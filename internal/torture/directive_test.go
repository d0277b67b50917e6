package torture

import (
	"fmt"
	"testing"
)

func TestParseDirectives(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"/* { dg-do run } */\n/* { dg-options \"-O2 -fno-inline\" } */", "{true [-O2 -fno-inline] [] [] }"},
		{"/* { dg-do compile } */", "{false [] [] [] }"},
		{"// { dg-do run { target i?86-*-* x86_64-*-* } }", "{true [] [] [] }"},
		{"// { dg-do run { target { arm*-*-* || aarch64*-*-* } } }", "{false [] [] [] }"},
		{"// { dg-do run { target { { ! ia32 } && lp64 } } }", "{true [] [] [] }"},
		{"// { dg-do run { target { ilp32 } } }", "{false [] [] [] }"},
		{"// { dg-do run { target c++98_only } }", "{true [] [] [] -std=gnu++98}"},
		{"// { dg-do run { target c++20 } }", "{true [] [] [] -std=gnu++20}"},
		{"/* { dg-do run } */\n/* { dg-options \"-O1\" { target ia32 } } */\n/* { dg-additional-options \"-msse2\" { target { i?86-*-* x86_64-*-* } } } */",
			"{true [] [-msse2] [] }"},
		{"/* { dg-do run } */\n/* { dg-additional-sources \"a-1.c a-2.c\" } */", "{true [] [] [a-1.c a-2.c] }"},
		{"/* { dg-do run { xfail powerpc*-*-* } } */", "{true [] [] [] }"},
		{"/* { dg-do run { target arm*-*-* xfail x86_64-*-* } } */", "{false [] [] [] }"},
		{"/* { dg-do run", "{false [] [] [] }"},
	} {
		if got := fmt.Sprint(parseDirectives(c.text, arches["amd64"])); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}
