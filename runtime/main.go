package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	goruntime "runtime"
	"syscall"
)

// Main is Run as a command: it reads the flags in os.Args, ends with a committed checkpoint on SIGINT and
// SIGTERM, and exits the process with the code of Run's error.
func Main(p *Program) {
	os.Exit(execute(p, os.Args[1:], os.Stdout, os.Stderr))
}

func execute(p *Program, args []string, stdout io.Writer, stderr *os.File) int {
	c, err := parse(args)
	if err == nil && c.help {
		usage(stdout, p)
		return 0
	}
	if err == nil {
		err = checkLaunch(os.LookupEnv)
	}
	if err != nil {
		return fail(stderr, p, err)
	}
	if c.threads > 0 {
		goruntime.GOMAXPROCS(c.threads * p.mesh().Size())
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	stopping := context.AfterFunc(ctx, func() {
		cancel() // a second signal ends the process at once
		fmt.Fprintf(stderr, "\n%s: stopping after this step, with a checkpoint; a second signal stops at once\n", p.Name)
	})
	result, err := Run(ctx, p, append(c.opts, c.logOption(stderr))...)
	stopping()
	if err != nil {
		return fail(stderr, p, err)
	}
	summary(stdout, p, &result)
	return 0
}

func fail(stderr io.Writer, p *Program, err error) int {
	fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	if exit := (*ExitError)(nil); errors.As(err, &exit) {
		return exit.Code
	}
	return ExitFailed
}

// summary prints what a finished run did.
func summary(w io.Writer, p *Program, r *Result) {
	if r.Sample != "" {
		fmt.Fprintf(w, "sample  %s\n\n", printable(r.Sample))
	}
	if !math.IsNaN(r.Loss) {
		fmt.Fprintf(w, "loss    %.4f at step %d, %.4f at step %d", r.FirstLoss, r.FirstStep, r.Loss, r.Steps)
	} else {
		fmt.Fprintf(w, "loss    nothing was left to do after step %d", r.Steps)
	}
	if !math.IsNaN(r.ValidLoss) {
		fmt.Fprintf(w, ", validation %.4f", r.ValidLoss)
	}
	fmt.Fprintf(w, "\nstep    predicted %s, measured %s", seconds(p.Predict.StepSeconds), seconds(r.StepSeconds))
	if r.TokensPerSecond > 0 {
		fmt.Fprintf(w, " (%s tokens/s)", short(r.TokensPerSecond))
	}
	fmt.Fprintf(w, "\nmemory  predicted %s a rank, arena %s", size(p.Predict.MemoryBytes), size(r.ArenaBytes))
	if r.PeakBytes > 0 {
		fmt.Fprintf(w, ", measured %s (peak of the process, %s in all)", size(r.PeakBytes/int64(r.Ranks)), size(r.PeakBytes))
	}
	if r.Skipped > 0 {
		fmt.Fprintf(w, "\nskipped %d steps that were not finite", r.Skipped)
	}
	binary, err := os.Executable()
	if err != nil {
		binary = os.Args[0]
	}
	fmt.Fprintf(w, "\nbinary  %s\nmetrics %s\n", binary, r.Metrics)
	if r.Checkpoint != "" {
		fmt.Fprintf(w, "saved   %s\n", r.Checkpoint)
	}
}

// printable keeps a sampled passage from driving the terminal: control characters but newline and tab
// become U+FFFD, as do bytes that are no UTF-8.
func printable(s string) string {
	out := make([]rune, 0, len(s))
	for _, c := range s {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			c = '\uFFFD'
		}
		out = append(out, c)
	}
	return string(out)
}
