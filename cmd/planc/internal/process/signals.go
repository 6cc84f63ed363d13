package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// handled counts running work that handles signals itself and cleans up.
var handled atomic.Int32

// UntilSignal returns a context that is canceled when the user or the system stops planc. Call release at the end of
// the work.
func UntilSignal() (ctx context.Context, release func()) {
	handled.Add(1)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	return ctx, func() {
		stop()
		handled.Add(-1)
	}
}

// ReportStops handles signals for which no work is responsible: it prints that planc was stopped, after a prefix, and
// ends the process by that signal, so that a shell loop around planc ends too.
func ReportStops(prefix string) {
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) { // a shell ignores signals for commands in the background
			signal.Notify(signals, s)
		}
	}
	go func() {
		for s := range signals {
			if handled.Load() > 0 {
				continue
			}
			fmt.Fprintln(os.Stderr, prefix+"planc: stopped ("+s.String()+")")
			endBy(s)
		}
	}()
}
