// Command kernels runs braid's tests under other kernels than this machine's: test binaries that are built here for
// arm64 run in emulated machines (scripts/guest), the same natively, and what braid exported there for Perfetto is
// looked at here. From the results it writes the table in docs/kernels.md.
//
//	kernels [-quick] [-table] [KERNEL|native]...     make test-kernels
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"
)

// kernels are those of the table, in its order.
var kernels = []string{"5.10", "6.1", "6.12", native}

func main() {
	quick := flag.Bool("quick", false, "only what CI tries")
	write := flag.Bool("table", false, "write the table in docs/kernels.md")
	keep := flag.String("keep", "", "leave logs, files and results in `DIR`, and add to the results that are there")
	guest := flag.String("guest", "scripts/guest", "the `program` that runs guests")
	at := flag.Int("at-once", 2, "`N` guests at a time; each keeps one processor busy")
	only := flag.String("only", "", "only features whose names match this regular `expression`")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels: -only:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	under := flag.Args()
	if len(under) == 0 {
		under = kernels
	}
	d := driver{ctx: ctx, choice: choice{*quick, pattern}, guest: *guest, slots: make(chan struct{}, *at)}
	if err := d.run(under, *keep, *write); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

// driver runs the tests of several kernels side by side.
type driver struct {
	ctx    context.Context
	choice choice
	guest  string
	slots  chan struct{} // a token for each guest that runs
}

func (d *driver) run(under []string, keep string, write bool) error {
	dir := keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "braid-kernels-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if !slices.Equal(under, []string{native}) {
		test := filepath.Join(dir, "test")
		if err := os.RemoveAll(test); err != nil {
			return err
		}
		start := time.Now()
		if err := build(test); err != nil {
			return err
		}
		fmt.Printf("built in %.0f s\n", time.Since(start).Seconds())
	}

	found := make(map[string]results)
	var mu sync.Mutex
	var failed bool
	var wait sync.WaitGroup
	for _, kernel := range under {
		own := func() {
			r, err := d.kernel(kernel, filepath.Join(dir, kernel))
			mu.Lock()
			defer mu.Unlock()
			found[kernel] = r
			failed = failed || err != nil
			if err != nil {
				fmt.Printf("%s: %v\n", kernel, err)
			}
		}
		if kernel == native {
			own() // its tests expect no other load than the guests'
			continue
		}
		wait.Go(func() {
			d.slots <- struct{}{}
			defer func() { <-d.slots }()
			own()
		})
	}
	wait.Wait()
	all := d.tell(under, found)
	for _, k := range kernels {
		if found[k] == nil {
			found[k] = results{}
		}
		if err := os.MkdirAll(filepath.Join(dir, k), 0o755); err != nil {
			return err
		}
		if err := found[k].merge(filepath.Join(dir, k, "results.json")); err != nil {
			return err
		}
	}
	if write {
		if err := writeTable("docs/kernels.md", found); err != nil {
			return err
		}
	}
	if !all || failed {
		return fmt.Errorf("not everything works; logs: %s (-keep DIR keeps them)", dir)
	}
	return nil
}

// kernel runs everything under one kernel, with its logs in dir.
func (d *driver) kernel(kernel, dir string) (results, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	start := time.Now()
	var text string
	if kernel == native {
		text, err = d.here(log)
	} else {
		text, err = d.inGuest(kernel, dir, log)
	}
	r := parse(text)
	if err == nil && kernel != native {
		err = d.imported(dir, log)
	}
	fmt.Printf("%s: %.0f s\n", kernel, time.Since(start).Seconds())
	if err != nil || !d.choice.complete(r, kernel) {
		copyLog(log.Name())
	}
	return r, err
}

// copyLog shows what went wrong where logs are not kept. The guest's packed files are left out.
func copyLog(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	before, rest, _ := bytes.Cut(text, []byte(markFiles))
	_, after, _ := bytes.Cut(rest, []byte(markEnd))
	os.Stdout.Write(append(before, after...))
}

// tell prints a line for each feature, and returns whether all work.
func (d *driver) tell(under []string, found map[string]results) bool {
	all := true
	for _, f := range d.choice.features() {
		fmt.Printf("%-50s", f.name)
		for _, kernel := range under {
			c := found[kernel].cell(f, kernel)
			all = all && (c == works || c == nowhere)
			fmt.Printf(" %s: %-3s", kernel, c)
		}
		fmt.Println()
	}
	return all
}
