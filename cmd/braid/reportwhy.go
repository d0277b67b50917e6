package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"braid/internal/analysis"
	"braid/internal/timeline"
)

// whyOptions are the flags of braid report that are about the analysis.
type whyOptions struct {
	why, whyGiven              bool
	around, method, signatures string
	found                      []*analysis.Signature
}

// read reads the file of signatures.
func (w *whyOptions) read() error {
	if w.whyGiven && !w.why && (w.around != "" || w.method != "" || w.signatures != "") {
		return usageError("--why=false asks for no analysis; leave out --around, --method and --signatures")
	}
	if w.signatures == "" {
		return nil
	}
	b, err := os.ReadFile(w.signatures)
	if err != nil {
		return fmt.Errorf("read signatures: %w", err)
	}
	w.found, err = analysis.ParseSignatures(w.signatures, b)
	return err
}

// options is nil if no analysis is asked for and the trace has no trigger. thread is that of --thread.
func (w *whyOptions) options(tr *timeline.Trace, thread string) (*analysis.Options, error) {
	asked := w.why || w.around != "" || w.method != "" || w.signatures != ""
	if !asked && (w.whyGiven || tr.Meta.Trigger == nil) {
		return nil, nil
	}
	o := &analysis.Options{Around: analysis.Around{Thread: thread, Method: w.method}, Signatures: w.found}
	if w.signatures == "" || w.why {
		o.Signatures = append(analysis.Builtin(), w.found...)
	}
	var err error
	o.Around.From, o.Around.To, err = w.window(tr)
	return o, err
}

// window is the time of --around; 0 and 0 leaves it to the analysis.
func (w *whyOptions) window(tr *timeline.Trace) (from, to int64, err error) {
	switch w.around {
	case "":
		return 0, 0, nil
	case "trigger":
		if tr.Meta.Trigger == nil {
			return 0, 0, usageError("--around trigger: the trace has none")
		}
		return 0, 0, nil
	}
	first, last, isWindow := strings.Cut(w.around, "..")
	if from, err = moment(tr, first); err != nil {
		return 0, 0, err
	}
	to = from
	if isWindow {
		to, err = moment(tr, last)
	}
	if err == nil && to < from {
		err = usageError("--around %s: it ends before it begins", w.around)
	}
	return from, to, err
}

// moment is one time of --around, CLOCK_BOOTTIME ns.
func moment(tr *timeline.Trace, s string) (int64, error) {
	bad := func() (int64, error) {
		return 0, usageError("--around: %q is no time; give seconds since boot as braid dump shows them, +1.5s from the start or -200ms before the end", s)
	}
	if s != "" && (s[0] == '+' || s[0] == '-') {
		d, err := time.ParseDuration(s[1:])
		if err != nil || d < 0 {
			return bad()
		}
		if s[0] == '+' {
			return int64(tr.Meta.Start.BootNs) + int64(d), nil
		}
		return int64(tr.Meta.End.BootNs) - int64(d), nil
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "s"), 64)
	if err != nil || !(v > 0 && v < 1e9) {
		return bad()
	}
	whole, part, _ := strings.Cut(strings.TrimSuffix(s, "s"), ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || len(part) > 9 {
		return bad()
	}
	ns, err := strconv.ParseUint(part+strings.Repeat("0", 9-len(part)), 10, 64)
	if err != nil {
		return bad()
	}
	return seconds*int64(time.Second) + int64(ns), nil
}
