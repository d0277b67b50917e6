package render

import (
	"bytes"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"braid/compare/result"
)

// pageOf is the page of a study as bytes.
func pageOf(t *testing.T, s *result.Study) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, s, sketch(s)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSameResultSamePage goes through the file form: the same JSON gives the same bytes, and showing a study does not change it.
func TestSameResultSamePage(t *testing.T) {
	s := phone.study()
	var form bytes.Buffer
	if err := result.Write(&form, s); err != nil {
		t.Fatal(err)
	}
	var pages [][]byte
	for range 3 {
		r, err := result.Read(bytes.NewReader(form.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, pageOf(t, r), pageOf(t, r))
		var again bytes.Buffer
		if err := result.Write(&again, r); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(form.Bytes(), again.Bytes()) {
			t.Error("showing a study changed it")
		}
	}
	for i := range pages {
		if !bytes.Equal(pages[0], pages[i]) {
			t.Errorf("page %d of the same result differs", i)
		}
	}
}

// Strings that a page or a terminal could take for more than text.
var evil = []string{
	`</title><script>window.hacked=1</script>`, `"><img src=x onerror="window.hacked=1">`, `' onmouseover='window.hacked=1`,
	`]]></svg><script>window.hacked=1</script>`, `{{.}}<style>*{display:none}</style>`, "\x1b[2J\x1b]0;title\a", `javascript:window.hacked=1`,
	`--></desc><iframe src="http://127.0.0.1:9/"></iframe>`, "<a href=\"http://127.0.0.1:9/\">\u202e</a>", "\xff\xfe<b>",
}

// hostile is a study in which every string is evil.
func hostile() *result.Study {
	s := server.study()
	n := 0
	next := func(p *string) {
		*p = evil[n%len(evil)] + *p + evil[(n+3)%len(evil)]
		n++
	}
	names := map[string]string{}
	for i := range s.Arms {
		a := &s.Arms[i]
		switch a.Name {
		case armBaseline, armClock, armOn: // so that there are figures
		default:
			old := a.Name
			next(&a.Name)
			names[old] = a.Name
		}
		for _, p := range []*string{&a.Title, &a.Class, &a.Site, &a.WhyNot, &a.NextStep} {
			next(p)
		}
		key, value := "", ""
		next(&key)
		next(&value)
		a.Facts = map[string]string{key: value}
	}
	m := &s.Machine
	for _, p := range []*string{&s.Version, &s.Why, &m.Name, &m.Arch, &m.OS, &m.Kernel, &m.Virtual, &m.Counter, &m.ClockSource, &m.MitigationNote,
		&m.Clusters[0].Name, &m.Clusters[0].Model} {
		next(p)
	}
	s.Complete = false
	for i := range s.Series {
		x := &s.Series[i]
		x.Cluster = m.Clusters[0].Name
		if name, ok := names[x.Arm]; ok {
			x.Arm = name
		}
		if x.Workload == "io" {
			next(&x.Workload)
			x.Workload = strings.TrimPrefix(x.Workload, "x")
		}
		if x.Workload == "schedule" && i%2 == 0 {
			next(&x.Failure)
		}
	}
	for i := range s.Discards {
		next(&s.Discards[i].Why)
		next(&s.Discards[i].Workload)
	}
	for i := range s.Warnings {
		next(&s.Warnings[i].Text)
		next(&s.Warnings[i].Code)
	}
	s.Method.Command = evil
	return s
}

// TestHostileNames looks at the bytes; the test in a browser looks at what becomes of them.
func TestHostileNames(t *testing.T) {
	s := hostile()
	page := string(pageOf(t, s))
	for _, tag := range regexp.MustCompile(`<[a-zA-Z/!][^\s>]*`).FindAllString(page, -1) {
		known := []string{"html", "head", "meta", "link", "title", "style", "body", "header", "fieldset", "legend", "label", "input", "span", "p", "h1", "h2", "h3",
			"main", "section", "ul", "li", "div", "dl", "dt", "dd", "figure", "figcaption", "strong", "svg", "desc", "line", "rect", "text", "g", "path", "circle",
			"details", "summary", "table", "caption", "thead", "tbody", "tr", "th", "td", "small", "code", "b", "footer", "!DOCTYPE"}
		if !slices.Contains(known, strings.TrimPrefix(strings.TrimPrefix(tag, "<"), "/")) {
			t.Errorf("an element that is not of the page: %s", tag)
		}
	}
	if n := strings.Count(page, "<style"); n != 1 {
		t.Errorf("%d style sheets", n)
	}
	for _, bad := range []string{"<b>\xff", "\x1b", "\xff", "<img", "<iframe", "<script"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	var text, diff bytes.Buffer
	if err := Text(&text, s, sketch(s)); err != nil {
		t.Fatal(err)
	}
	good := server.study()
	if err := Diff(&diff, s, sketch(s), good, sketch(good)); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), diff.String()} {
		if strings.ContainsAny(out, "\x1b\a\u202e\ue000") || strings.Contains(out, "\xff") {
			t.Error("a terminal is sent what it could take for a command")
		}
	}
	checkWidth(t, "hostile", diff.String())
}

