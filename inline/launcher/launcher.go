package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"braid/inline/stub"
)

// The exit codes that are not the compiler's own, as a shell has them.
const (
	exitUsage    = 2
	exitFailed   = 1
	exitNotFound = 127
	exitNoRun    = 126
)

// Main is braid cc: args are what follows those two words. The result is the exit code. With the process's own
// standard streams it may not return: a command that runs untouched replaces this process, and a compiler that dies
// by a signal takes this process along.
//
// One call a process: it catches signals while the compiler runs.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int) {
	l := launch{stdin: stdin, stdout: stdout, stderr: stderr}
	code, err := l.run(args)
	if err != nil {
		fmt.Fprintln(stderr, "braid cc:", err)
	}
	return code
}

// launch is one run of braid cc.
type launch struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	options
	compiler  compiler
	directory string // temporary, "" until it exists
}

func (l *launch) run(args []string) (exitCode int, err error) {
	if l.options, err = parseOptions(args); err != nil {
		return exitUsage, err
	}
	if l.help {
		_, err := io.WriteString(l.stdout, Usage)
		return 0, err
	}
	var rest []string
	l.compiler, rest = identify(l.command)
	l.compiler.probe()
	if l.compiler.family != familyUnknown {
		if err := offerHeader(); err != nil {
			l.say("%v", err)
		}
	}
	p := makePlan(&l.options, &l.compiler, rest)
	if p.warning != "" {
		fmt.Fprintln(l.stderr, "braid cc:", p.warning)
	}
	if p.untouched != "" {
		l.say("untouched (%s): %s", p.untouched, quote(l.command))
		return l.untouched()
	}

	for _, note := range p.notes {
		l.say("%s", note)
	}
	caught := catch()
	status, err := l.execute(&p, rest, caught)
	if l.directory != "" {
		if removeErr := os.RemoveAll(l.directory); removeErr != nil && err == nil {
			err = fmt.Errorf("removing temporary files: %w", removeErr)
		}
	}
	select {
	case s := <-caught: // arrived when no compiler was running
		dieBy(s.(syscall.Signal))
	default:
	}
	if err != nil {
		return max(status.code, exitFailed), err
	}
	return status.report(), nil
}

// untouched runs the command as it is, in place of this process if the streams are its own.
func (l *launch) untouched() (exitCode int, err error) {
	path, err := exec.LookPath(l.command[0])
	if err != nil {
		return startError(err)
	}
	if l.stdin == os.Stdin && l.stdout == os.Stdout && l.stderr == os.Stderr {
		err := syscall.Exec(path, l.command, os.Environ())
		return startError(fmt.Errorf("running %s: %w", path, err))
	}
	status, err := runCommand(l.child(l.command[0], l.command[1:], nil))
	if err != nil {
		return startError(err)
	}
	return status.report(), nil
}

// startError gives the exit code for a compiler that could not be started.
func startError(err error) (int, error) {
	if errors.Is(err, fs.ErrPermission) {
		return exitNoRun, err
	}
	return exitNotFound, err
}

// execute runs the compiler as planned.
func (l *launch) execute(p *plan, args []string, caught <-chan os.Signal) (exitStatus, error) {
	directory, runtimeFile, err := l.prepare(p)
	if err != nil {
		return exitStatus{}, err
	}
	words := append(l.compiler.command[1:len(l.compiler.command):len(l.compiler.command)],
		p.arguments(args, directory, runtimeFile)...)
	var extra []string
	if p.wrapper != nil {
		extra = append(extra, assemblerVariable+"="+directory)
	}
	l.say("%s", quote(append([]string{l.compiler.command[0]}, words...)))

	var assembly, messages bytes.Buffer
	cmd := l.child(l.compiler.command[0], words, extra)
	if p.stdout {
		cmd.Stdout = &assembly
	}
	if p.replay {
		cmd.Stderr = &messages
	}
	status, err := runForwarding(cmd, caught)
	if err != nil {
		status.code, err = startError(err)
		return status, err
	}
	if p.replay {
		if _, statErr := os.Stat(filepath.Join(directory, replayFile)); statErr == nil && status.signal == 0 {
			return l.replay(args, words, extra, caught)
		}
		if _, err := l.stderr.Write(messages.Bytes()); err != nil {
			return status, err
		}
	}
	return status, l.addStubs(p, status, assembly.Bytes())
}

