package launcher

import (
	"path/filepath"
	"strings"
)

// stage is how far a compiler goes.
type stage int

const (
	stageLink     stage = iota // a program or shared object
	stageObject                // -c
	stageAssembly              // -S
	stageOther                 // -E, -M, -fsyntax-only, --version and all else that assembles and links nothing
)

// language is what an input is written in, as far as that matters here.
type language int

const (
	languageObject   language = iota // for the linker: objects, archives, scripts
	languageC                        // C or C++, preprocessed or not
	languageAssembly                 // assembly, to be preprocessed or not
	languageHeader                   // to be precompiled
	languageOther                    // all else
)

// input is one input file.
type input struct {
	name     string // "-" is standard input
	language language
}

// commandLine is what can be said of a compiler's arguments. It is only read, never passed on: the compiler gets the
// arguments as they were.
type commandLine struct {
	stage  stage
	inputs []input
	output string // of -o, "" if there is none
	target string // of --target or -target

	machine []string // what chooses the processor: --target, -march and all else that begins with -m

	otherABI      bool // -m32, -mx32, -m16: no stub for that
	freestanding  bool // no thread-local storage to be expected
	noRuntime     bool // linked without the C library, or relocatable output
	lto           bool
	splitStack    bool
	keptRegister  bool // -ffixed-REG or -fcall-saved-REG of a register that stubs change
	notAssembly   bool // clang: -emit-llvm, --analyze and the like
	gnuAssembler  bool // clang: -fno-integrated-as was asked for
	saveTemps     bool
	colorSet      bool     // a choice about coloured diagnostics was made
	programPrefix []string // the -B options

	dashes       bool // clang: "--", behind which all is input
	openLanguage bool // an -x that still holds at the end

	// assemble are the arguments that matter when clang assembles a file that it has compiled.
	assemble []string
}

// arguments is a cursor over expanded arguments.
type arguments struct {
	rest []string
	cl   *commandLine
	lang string // of -x; "" or "none" for: by the file's name
	c    *compiler
}

// parseCommandLine reads a compiler's arguments with all response files expanded. Not ok when an option lacks its
// value, or there is something that it cannot be sure about; then the compiler must run untouched.
func parseCommandLine(args []string, c *compiler) (cl commandLine, ok bool) {
	p := arguments{rest: args, cl: &cl, c: c}
	onlyInputs := false
	for len(p.rest) > 0 {
		arg := p.rest[0]
		p.rest = p.rest[1:]
		switch {
		case arg == "" || strings.HasPrefix(arg, "@") && len(arg) > 1:
			return cl, false // a response file that cannot be read
		case arg[0] != '-' || arg == "-" || onlyInputs:
			cl.inputs = append(cl.inputs, input{arg, p.languageOf(arg)})
		case arg == "--" && c.family == familyClang:
			onlyInputs, cl.dashes = true, true
		default:
			if !p.option(arg) {
				return cl, false
			}
		}
	}
	cl.openLanguage = p.lang != "" && p.lang != "none"
	return cl, true
}

// option reads one option. Not ok when its value is missing.
func (p *arguments) option(arg string) (ok bool) {
	name, value, words := arg, "", 0
	if takesNext(arg) {
		if len(p.rest) == 0 {
			return false
		}
		value, words = p.rest[0], 1
	} else if prefix, v, joined := splitJoined(arg); joined {
		name, value = prefix, v
	}
	all := append([]string{arg}, p.rest[:words]...)
	p.rest = p.rest[words:]
	p.note(name, value)
	if forMachine(arg) {
		p.cl.machine = append(p.cl.machine, all...)
	}
	if forAssembler(arg) {
		p.cl.assemble = append(p.cl.assemble, all...)
	}
	return true
}

// note keeps what an option says.
func (p *arguments) note(name, value string) {
	cl := p.cl
	switch name {
	case "-c", "--compile":
		cl.stage = max(cl.stage, stageObject)
	case "-S", "--assemble":
		cl.stage = max(cl.stage, stageAssembly)
	case "-o", "--output", "--output=":
		cl.output = value
	case "-x", "--language", "--language=":
		p.lang = value
	case "-B", "--prefix", "--prefix=":
		cl.programPrefix = append(cl.programPrefix, "-B"+value)
	case "-target", "--target", "--target=":
		cl.target = value
	case "-Wl,", "-Xlinker", "--for-linker", "--for-linker=":
		for _, v := range strings.Split(value, ",") {
			if v == "-r" || v == "-i" || v == "--relocatable" || v == "-Ur" {
				cl.noRuntime = true
			}
		}
	case "-Wp,":
		// -Wp,-MD,FILE is dependency output beside the compilation; -Wp,-M is not.
		for _, v := range strings.Split(value, ",") {
			if v == "-M" || v == "-MM" || v == "-E" {
				cl.stage = stageOther
			}
		}
	default:
		p.noteFlag(name)
	}
}