// TestPolicyForbidsAllElse leaves it to the test in a browser whether the hash is that of the style sheet: it would complain.
func TestPolicyForbidsAllElse(t *testing.T) {
	page := string(pageOf(t, server.study()))
	m := regexp.MustCompile(`content="(default-src[^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("there is no policy")
	}
	policy := html.UnescapeString(m[1])
	if !regexp.MustCompile(`^default-src 'none'; img-src data:; style-src 'sha256-[A-Za-z0-9+/]{43}='$`).MatchString(policy) {
		t.Errorf("the policy allows something: %s", policy)
	}
	if strings.Contains(page, " style=") || strings.Contains(page, "<script") {
		t.Error("the page holds styles or scripts that its policy forbids")
	}
}

// TestLittleOfEverything shows studies that lack most things.
func TestLittleOfEverything(t *testing.T) {
	for name, change := range map[string]func(*result.Study){
		"nothing":     func(s *result.Study) { *s = result.Study{Schema: 1} },
		"no series":   func(s *result.Study) { s.Series = nil },
		"no clusters": func(s *result.Study) { s.Machine.Clusters = nil },
		"no baseline": func(s *result.Study) {
			s.Series = slices.DeleteFunc(s.Series, func(x result.Series) bool { return x.Arm == armBaseline })
		},
		"only a baseline": func(s *result.Study) {
			s.Series = slices.DeleteFunc(s.Series, func(x result.Series) bool { return x.Arm != armBaseline })
		},
		"one launch": func(s *result.Study) {
			for i := range s.Series {
				s.Series[i].Samples = s.Series[i].Samples[:1]
			}
		},
		"all failed": func(s *result.Study) {
			for i := range s.Series {
				s.Series[i].Failure = "the program died"
			}
		},
		"only a command": func(s *result.Study) {
			s.Series = slices.DeleteFunc(s.Series, func(x result.Series) bool { return x.Workload != "startup" })
			for i := range s.Series {
				s.Series[i].Workload = "command"
			}
		},
	} {
		s := server.study()
		change(s)
		html := pageOf(t, s)
		var text bytes.Buffer
		if err := Text(&text, s, sketch(s)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkWidth(t, name, text.String())
		for _, bad := range []string{"NaN", "Inf", "%!", "<no value>"} {
			if bytes.Contains(html, []byte(bad)) || strings.Contains(text.String(), bad) {
				t.Errorf("%s: holds %s", name, bad)
			}
		}
	}
}

// write puts a page into a file, for a browser.
func write(t *testing.T, name string, s *result.Study) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, pageOf(t, s), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
