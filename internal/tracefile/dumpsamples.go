package tracefile

import "fmt"

func (d *dumper) samples(b []byte) error {
	s, err := DecodeSamples(b)
	if err != nil {
		return err
	}
	kernel := "no kernel frames"
	if s.Kernel {
		kernel = "kernel frames"
	}
	fmt.Fprintf(d.w, "  %v, %d Hz, stacks %v, %s, %d samples\n", s.Event, s.Frequency, s.Stacks, kernel, len(s.Samples))
	n := d.limit(len(s.Samples))
	for i := range s.Samples[:n] {
		d.sample(&s.Samples[i])
	}
	d.more(n, len(s.Samples), "samples")
	return nil
}

func (d *dumper) sample(s *Sample) {
	mode := "user"
	if s.Flags&SampleKernel != 0 {
		mode = "kernel"
	}
	fmt.Fprintf(d.w, "  %s cpu %d tid %d tgid %d %s weight %d stack %v, %v\n",
		seconds(s.Time), s.CPU, s.Tid, s.Tgid, mode, s.Weight, s.Way, s.End)
	for _, addr := range s.Kernel {
		fmt.Fprintf(d.w, "    kernel %016x %s\n", addr, d.frameName(0, addr, s.Time))
	}
	for _, addr := range s.User {
		fmt.Fprintf(d.w, "    user   %016x %s\n", addr, d.frameName(s.Tgid, addr, s.Time))
	}
}

func (d *dumper) frameName(pid uint32, addr, time uint64) string {
	m, f := d.table.Find(pid, addr, time)
	switch {
	case m == nil:
		return "?"
	case f == nil:
		return fmt.Sprintf("? (%s)", printable(m.Path))
	}
	return fmt.Sprintf("%s+0x%x (%s)", printable(f.Name), addr-f.Start, printable(m.Path))
}

func (d *dumper) frames(b []byte) error {
	f, err := DecodeFrames(b)
	if err != nil {
		return err
	}
	n := d.limit(len(f.Mappings))
	for i := range f.Mappings[:n] {
		m := &f.Mappings[i]
		fmt.Fprintf(d.w, "  mapping %d pid %d %016x-%016x offset %x bias %x since %s %s build id %q %v\n", i, m.Pid, m.Start, m.End,
			m.Offset, m.Bias, seconds(m.Since), printable(m.Path), m.BuildID, m.Flags)
	}
	d.more(n, len(f.Mappings), "mappings")
	n = d.limit(len(f.Functions))
	for _, s := range f.Functions[:n] {
		fmt.Fprintf(d.w, "  %016x-%016x [%d] %s", s.Start, s.End, s.Mapping, printable(s.Name))
		if s.Raw != s.Name {
			fmt.Fprintf(d.w, " (%s)", printable(s.Raw))
		}
		fmt.Fprintln(d.w)
	}
	d.more(n, len(f.Functions), "functions")
	return nil
}
