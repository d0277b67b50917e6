package render

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"regexp"
	"strings"
	"unicode"

	"braid/compare/estimate"
	"braid/compare/result"
)

//go:embed page.css
var style string

//go:embed page.html
var layout string

// The page has no scripts: light and dark are a form field that the style sheet looks at. So its policy can forbid
// everything but that style sheet, which it names by its hash; a name that got through unescaped could do nothing.
var layoutTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"figures": minus,
	"prose":   prose,
	"list":    func(v ...any) []any { return v },
}).Parse(layout))

// minus writes the sign of negative numbers as such, and a dash where there is no number.
func minus(s string) string {
	if s == "-" {
		return "–"
	}
	return negative.ReplaceAllString(s, "$1−$2")
}

var (
	hardUnits = strings.NewReplacer(" %", "\u00a0%", " ns", "\u00a0ns", " ×", "\u00a0×", "× ", "×\u00a0")
	negative  = regexp.MustCompile(`(^|[ (])-(\d)`)
)

// prose keeps numbers and their units together, and writes signs as such.
func prose(s string) string { return hardUnits.Replace(minus(s)) }

// HTML writes a study as one page that needs nothing else: no script, no request, no font. The same result gives the same
// bytes. Strings of the result are escaped.
func HTML(w io.Writer, r *result.Study, e *estimate.Study) error {
	p := newView(r, e).page()
	hash := sha256.Sum256([]byte(style))
	p.Style = template.CSS(style)
	p.Policy = "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	var b strings.Builder
	if err := layoutTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err := io.WriteString(w, visible(b.String()))
	return err
}

// visible replaces what is no text, or turns the direction of the text around it.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' || r == '\u00a0' {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
