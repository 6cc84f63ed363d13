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

// bench is a call of the command.
type bench struct {
	dir    string // of what build made
	out    string // where results go
	python string
	tiny   bool
	only   string    // of a part's checks; "" is all
	until  time.Time // when the part's time is up
	env    []string  // of the checks' processes
	runs   []lawRun  // of law 1, for law 3
}

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check:", err)
		os.Exit(1)
	}
}

// command does what the arguments ask for: a word, flags, and what is not a flag.
func command(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("what to do: build, report, or a part, of %s", partNames())
	}
	var b bench
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	set.StringVar(&b.dir, "dir", ".gpu-check/programs", "folder of what build made")
	set.StringVar(&b.out, "out", "", "folder for results (default $OUT, or gpu-check-results)")
	set.StringVar(&b.python, "python", "python3", "a Python that has PyTorch 2")
	set.BoolVar(&b.tiny, "tiny", false, "shapes for an emulated GPU")
	set.StringVar(&b.only, "only", "", "one check of the part")
	minutes := set.Float64("minutes", 8, "after which a part ends")
	arch := set.String("arch", "90a", "of the GPU, for build")
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
		return runKernels(os.Stdout, b.dir, b.tiny, set.Args())
	}
	b.until = time.Now().Add(time.Duration(*minutes * float64(time.Minute)))
	return b.part(ctx, args[0])
}
