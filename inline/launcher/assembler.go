package launcher

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"braid/inline/stub"
)

// assemblerVariable is the environment variable that turns braid, called as "as", into the assembler wrapper. Its value
// is the directory that holds the wrapper's link and its settings.
const assemblerVariable = "BRAID_AS"

// settingsFile is the file in that directory with the wrapper's settings.
const settingsFile = "settings.json"

// replayFile is made in that directory when the assembler complained and only a plain run of the compiler can say it
// in the compiler's own words.
const replayFile = "replay"

// maxAssembly bounds the assembly of one file, in bytes. A larger one is assembled without stubs.
const maxAssembly = 1 << 30

// settings is what the launcher tells the assembler wrapper.
type settings struct {
	insertion

	// Clang is the command that assembles standard input, without -o and its value. Empty: the real assembler does.
	Clang words `json:"clang,omitempty"`
	// FindAssembler is the command that prints where the real assembler is.
	FindAssembler words `json:"find_assembler,omitempty"`
	// Replay: see replayFile.
	Replay bool `json:"replay,omitempty"`
	// Checked: the compiler has checked the program's own inline assembly, so that warnings about it are not new.
	Checked bool `json:"checked,omitempty"`
	// SaveTemps: the .s file stays for the user, who shall find in it what was assembled.
	SaveTemps bool `json:"save_temps,omitempty"`
	// Assembly are inputs of the command that are not the compiler's work.
	Assembly words `json:"assembly,omitempty"`
	// Environment is what the compiler driver changes for its children, as it was: NAME=VALUE, without VALUE for unset.
	Environment words `json:"environment"`
}

// driverVariables are set by gcc for its children; they would lead a second driver to this very wrapper.
var driverVariables = []string{"COMPILER_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH", assemblerVariable}

// IsAssembler says whether this process was started by a compiler as its assembler. Then main must call AssemblerMain
// and do nothing else.
func IsAssembler() bool {
	return len(os.Args) > 0 && filepath.Base(os.Args[0]) == "as" && os.Getenv(assemblerVariable) != ""
}

// AssemblerMain is the assembler wrapper: it puts stubs into the compiler's output and has the real assembler do the
// rest, with the same arguments, standard streams and exit code. It may not return, if the assembler died by a signal.
//
// What the assembler has to say comes from a run on the unchanged text, so that names and line numbers are those of
// the compiler's own output.
func AssemblerMain() (exitCode int) {
	// A short life: memory is cheaper than collecting it, up to a point.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)

	w, err := newWrapper(os.Getenv(assemblerVariable), os.Args[1:])
	if err == nil {
		exitCode, err = w.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "braid cc: assembling:", err)
		return 1
	}
	return exitCode
}

// wrapper is one call of the assembler.
type wrapper struct {
	settings
	directory string
	args      []string // the assembler's arguments without the input
	input     string   // the input file, "" for standard input
	output    string
	tool      []string
	toolName  string
	env       []string
}

func newWrapper(directory string, args []string) (*wrapper, error) {
	w := &wrapper{directory: directory}
	text, err := os.ReadFile(filepath.Join(directory, settingsFile))
	if err != nil {
		return nil, fmt.Errorf("reading the launcher's settings: %w", err)
	}
	if err := json.Unmarshal(text, &w.settings); err != nil {
		return nil, fmt.Errorf("reading the launcher's settings: %w", err)
	}
	w.args, w.input, w.output = splitAssemblerArgs(args)
	w.env = w.environment()
	return w, nil
}

// splitAssemblerArgs takes the input file out of the assembler's arguments. Both drivers put it right behind the output
// (gcc/gcc.cc, "invoke_as", GCC 12; gnutools::Assembler of clang's Gnu.cpp, LLVM 19), where clang lets more options
// follow. gcc leaves it out with -pipe.
func splitAssemblerArgs(args []string) (rest []string, input, output string) {
	for i := 0; i+1 < len(args); i++ {
		if args[i] != "-o" {
			continue
		}
		output = args[i+1]
		if i+2 < len(args) && args[i+2] != "" && args[i+2][0] != '-' {
			return slices.Concat(args[:i+2], args[i+3:]), args[i+2], output
		}
		return args, "", output
	}
	return args, "", ""
}

// environment is the process's, without what the compiler driver and the launcher changed.
func (w *wrapper) environment() []string {
	changed := map[string]bool{}
	var env []string
	for _, entry := range w.Environment {
		name, value, _ := strings.Cut(entry, "=")
		if changed[name] = true; value != "" {
			env = append(env, entry)
		}
	}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); !changed[name] {
			env = append(env, entry)
		}
	}
	return env
}

func (w *wrapper) run() (exitCode int, err error) {
	found := make(chan error, 1)
	go func() { found <- w.findTool() }() // takes as long as inserting does
	source, fits, err := w.read()
	if err != nil {
		return 1, err
	}
	var text []byte
	if fits {
		text, err = w.insert(source, nil)
	} else {
		err = fmt.Errorf("more than %d bytes of assembly", maxAssembly)
	}
	if err != nil {
		w.say("%s has no stubs: %v", w.subject(source), err)
	}
	if err := <-found; err != nil {
		return 1, err
	}
	if text == nil {
		return w.assembleOriginal(source)
	}
	var messages bytes.Buffer
	status, err := w.assemble(bytes.NewReader(text), "", &messages)
	switch {
	case err != nil:
		return 1, err
	case !status.ok():
		return w.repair(source, text, messages.String())
	case messages.Len() > 0 && !w.Checked:
		return w.explain(source, text)
	}
	return 0, w.keep(text)
}

