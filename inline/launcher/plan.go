package launcher

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"braid/inline/runtime"
)

// clangKeepsParsing is the first version of clang known to take "-Xclang -fintegrated-as" after -fno-integrated-as, so
// that the compiler proper behaves as if it assembled by itself: it checks the program's inline assembly and reports
// errors in the C source's terms. (LLVM 19 takes it, LLVM 14 does not.)
const clangKeepsParsing = 19

// plan is what is to be done with one command.
type plan struct {
	untouched string // why the command runs as it is, "" if it does not

	front, back []string  // what is put around the compiler's arguments
	wrapper     *settings // of the assembler wrapper, nil if it has nothing to do
	runtime     string    // the processor for which to link the runtime, "" for none
	afterName   bool      // back must go in front of the last arguments, behind "--"
	bareRuntime bool      // no "-x none" is wanted before the runtime

	// With -S: what to put stubs into when the compiler is done, and how.
	outputs  []string
	stdout   bool
	assembly insertion

	replay bool // see replayFile

	warning string   // for the user in any case, "" for none
	notes   []string // for --verbose
}

// makePlan decides what to do with a compiler and its arguments.
func makePlan(o *options, c *compiler, args []string) plan {
	if c.family == familyUnknown {
		return plan{untouched: "not a compiler that braid knows"}
	}
	expanded, ok := expandResponseFiles(args)
	if !ok {
		return plan{untouched: "a response file that cannot be read twice, or is too large"}
	}
	cl, ok := parseCommandLine(expanded, c)
	switch {
	case !ok:
		return plan{untouched: "an incomplete command line"}
	case cl.stage == stageOther || cl.has(languageHeader):
		return plan{untouched: "nothing to assemble or link"}
	case len(cl.inputs) == 0:
		return plan{untouched: "no input"}
	case cl.dashes && (!slices.Contains(args, "--") || cl.openLanguage):
		return plan{untouched: "a -- that options cannot be put before"}
	}
	arch, why := c.processor(&cl)
	if why != "" {
		return plan{untouched: why}
	}
	stubs := insertion{Choose: o.choose, Arch: arch, Block: o.block, Verbose: o.verbose}
	if err := stubs.canInsert(); err != nil {
		p := plan{untouched: err.Error()}
		if o.block != "" { // somebody has chosen that, and would wait for records
			p.warning = "--block " + o.block + ": " + err.Error()
		}
		return p
	}

	p := plan{afterName: cl.dashes, bareRuntime: !cl.openLanguage, assembly: stubs}
	if cl.stage == stageLink && !cl.noRuntime && !o.noRuntime {
		p.runtime = arch
	}
	p.planStubs(c, &cl)
	if p.runtime == "" && p.wrapper == nil && len(p.outputs) == 0 && !p.stdout && p.warning == "" {
		return plan{untouched: strings.Join(append(p.notes, "nothing here can hold or needs stubs"), "; ")}
	}
	return p
}

// runtimeObject is the runtime that fits the stubs' way to the control block.
func (p *plan) runtimeObject() ([]byte, error) {
	if p.assembly.Block != "" {
		return runtime.WordObject(p.runtime)
	}
	return runtime.Object(p.runtime)
}

// splitStackWarning is said aloud, because -fsplit-stack is rare and its users would look for their functions in vain.
const splitStackWarning = "-fsplit-stack: no stubs in what this command compiles, because a stub may need more stack than " +
	"such a function has left; leave that option out to trace it"

// planStubs decides where stubs come from, if from anywhere.
func (p *plan) planStubs(c *compiler, cl *commandLine) {
	switch {
	case cl.has(languageC):
	case c.family == familyGCC && cl.stage == stageLink: // code may come from objects made with -flto, whatever the command says
	default:
		return
	}
	switch {
	case cl.freestanding:
		p.notes = append(p.notes, "no stubs: there may be no thread-local storage")
	case cl.has(languageOther), c.fortran:
		p.notes = append(p.notes, "no stubs: not only C and C++")
	case cl.keptRegister:
		p.notes = append(p.notes, "no stubs: an option keeps a register to itself that they change")
	case cl.splitStack:
		if cl.has(languageC) || cl.lto {
			p.warning = splitStackWarning
		}
	case c.family == familyClang && cl.lto:
		p.notes = append(p.notes, "no stubs: with -flto, clang's code is made within the linker")
	case cl.notAssembly:
		p.notes = append(p.notes, "no stubs: the output is no code")
	case cl.stage == stageAssembly:
		p.planAssembly(c, cl)
	case c.family == familyGCC:
		p.planGCC(c, cl)
	default:
		p.planClang(c, cl)
	}
}

