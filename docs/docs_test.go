// Package docs_test checks the documentation against the program.
package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"braid/internal/ctl"
	"braid/internal/doctor"
	"braid/internal/kevent"
	"braid/internal/report"
	"braid/internal/tracefile"
)

// pages returns every page by its path from this folder.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, n := range append(names, "../README.md") {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		out[n] = string(b)
	}
	return out
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```\n?")
	indent  = regexp.MustCompile(`(?m)^(    |\t).*\n`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// prose is a page without its blocks of code.
func prose(page string) string { return indent.ReplaceAllString(fence.ReplaceAllString(page, ""), "") }

// anchors are the names that a page's headings get: lower case, spaces to dashes, most other signs left out.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(prose(page), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(m[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				b.WriteRune(r)
			}
		}
		out[b.String()] = true
	}
	return out
}

func TestLinks(t *testing.T) {
	all := pages(t)
	links := 0
	for name, page := range all {
		for _, m := range link.FindAllStringSubmatch(prose(page), -1) {
			to := m[1]
			if strings.Contains(to, "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(to, "#")
			path := name
			if file != "" {
				path = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which is not there", name, to)
				continue
			}
			path = strings.TrimPrefix(path, "../docs/")
			if anchor != "" && !anchors(all[path])[anchor] {
				t.Errorf("%s links to %s, which has no such heading", name, to)
			}
		}
	}
	if links < 20 {
		t.Errorf("only %d links were found: is the pattern right?", links)
	}
	for name := range all {
		base := filepath.Base(name)
		if base != "README.md" && !strings.Contains(all["../README.md"], "(docs/"+base+")") {
			t.Errorf("README.md does not lead to %s", base)
		}
	}
}

var flag = regexp.MustCompile(`(?m)^ +(?:-[a-zA-Z], )?(--[a-z-]+)|^ +BRAID_`)

// Each command has a page that knows all of its flags, and no others.
func TestCommands(t *testing.T) {
	braid := filepath.Join(t.TempDir(), "braid")
	if out, err := exec.Command("go", "build", "-o", braid, "../cmd/braid").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	help := func(args ...string) string {
		out, err := exec.Command(braid, append(args, "--help")...).CombinedOutput()
		if err != nil {
			t.Fatalf("braid %v --help: %v\n%s", args, err, out)
		}
		return string(out)
	}
	_, list, ok := strings.Cut(help(), "Available Commands:\n")
	if !ok {
		t.Fatal("braid --help lists no commands")
	}
	list, _, _ = strings.Cut(list, "\n\n")
	commands := 0
	for line := range strings.Lines(list) {
		name := strings.Fields(line)[0]
		if name == "help" {
			continue
		}
		commands++
		b, err := os.ReadFile(name + ".md")
		if err != nil {
			t.Errorf("braid %s has no page: %v", name, err)
			continue
		}
		page, text := string(b), help(name)
		known := map[string]bool{"--": true}
		for _, m := range flag.FindAllStringSubmatch(text, -1) {
			if m[1] == "" {
				continue
			}
			known[m[1]] = true
			if m[1] != "--help" && !regexp.MustCompile("`(-[a-zA-Z], )?"+m[1]+"[ `=]").MatchString(page) {
				t.Errorf("%s.md does not mention %s", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile("(?m)^\\| `(?:-[a-zA-Z], )?(--[a-z-]+)").FindAllStringSubmatch(page, -1) {
			if !known[m[1]] {
				t.Errorf("%s.md has a flag that the command does not have: %s", name, m[1])
			}
		}
	}
	if commands < 7 {
		t.Errorf("only %d commands were found", commands)
	}
}

// fields collects the JSON names of a type. Types may hold themselves.
func fields(ty reflect.Type, out map[string]bool) { fieldsOf(ty, out, map[reflect.Type]bool{}) }

func fieldsOf(ty reflect.Type, out map[string]bool, seen map[reflect.Type]bool) {
	if seen[ty] {
		return
	}
	seen[ty] = true
	switch ty.Kind() {
	case reflect.Slice, reflect.Pointer, reflect.Map:
		fieldsOf(ty.Elem(), out, seen)
	case reflect.Struct:
		for i := range ty.NumField() {
			if name, _, _ := strings.Cut(ty.Field(i).Tag.Get("json"), ","); name != "" {
				out[name] = true
				fieldsOf(ty.Field(i).Type, out, seen)
			}
		}
	}
}

func TestReportFields(t *testing.T) {
	page := pages(t)["report.md"]
	names := map[string]bool{}
	fields(reflect.TypeFor[report.Report](), names)
	if len(names) < 20 {
		t.Fatalf("only %d fields", len(names))
	}
	for n := range names {
		if !strings.Contains(page, "`"+n+"`") && !strings.Contains(page, "`"+n+"[]`") {
			t.Errorf("report.md does not describe %s", n)
		}
	}
	for _, k := range report.SortKeys {
		if !strings.Contains(page, k) {
			t.Errorf("report.md does not know --sort %s", k)
		}
	}
}

func TestDoctorChecks(t *testing.T) {
	page := pages(t)["doctor.md"]
	for _, c := range doctor.Run(doctor.System{Root: fstest.MapFS{}, Arch: "amd64"}) {
		if !strings.Contains(page, "| `"+c.ID+"` |") {
			t.Errorf("doctor.md does not describe %s", c.ID)
		}
	}
}

func TestFormat(t *testing.T) {
	page := pages(t)["format.md"]
	names := map[string]bool{}
	for _, ty := range []reflect.Type{reflect.TypeFor[tracefile.Meta](), reflect.TypeFor[tracefile.Processes](),
		reflect.TypeFor[tracefile.Module](), reflect.TypeFor[tracefile.Lost]()} {
		fields(ty, names)
	}
	for n := range names {
		if !strings.Contains(page, "`"+n+"`") && !strings.Contains(page, "`"+n+"[]`") {
			t.Errorf("format.md does not describe the field %s", n)
		}
	}
	kinds := 0
	for k := range 256 {
		kind := kevent.Kind(k)
		size := kevent.Size(kind)
		row := fmt.Sprintf("| %d | %s | %d |", k, kind, size-kevent.HeaderSize)
		if size > 0 && !strings.Contains(page, row) {
			t.Errorf("format.md does not say %s", row)
		}
		kinds += min(size, 1)
	}
	if kinds < 14 {
		t.Errorf("only %d kinds of event", kinds)
	}
}

func TestSocketFields(t *testing.T) {
	page := pages(t)["socket.md"]
	names := map[string]bool{}
	for _, ty := range []reflect.Type{reflect.TypeFor[ctl.Request](), reflect.TypeFor[ctl.Selection](), reflect.TypeFor[ctl.Response]()} {
		fields(ty, names)
	}
	if len(names) < 40 {
		t.Fatalf("only %d fields", len(names))
	}
	for n := range names {
		if !strings.Contains(page, "`"+n+"`") && !strings.Contains(page, "`"+n+"[]`") {
			t.Errorf("socket.md does not describe %s", n)
		}
	}
}

// Every reason that package retain has for not keeping a trace is explained.
func TestRetentionReasons(t *testing.T) {
	page := pages(t)["retention.md"]
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/retain/types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons := 0
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if ty, ok := v.Type.(*ast.Ident); !ok || ty.Name != "Reason" || len(v.Values) != 1 {
			return true
		}
		reason, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Error(err)
		}
		reasons++
		if !strings.Contains(page, "`"+reason+"`") {
			t.Errorf("retention.md does not explain %s", reason)
		}
		return true
	})
	if reasons < 10 {
		t.Errorf("only %d reasons were found", reasons)
	}
}