// say prints a message if --verbose asks for it.
func (w *wrapper) say(format string, args ...any) {
	if w.Verbose {
		fmt.Fprintf(os.Stderr, "braid cc: "+format+"\n", args...)
	}
}

// keep makes the .s file that -save-temps keeps what was assembled.
func (w *wrapper) keep(text []byte) error {
	if !w.SaveTemps || w.input == "" {
		return nil
	}
	if err := os.WriteFile(w.input, text, 0o666); err != nil {
		return fmt.Errorf("writing the assembly that -save-temps keeps: %w", err)
	}
	return nil
}

// askForReplay has the launcher run the plain compiler.
func (w *wrapper) askForReplay() error {
	if err := os.WriteFile(filepath.Join(w.directory, replayFile), nil, 0o600); err != nil {
		return fmt.Errorf("asking for a plain run: %w", err)
	}
	return nil
}

// explain gives the messages about a text that the assembler takes, but not in silence: they come from a run on the
// text as the compiler wrote it. What counts is the text with stubs all the same.
func (w *wrapper) explain(source, text []byte) (exitCode int, err error) {
	if w.Replay {
		return 0, errors.Join(w.askForReplay(), w.keep(text))
	}
	code, err := w.assembleOriginal(source)
	if err != nil || code != 0 {
		return code, err
	}
	status, err := w.assemble(bytes.NewReader(text), "", io.Discard)
	if err != nil {
		return 1, err
	}
	return status.report(), w.keep(text)
}

// read takes in the compiler's output. It does not fit if it is larger than maxAssembly.
func (w *wrapper) read() (source []byte, fits bool, err error) {
	if w.input != "" {
		source, err = os.ReadFile(w.input)
	} else {
		source, err = io.ReadAll(os.Stdin)
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the compiler's output: %w", err)
	}
	return source, len(source) <= maxAssembly, nil
}

// insert returns the text with stubs in all chosen functions but the excluded ones, or nil if it is to be left alone.
func (w *wrapper) insert(source []byte, excluded map[string]bool) ([]byte, error) {
	if slices.Contains(w.Assembly, w.input) {
		return nil, nil
	}
	text, err := w.stubs(source, excluded, w.subject(source), os.Stderr)
	if errors.Is(err, stub.ErrNotCompilerOutput) {
		return nil, nil
	}
	return text, err
}

// subject is what to call this assembly: the source that it names, or its own name.
func (w *wrapper) subject(source []byte) string {
	if name := sourceName(source); name != "" {
		return name
	}
	if w.input != "" {
		return w.input
	}
	return "standard input"
}

// findTool finds the real assembler.
func (w *wrapper) findTool() error {
	if len(w.Clang) > 0 {
		w.tool, w.toolName = w.Clang, w.Clang[0]
		return nil
	}
	// Output goes to a buffer: the compiler's own words, if it has any, come when it assembles.
	find := exec.Command(w.FindAssembler[0], w.FindAssembler[1:]...)
	find.Env = w.env
	out, err := find.Output()
	name := strings.TrimSpace(string(out))
	if err != nil || name == "" {
		name = "as"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("finding the real assembler: %w; install binutils", err)
	}
	if own, err := filepath.EvalSymlinks(path); err == nil {
		if self, err := os.Executable(); err == nil && own == self {
			return fmt.Errorf("finding the real assembler: %s is this wrapper; is %s in PATH or COMPILER_PATH?", path,
				filepath.Dir(path))
		}
	}
	w.tool, w.toolName = []string{path}, name // messages begin with the name that it was called by
	return nil
}

// assembleOriginal assembles the text as the compiler wrote it, and says what the assembler says.
func (w *wrapper) assembleOriginal(source []byte) (int, error) {
	if !w.Replay {
		status, err := w.assemblePlain(source, os.Stderr)
		return status.report(), err
	}
	var messages bytes.Buffer
	status, err := w.assemblePlain(source, &messages)
	if err == nil && (!status.ok() || messages.Len() > 0) {
		err = w.askForReplay()
	}
	return status.code, err
}

// assemblePlain assembles the text as the compiler wrote it, under its own name.
func (w *wrapper) assemblePlain(source []byte, messages io.Writer) (exitStatus, error) {
	if w.input != "" && len(w.Clang) == 0 {
		return w.assemble(nil, w.input, messages)
	}
	return w.assemble(bytes.NewReader(source), "", messages)
}

// assemble runs the assembler on a file, or on what it reads from in.
func (w *wrapper) assemble(in io.Reader, input string, messages io.Writer) (exitStatus, error) {
	args := slices.Concat(w.tool[1:], w.args)
	if len(w.Clang) > 0 {
		args = slices.Concat(w.tool[1:], []string{"-o", w.output, "-"})
	}
	if input != "" {
		args = append(args, input)
	}
	cmd := exec.Command(w.tool[0], args...)
	cmd.Args[0] = w.toolName
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = w.env, in, os.Stdout, messages
	return runCommand(cmd)
}