// gccOptions make gcc's output fit for stubs. -dp says for each instruction what the compiler means by it, so that
// tail calls, jump tables and returns can be told apart. -fno-ipa-ra because a stub uses scratch registers of which
// a caller might otherwise know that the function leaves them alone.
var gccOptions = []string{"-dp", "-fno-ipa-ra"}

// clangComments keeps what clang's assembly says of tail calls and of inline assembly in comments, if -fno-verbose-asm
// was given. It is clang's default.
const clangComments = "-fverbose-asm"

func (p *plan) planGCC(c *compiler, cl *commandLine) {
	p.wrapper = newSettings(p.assembly, cl)
	p.wrapper.SaveTemps = cl.saveTemps
	p.wrapper.FindAssembler = findAssembler(c, cl)
	p.back = append(p.back, gccOptions...)
}

// planClang has clang write assembly and then assemble the result by itself: its assembly may hold directives that the
// GNU assembler does not know.
func (p *plan) planClang(c *compiler, cl *commandLine) {
	p.wrapper = newSettings(p.assembly, cl)
	p.wrapper.SaveTemps = cl.saveTemps
	p.back = append(p.back, "-fno-integrated-as", clangComments)
	if p.assembly.Arch == "arm64" { // what the outliner makes of a return is no function, and no stub can tell which it was
		p.back = append(p.back, "-mno-outline")
	}
	if cl.gnuAssembler {
		p.wrapper.FindAssembler = findAssembler(c, cl)
		return
	}
	// What clang leaves out for an assembler that might not know it.
	p.front = append(p.front, "-faddrsig", "-fdwarf-directory-asm")
	p.wrapper.Clang = append(p.wrapper.Clang, c.command[len(c.command)-1])
	p.wrapper.Clang = append(p.wrapper.Clang, cl.assemble...)
	p.wrapper.Clang = append(p.wrapper.Clang, "-g0", "-Wno-unused-command-line-argument", "-c", "-x", "assembler")
	if c.version >= clangKeepsParsing {
		p.back = append(p.back, "-Xclang", "-fintegrated-as")
		p.wrapper.Checked = true
	}
	// The driver's own word on a failed assembler is not one of the plain compiler's, so its stderr is held back.
	// Not where the command cannot be run twice, or is not run here.
	if !c.ccache && !slices.ContainsFunc(cl.inputs, func(in input) bool { return in.name == "-" }) {
		p.replay = true
		p.wrapper.Replay = true
		if columns, ok := terminalColumns(os.Stderr); ok {
			p.front = append(p.front, "-fmessage-length="+strconv.Itoa(columns))
			if !cl.colorSet {
				p.front = append(p.front, "-fcolor-diagnostics")
			}
		}
	}
}

func (p *plan) planAssembly(c *compiler, cl *commandLine) {
	if cl.lto { // gcc's .s file holds no code then
		return
	}
	if c.family == familyGCC {
		p.back = append(p.back, gccOptions...)
	} else {
		p.back = append(p.back, clangComments)
	}
	switch cl.output {
	case "-", "/dev/stdout":
		p.stdout = true
	case "":
		for _, in := range cl.inputs {
			if in.language == languageC {
				base := filepath.Base(in.name)
				p.outputs = append(p.outputs, strings.TrimSuffix(base, filepath.Ext(base))+".s")
			}
		}
	default:
		p.outputs = []string{cl.output}
	}
}

// newSettings are the wrapper's settings that depend on the command line.
func newSettings(in insertion, cl *commandLine) *settings {
	s := &settings{insertion: in}
	for _, in := range cl.inputs {
		if in.language == languageAssembly {
			s.Assembly = append(s.Assembly, in.name)
		}
	}
	for _, name := range driverVariables {
		value := os.Getenv(name)
		if name == assemblerVariable {
			value = ""
		}
		s.Environment = append(s.Environment, name+"="+value)
	}
	return s
}

func findAssembler(c *compiler, cl *commandLine) []string {
	find := append([]string{c.command[len(c.command)-1]}, cl.programPrefix...)
	return append(append(find, cl.machine...), "-print-prog-name=as")
}

// arguments are the compiler's arguments, given the directory of the assembler wrapper and the file of the runtime.
func (p *plan) arguments(args []string, directory, runtimeFile string) []string {
	front := slices.Clone(p.front)
	if p.wrapper != nil {
		front = append(front, "-B"+directory)
	}
	var behind []string
	if p.afterName {
		i := slices.Index(args, "--")
		args, behind = args[:i], args[i:]
	}
	all := slices.Concat(front, args, p.back, behind)
	if p.runtime != "" {
		if !p.bareRuntime {
			all = append(all, "-x", "none")
		}
		all = append(all, runtimeFile)
	}
	return all
}
