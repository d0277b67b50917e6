package launcher

import "strings"

// separate are the options whose value is, or may be, the next argument. Those in joinable take it joined, too.
// From gcc's common.opt, c-family/c.opt and gcc/doc/invoke.texi (GCC 12), clang's driver Options.td (LLVM 19).
var separate = set(
	"-o", "-x", "-D", "-U", "-I", "-L", "-l", "-B", "-F", "-T", "-u", "-z", "-e", "-A", "-h", "-R",
	"-include", "-imacros", "-isystem", "-idirafter", "-iprefix", "-iwithprefix", "-iwithprefixbefore", "-isysroot",
	"-iquote", "-imultilib", "-imultiarch", "-iplugindir", "-MF", "-MT", "-MQ", "-Xlinker", "-Xassembler",
	"-Xpreprocessor", "-Tdata", "-Ttext", "-Tbss", "-aux-info", "-dumpbase", "-dumpbase-ext", "-dumpdir", "-wrapper",
	"-specs", "--param", "--sysroot", "-V", "-b", "--output", "--include", "--imacros", "--language",
	"--define-macro", "--undefine-macro", "--include-directory", "--include-directory-after", "--include-prefix",
	"--include-with-prefix", "--include-with-prefix-before", "--include-with-prefix-after", "--library-directory",
	"--prefix", "--entry", "--for-assembler", "--for-linker", "--force-link", "--assert", "--dump", "--dumpbase",
	"--dumpdir", "--specs", "--print-file-name", "--print-prog-name", "--undefine",
	// clang
	"-target", "-Xclang", "-Xanalyzer", "-Xopenmp-target", "-Xcuda-ptxas", "-Xcuda-fatbinary", "-Xoffload-linker",
	"-mllvm", "-gcc-toolchain", "-arch", "-iframework", "-iframeworkwithsysroot", "-isystem-after",
	"-iwithsysroot", "-ivfsoverlay", "-include-pch", "-cxx-isystem", "-stdlib++-isystem", "-working-directory",
	"-serialize-diagnostics", "--serialize-diagnostics", "-rpath", "-mthread-model", "-resource-dir", "--config",
	"-config", "-framework", "-dependency-file", "-dependency-dot", "-index-store-path", "-fmodules-user-build-path",
	"-vfsoverlay", "-fnew-alignment", "-G", "-install_name", "-current_version", "-compatibility_version",
	"-exported_symbols_list", "-weak_library", "-weak_framework", "-weak-l", "-undefined", "-init",
)

// joinable take their value joined (-oFILE) or as the next argument, longest first where one begins another.
var joinable = []string{
	"-iwithprefixbefore", "-iwithprefix", "-idirafter", "-isystem", "-isysroot", "-include", "-imacros", "-iprefix",
	"-iquote", "-MF", "-MT", "-MQ", "-o", "-x", "-D", "-U", "-I", "-L", "-l", "-B", "-T", "-u", "-A",
}

// prefixed take their value after a '=' or a ','.
var prefixed = []string{
	"-Wl,", "-Wp,", "-Wa,", "--target=", "--output=", "--language=", "--prefix=", "--for-linker=", "--for-assembler=",
}

// takesNext says whether the value of this option is the next argument.
func takesNext(arg string) bool {
	return separate[arg] || strings.HasPrefix(arg, "-Xarch_") || strings.HasPrefix(arg, "-Xopenmp-target=")
}

// splitJoined splits an option that carries its value.
func splitJoined(arg string) (name, value string, ok bool) {
	for _, p := range prefixed {
		if v, found := strings.CutPrefix(arg, p); found {
			return p, v, true
		}
	}
	// -undef and the like only look as if they were -u with a value.
	switch arg {
	case "-undef", "-traditional", "-trigraphs", "-ansi", "-time", "-object", "-objects", "-unwindlib", "-all_load":
		return "", "", false
	}
	for _, p := range joinable {
		if v, found := strings.CutPrefix(arg, p); found && v != "" {
			return p, v, true
		}
	}
	return "", "", false
}

// forMachine says whether an option chooses the processor, or where the compiler's parts are.
func forMachine(arg string) bool {
	return strings.HasPrefix(arg, "-m") && arg != "-mllvm" || arg == "-target" || strings.HasPrefix(arg, "--target=") ||
		arg == "-gcc-toolchain" || strings.HasPrefix(arg, "--gcc-toolchain=")
}

// forAssembler says whether clang, when it assembles a file that it has compiled, needs this option: all do but those
// that choose outputs, stages and debug information (the compiler has written that down already), and those for the
// linker.
func forAssembler(arg string) bool {
	name := arg
	if joined, _, ok := splitJoined(arg); ok {
		name = joined
	}
	if notForAssembler[name] || strings.HasPrefix(arg, "-save-temps") || strings.HasPrefix(arg, "-ftime-trace") {
		return false
	}
	if strings.HasPrefix(arg, "-g") {
		return strings.HasPrefix(arg, "-gz") || strings.HasPrefix(arg, "-gcc-toolchain")
	}
	return true
}

var notForAssembler = set(
	"-o", "--output", "--output=", "-c", "--compile", "-S", "--assemble", "-x", "--language", "--language=",
	"-MD", "-MMD", "-MP", "-MG", "-MV", "-MF", "-MT", "-MQ", "-MJ", "-Wp,", "-Xpreprocessor", "-dependency-file",
	"-Wl,", "-Xlinker", "--for-linker", "--for-linker=", "-l", "-L", "-T", "-u", "-z", "-e", "-rpath",
	"-serialize-diagnostics", "--serialize-diagnostics", "-include", "-imacros", "-include-pch", "-D", "-U",
	"--save-temps", "--coverage", "-fprofile-arcs", "-ftest-coverage", "-v", "-Xclang", "-fno-integrated-as",
	"-no-integrated-as", "-fintegrated-as", "-integrated-as", "-pipe", "-Werror", "-pedantic-errors",
)

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}
