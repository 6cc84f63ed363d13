package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// bench is one call of the command.
type bench struct {
	dir    string // folder of what build compiled
	out    string // folder of results
	python string
	tiny   bool
	only   string    // run only this check of the part; "" runs all
	until  time.Time // end of the part's time
	env    []string  // environment of the checks' processes
	runs   []lawRun  // results of law 1, for law 3
	rates  rates     // of the device, once the part has measured them

	save func() error // writes the part's results, with the unfinished one of the running check
}

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check:", err)
		os.Exit(1)
	}
}

// command runs the command line: a word, flags, and other arguments.
func command(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("the first argument must be build, report, or a part: %s", partNames())
	}
	var b bench
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	set.StringVar(&b.dir, "dir", ".gpu-check/programs", "folder with the output of build")
	set.StringVar(&b.out, "out", "", "folder for results (default $OUT, or gpu-check-results)")
	set.StringVar(&b.python, "python", "python3", "a Python that has PyTorch 2")
	set.BoolVar(&b.tiny, "tiny", false, "shapes for an emulated GPU")
	set.StringVar(&b.only, "only", "", "run only this check of the part")
	minutes := set.Float64("minutes", 8, "time limit of a part")
	arch := set.String("arch", "90a", "GPU architecture, for build")
	at := set.String("rates", "0,0", "bytes and operations per second of the device, for kernel")
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if b.out == "" {
		b.out = os.Getenv("OUT")
		if b.out == "" {
			b.out = "gpu-check-results"
		}
	}
	var err error
	b.dir, err = filepath.Abs(b.dir)
	if err != nil {
		return err
	}
	switch args[0] {
	case "build":
		return b.build(ctx, *arch)
	case "report":
		return report(b.out, set.Args())
	case "kernel":
		if _, err := fmt.Sscanf(*at, "%g,%g", &b.rates.Bytes, &b.rates.Flops); err != nil {
			return fmt.Errorf("-rates %s: %w", *at, err)
		}
		return runKernels(os.Stdout, &b, set.Args())
	}
	for _, c := range calls {
		if c.name == args[0] {
			return c.run(ctx, &b)
		}
	}
	b.until = time.Now().Add(time.Duration(*minutes * float64(time.Minute)))
	return b.part(ctx, args[0])
}
