package trigger

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// schema is a part of the JSON Schema.
type schema = map[string]any

// scalar is a type of single values: what a file may hold, in words and for the schema, and how it is read.
type scalar[V any] struct {
	what   string // "a duration such as 100ms"
	schema schema
	// read returns what is wrong with the value, or "".
	read func(n *yaml.Node) (V, string)
}

// key makes an entry of an object that holds one value.
func key[T, V any](name, doc string, s scalar[V], at func(*T) *V) entry[T] {
	return entry[T]{name: name, doc: doc, schema: func() schema { return s.schema }, read: func(p *parser, n *yaml.Node, to *T) {
		s.take(p, n, at(to))
	}}
}

func (e entry[T]) needed() entry[T] {
	e.required = true
	return e
}

func (s scalar[V]) take(p *parser, n *yaml.Node, to *V) {
	if !p.plain(n) {
		return
	}
	if n.Kind != yaml.ScalarNode {
		p.errorf(n, "found %s: this is %s", found(n), s.what)
		return
	}
	v, wrong := s.read(n)
	if wrong != "" {
		p.errorf(n, "found %s: %s", found(n), wrong)
		return
	}
	*to = v
}

// texts is a string that a regular expression fits: the parser and the schema use the same one.
func texts(what, expr string) scalar[string] {
	re := regexp.MustCompile(expr)
	return scalar[string]{what, schema{"type": "string", "pattern": expr}, func(n *yaml.Node) (string, string) {
		if n.ShortTag() != "!!str" {
			return "", "this is " + what + "; quote it if it is meant so"
		}
		if !re.MatchString(n.Value) {
			return "", "this is " + what
		}
		return n.Value, ""
	}}
}

func choice[V ~string](words ...V) scalar[V] {
	var allowed []string
	for _, w := range words {
		allowed = append(allowed, string(w))
	}
	return scalar[V]{"one of " + strings.Join(allowed, ", "), schema{"enum": words}, func(n *yaml.Node) (V, string) {
		for _, w := range words {
			if n.ShortTag() == "!!str" && n.Value == string(w) {
				return w, ""
			}
		}
		return "", didYouMean(n.Value, allowed)
	}}
}

func integer(least, most int) scalar[int] {
	what := fmt.Sprintf("a whole number from %d to %d", least, most)
	return scalar[int]{what, schema{"type": "integer", "minimum": least, "maximum": most}, func(n *yaml.Node) (int, string) {
		var v int64
		if n.ShortTag() != "!!int" || n.Load(&v) != nil || v < int64(least) || v > int64(most) {
			return 0, "this is " + what
		}
		return int(v), ""
	}}
}

func number(what string, least, most float64) scalar[float64] {
	what = fmt.Sprintf("%s: a number from %g to %g", what, least, most)
	return scalar[float64]{what, schema{"type": "number", "minimum": least, "maximum": most}, func(n *yaml.Node) (float64, string) {
		var v float64
		if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" || n.Load(&v) != nil || !(v >= least && v <= most) {
			return 0, "this is " + what
		}
		return v, ""
	}}
}

var durationUnits = map[string]float64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 24 * 3600e9}

const durationExpr = `([0-9]{1,9}(\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h|d)){1,8}`

var durationPart = regexp.MustCompile(`([0-9.]+)([a-zµ]+)`)

// lasts is a duration within bounds. A schema can not say the bounds. off allows "off", which is 0.
func lasts(least, most time.Duration, off bool) scalar[time.Duration] {
	expr, example := "^"+durationExpr+"$", "16.67ms, 5s, 1h30m or 14d"
	if off {
		expr, example = "^("+durationExpr+"|off)$", example+", or off"
	}
	re := regexp.MustCompile(expr)
	what := "a duration such as " + example
	return scalar[time.Duration]{what, schema{"type": "string", "pattern": expr}, func(n *yaml.Node) (time.Duration, string) {
		if tag := n.ShortTag(); tag == "!!int" || tag == "!!float" {
			return 0, "a duration needs a unit: " + n.Value + "ms or " + n.Value + "s?"
		}
		if n.ShortTag() != "!!str" || !re.MatchString(n.Value) {
			return 0, "this is " + what
		}
		if n.Value == "off" {
			return 0, ""
		}
		sum := 0.0
		for _, part := range durationPart.FindAllStringSubmatch(n.Value, -1) {
			v, err := strconv.ParseFloat(part[1], 64)
			if err != nil {
				return 0, "this is " + what
			}
			sum += v * durationUnits[part[2]]
		}
		if sum < float64(least) || sum > float64(most) {
			return 0, fmt.Sprintf("a duration from %s to %s is allowed", brief(least), brief(most))
		}
		return time.Duration(math.Round(sum)), ""
	}}
}

// brief writes a duration as it may stand in a file.
func brief(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	s = strings.TrimSuffix(s, "m0s") + map[bool]string{true: "m"}[strings.HasSuffix(s, "m0s")]
	return strings.TrimSuffix(s, "h0m") + map[bool]string{true: "h"}[strings.HasSuffix(s, "h0m")]
}

var sizeUnits = map[byte]uint{'K': 10, 'M': 20, 'G': 30, 'T': 40}

// sized is a size in bytes. expr is for what follows the number's digits.
func sized(what, expr string) scalar[int64] {
	re := regexp.MustCompile(expr)
	return scalar[int64]{what, schema{"type": "string", "pattern": expr}, func(n *yaml.Node) (int64, string) {
		if !re.MatchString(n.Value) || n.ShortTag() != "!!str" {
			return 0, "this is " + what
		}
		last := len(n.Value) - 1
		v, err := strconv.ParseInt(n.Value[:last], 10, 64)
		if err != nil || v > 1<<20 {
			return 0, "this is " + what
		}
		return v << sizeUnits[n.Value[last]], ""
	}}
}