// replay runs the plain compiler for its messages, because the assembler had something to say that the compiler alone
// can put in terms of the source; and, if all is well in the end, the changed command again for its results.
func (l *launch) replay(args, words, extra []string, caught <-chan os.Signal) (exitStatus, error) {
	plain := append(l.compiler.command[1:len(l.compiler.command):len(l.compiler.command)], args...)
	status, err := runForwarding(l.child(l.compiler.command[0], plain, nil), caught)
	if err != nil || !status.ok() {
		return status, err
	}
	var messages bytes.Buffer
	again := l.child(l.compiler.command[0], words, extra)
	again.Stdout, again.Stderr = nil, &messages
	status, err = runForwarding(again, caught)
	if err != nil || status.ok() {
		return status, err
	}
	l.say("compiled without stubs: the assembler does not take them; please report this:\n%s", messages.Bytes())
	return runForwarding(l.child(l.compiler.command[0], plain, nil), caught)
}

// child is a command with this process's streams.
func (l *launch) child(name string, args, extraEnvironment []string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.stdin, l.stdout, l.stderr
	cmd.Env = append(os.Environ(), extraEnvironment...)
	return cmd
}

// prepare makes the files that the plan needs: the wrapper's link and settings, the runtime.
func (l *launch) prepare(p *plan) (directory, runtimeFile string, err error) {
	if p.wrapper == nil && p.runtime == "" {
		return "", "", nil
	}
	if p.runtime == "" && l.compiler.ccache {
		if directory, err := stableDirectory(p.wrapper); err == nil {
			return directory, "", nil
		}
	}
	l.directory, err = os.MkdirTemp("", "braid-cc-")
	if err != nil {
		return "", "", fmt.Errorf("making a directory for temporary files: %w; set TMPDIR to one that can be written", err)
	}
	if p.wrapper != nil {
		if err := p.wrapper.write(l.directory); err != nil {
			return "", "", err
		}
	}
	if p.runtime != "" {
		object, err := p.runtimeObject()
		if err != nil {
			return "", "", fmt.Errorf("taking out the runtime: %w", err)
		}
		runtimeFile = filepath.Join(l.directory, "braid-runtime.o")
		if err := os.WriteFile(runtimeFile, object, 0o600); err != nil {
			return "", "", fmt.Errorf("writing the runtime: %w", err)
		}
	}
	return l.directory, runtimeFile, nil
}

// addStubs puts stubs into what the compiler wrote with -S. Output that is no file of its own (/dev/null, a pipe) is
// left alone.
func (l *launch) addStubs(p *plan, status exitStatus, assembly []byte) error {
	if p.stdout {
		if text := l.withStubs(p, assembly, "standard output"); text != nil && status.ok() {
			assembly = text
		}
		_, err := l.stdout.Write(assembly)
		return err
	}
	if !status.ok() {
		return nil
	}
	for _, name := range p.outputs {
		source, tooLarge, err := readBounded(name, maxAssembly)
		if err != nil || tooLarge {
			continue
		}
		text := l.withStubs(p, source, name)
		if text == nil {
			continue
		}
		if err := os.WriteFile(name, text, 0o666); err != nil {
			return fmt.Errorf("writing the assembly with stubs: %w", err)
		}
	}
	return nil
}

// withStubs puts stubs into a text that is not assembled here, or returns nil if it is to be left alone.
func (l *launch) withStubs(p *plan, source []byte, name string) []byte {
	text, err := p.assembly.stubs(source, nil, name, l.stderr)
	if err != nil {
		if !errors.Is(err, stub.ErrNotCompilerOutput) {
			l.say("%s has no stubs: %v", name, err)
		}
		return nil
	}
	return text
}

// say prints a message if --verbose asks for it.
func (l *launch) say(format string, args ...any) {
	if l.verbose {
		fmt.Fprintf(l.stderr, "braid cc: "+format+"\n", args...)
	}
}

// quote joins words so that a shell would split them again.
func quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$&;()<>|*?[]#~`!") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}

// terminalColumns gives the width of a terminal, 0 if it does not know; not ok if the file is none.
func terminalColumns(f *os.File) (columns int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
