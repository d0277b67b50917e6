// Package launcher is "braid cc": it runs a C or C++ compiler so that the functions it compiles get trace stubs and
// the programs it links get braid's runtime, and otherwise does just what the compiler would have done.
//
// The compiler gets its arguments as they were, with a few more around them. Stubs go in between compiler and
// assembler: -B leads the driver to an assembler of ours, which is this same executable under the name "as"
// (AssemblerMain). It puts stubs into the text and hands it to the real assembler. So all that a driver does (temporary
// files, dependency output, split debug information, several inputs, names of outputs) stays with the driver.
//
//   - gcc runs with -dp and -fno-ipa-ra: see gccOptions. The real assembler is the one that gcc would have taken.
//   - clang runs with -fno-integrated-as, and clang itself assembles the text. The text is the one of clang -S, byte for
//     byte, and the object the one of clang -S and clang -c in turn. Calling those two instead would be as faithful, but
//     all that is named after -o (dependency targets, .dwo, .gcno, .su files) would have to be put right again, for each
//     option and each version that knows one.
//   - With -S, the .s file gets its stubs when the compiler is done. stub.Marker in it keeps later runs off.
//
// What the assembler says comes from a run on the unchanged text, so names and line numbers are the compiler's own.
// A clang too old to check inline assembly while it writes assembly is run again, untouched, to say what is wrong.
//
// A command line that is not understood, another language, another processor, a pattern of use with nothing to
// assemble or link: the compiler runs untouched, in this process's place. The tests compare exit codes and
// messages of the plain compiler and of this one, byte for byte.
//
// Not traced, but compiled and linked correctly: clang's -flto (its code is generated within the linker), -m32 and
// -mx32, -fsplit-stack, -ffreestanding and -mcmodel=kernel (there may be no thread-local storage), and languages other
// than C and C++. The runtime is not linked into what is linked with -nostdlib, -nodefaultlibs or -r.
//
// A build must not break because of a stub: where the assembler takes the text without stubs only, the functions at
// fault go without, see repair.
package launcher
