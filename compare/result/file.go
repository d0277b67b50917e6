package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrSchema is wrapped by Read for a result of another version of the form.
var ErrSchema = errors.New("another version of the form")

// Read reads what Write wrote. Unknown fields are errors: a file that says more than this program understands is not shown in
// part. Inconsistent results (series of arms that are not listed, two series of the same) are errors as well.
func Read(r io.Reader) (*Study, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading the result: %w", err)
	}
	var head struct {
		Schema *int `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("not the JSON of braid compare: %w", at(b, err))
	}
	if head.Schema == nil {
		return nil, errors.New("not the JSON of braid compare: it has no field \"schema\"")
	}
	if *head.Schema != Schema {
		return nil, fmt.Errorf("the result has schema %d, this braid reads %d: %w", *head.Schema, Schema, ErrSchema)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var s Study
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("not the JSON of braid compare: %w", at(b, err))
	}
	return &s, s.check()
}

// at adds the line to errors that carry an offset.
func at(b []byte, err error) error {
	offset := int64(-1)
	var se *json.SyntaxError
	var te *json.UnmarshalTypeError
	if errors.As(err, &se) {
		offset = se.Offset
	} else if errors.As(err, &te) {
		offset = te.Offset
	}
	if offset < 0 || offset > int64(len(b)) {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(b[:offset], []byte("\n")), err)
}

func (s *Study) check() error {
	arms, clusters := map[string]bool{}, map[string]bool{}
	for _, a := range s.Arms {
		if a.Name == "" || arms[a.Name] {
			return fmt.Errorf("the result lists the arm %q twice, or without a name", a.Name)
		}
		arms[a.Name] = true
	}
	for _, c := range s.Machine.Clusters {
		clusters[c.Name] = true
	}
	type key struct {
		arm, workload, cluster string
		parameter              int64
	}
	seen := map[key]bool{}
	for _, r := range s.Series {
		k := key{r.Arm, r.Workload, r.Cluster, r.Parameter}
		switch {
		case !arms[r.Arm]:
			return fmt.Errorf("the result has samples of the arm %q, which it does not list", r.Arm)
		case !clusters[r.Cluster]:
			return fmt.Errorf("the result has samples of the cluster %q, which the machine does not have", r.Cluster)
		case seen[k]:
			return fmt.Errorf("the result has two series of %s on %s %d on %s", r.Arm, r.Workload, r.Parameter, r.Cluster)
		}
		seen[k] = true
		for i, x := range r.Samples {
			if x.Calls <= 0 && x.Discarded == "" || x.WallNS < 0 || x.CPUNS < 0 || x.Launch < 0 || x.Round < 0 {
				return fmt.Errorf("sample %d of %s on %s %d is impossible: %d calls in %d ns", i, r.Arm, r.Workload, r.Parameter, x.Calls, x.WallNS)
			}
		}
	}
	return nil
}

// ReadFile reads a file that WriteFile wrote. Errors name it.
func ReadFile(path string) (*Study, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Write writes a result as JSON: one line for each sample, so that results can be compared by line.
func Write(w io.Writer, s *Study) error {
	var samples [][]Sample
	flat := *s
	flat.Series = make([]Series, len(s.Series))
	for i, r := range s.Series {
		samples = append(samples, r.Samples)
		r.Samples = nil
		flat.Series[i] = r
	}
	b, err := json.MarshalIndent(flat, "", " ")
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	// What is indented holds no text with this line in it: JSON escapes line ends in strings.
	const hole = "\n   \"samples\": null"
	parts := bytes.Split(b, []byte(hole))
	if len(parts) != len(samples)+1 {
		return errors.New("writing the result: series and their places do not match")
	}
	var out bytes.Buffer
	out.Write(parts[0])
	for i, list := range samples {
		out.WriteString("\n   \"samples\": [")
		for j, x := range list {
			line, err := json.Marshal(x)
			if err != nil {
				return fmt.Errorf("writing the result: %w", err)
			}
			if j > 0 {
				out.WriteByte(',')
			}
			out.WriteString("\n    ")
			out.Write(line)
		}
		out.WriteByte(']')
		out.Write(parts[i+1])
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// WriteFile writes a result aside and renames it when it is whole: an old file stays until then.
func WriteFile(path string, s *Study) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("writing %s: %w", path, err)
		}
	}()
	for _, step := range []func() error{
		func() error { return Write(f, s) },
		func() error { return f.Chmod(0o644) },
		f.Close,
		func() error { return os.Rename(f.Name(), path) },
	} {
		if err = step(); err != nil {
			return err
		}
	}
	return nil
}
