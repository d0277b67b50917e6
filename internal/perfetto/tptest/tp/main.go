// Command tp queries a Perfetto trace with Perfetto's own trace processor, installing it first where needed. See
// scripts/trace-processor.
package main

import (
	"fmt"
	"os"
	"strings"

	"braid/internal/perfetto/tptest"
)

const usage = `usage: trace-processor TRACE [SQL]...
       trace-processor --install DIR
Imports a Perfetto trace with Perfetto's own trace processor, checks the import,
and prints the rows of each query, tab-separated below their columns' names.
Without a query it only checks. --install puts the trace processor into DIR.

Exit status: 0; 1 if the import has errors or a query fails; 2 usage.

  scripts/trace-processor app.pftrace 'select name, count(*) from slice group by 1'
`

func main() {
	args := os.Args[1:]
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(args); err != nil {
		fmt.Fprintf(os.Stderr, "trace-processor: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if args[0] == "--install" && len(args) == 2 {
		_, err := tptest.InstallTo(args[1])
		return err
	}
	t, err := tptest.Load(args[0])
	if err != nil {
		return err
	}
	defer t.Close()
	for _, sql := range args[1:] {
		columns, rows, err := t.Query(sql)
		if err != nil {
			return err
		}
		fmt.Println(strings.Join(columns, "\t"))
		for _, r := range rows {
			fmt.Println(strings.Join(r, "\t"))
		}
	}
	return t.Check()
}