// noteFlag keeps what an option without a value of its own says.
func (p *arguments) noteFlag(arg string) {
	cl := p.cl
	switch arg {
	case "-E", "--preprocess", "-M", "-MM", "--dependencies", "--user-dependencies", "-fsyntax-only", "-###",
		"-dumpversion", "-dumpfullversion", "-dumpmachine", "-dumpspecs", "--version", "-cc1", "-cc1as", "--analyze",
		"-emit-ast", "-emit-pch", "-module-file-info", "-verify-pch", "--precompile", "-rewrite-objc", "-fdriver-only",
		"--print-libgcc-file-name":
		cl.stage = stageOther
	case "-m32", "-mx32", "-m16", "-maarch64", "-mabi=ilp32", "-mbig-endian":
		cl.otherABI = true
	case "-m64":
		cl.otherABI = false
	case "-ffreestanding", "-fno-hosted", "-mcmodel=kernel":
		cl.freestanding = true
	case "-fhosted":
		cl.freestanding = false
	case "-nostdlib", "--no-standard-libraries", "-nodefaultlibs", "-nolibc", "-r":
		cl.noRuntime = true
	case "-flto", "-ffat-lto-objects":
		cl.lto = true
	case "-fno-lto":
		cl.lto = false
	case "-fsplit-stack":
		cl.splitStack = true
	case "-fno-split-stack":
		cl.splitStack = false
	case "-emit-llvm", "-fembed-bitcode":
		cl.notAssembly = true
	case "-fno-integrated-as", "-no-integrated-as":
		cl.gnuAssembler = true
	case "-fintegrated-as", "-integrated-as":
		cl.gnuAssembler = false
	case "-save-temps", "--save-temps":
		cl.saveTemps = true
	case "-fcolor-diagnostics", "-fno-color-diagnostics":
		cl.colorSet = true
	default:
		switch {
		case strings.HasPrefix(arg, "-print-"), strings.HasPrefix(arg, "--print-"), strings.HasPrefix(arg, "--help"),
			arg == "-help", strings.HasPrefix(arg, "--target-help"):
			cl.stage = stageOther
		case strings.HasPrefix(arg, "-flto="):
			cl.lto = true
		case strings.HasPrefix(arg, "-save-temps="):
			cl.saveTemps = true
		case strings.HasPrefix(arg, "-ffixed-"), strings.HasPrefix(arg, "-fcall-saved-"):
			cl.keptRegister = cl.keptRegister || stubRegisters[arg[strings.LastIndexByte(arg, '-')+1:]]
		case strings.HasPrefix(arg, "-fdiagnostics-color"):
			cl.colorSet = true
		}
	}
}

// stubRegisters are the registers that stubs change (docs/stub.md), on whatever processor.
var stubRegisters = map[string]bool{
	"rax": true, "ax": true, "rdx": true, "dx": true, "r8": true, "r9": true, "r10": true, "r11": true,
	"x9": true, "x10": true, "x11": true, "x12": true, "x13": true, "x14": true, "x16": true, "x17": true, "r12": true, "ip": true,
}

// languageOf decides an input's language by -x or its name.
func (p *arguments) languageOf(name string) language {
	switch p.lang {
	case "", "none":
	case "c", "c++", "cpp-output", "c-cpp-output", "c++-cpp-output":
		return languageC
	case "assembler", "assembler-with-cpp":
		return languageAssembly
	default:
		if strings.HasSuffix(p.lang, "-header") {
			return languageHeader
		}
		return languageOther
	}
	switch filepath.Ext(name) {
	case ".c", ".i", ".C", ".cc", ".cp", ".cpp", ".cxx", ".c++", ".CPP", ".ii":
		return languageC
	case ".s", ".S", ".sx":
		return languageAssembly
	case ".h", ".hh", ".H", ".hp", ".hxx", ".hpp", ".HPP", ".h++", ".tcc":
		return languageHeader
	case ".m", ".mm", ".M", ".mi", ".mii",
		".f", ".for", ".ftn", ".F", ".FOR", ".fpp", ".FPP", ".FTN", ".f90", ".f95", ".f03", ".f08", ".F90", ".F95",
		".F03", ".F08", ".go", ".d", ".di", ".dd", ".adb", ".ads", ".cppm", ".ccm", ".cxxm", ".c++m", ".ixx", ".cu",
		".hip", ".cl", ".ll", ".bc", ".pcm", ".ast", ".rs", ".java", ".mod":
		return languageOther
	}
	return languageObject
}

// has says whether an input of this language is among the inputs.
func (cl *commandLine) has(l language) bool {
	for _, in := range cl.inputs {
		if in.language == l {
			return true
		}
	}
	return false
}
