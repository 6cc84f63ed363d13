package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// handled counts the work that ends by itself when a signal comes: what it has begun is cleaned up.
var handled atomic.Int32

// untilSignal returns a context that ends when the user or the system stops planc; release is called when the work is
// over.
func untilSignal() (ctx context.Context, release func()) {
	handled.Add(1)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	return ctx, func() {
		stop()
		handled.Add(-1)
	}
}

// reportStops says that planc was stopped, where no work handles the signal, and ends the process by that signal, as a
// shell wants it of a command: a loop around it ends too.
func reportStops() {
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) { // as a shell has it for a command in the background
			signal.Notify(signals, s)
		}
	}
	go func() {
		for s := range signals {
			if handled.Load() > 0 {
				continue
			}
			text := "planc: stopped (" + s.String() + ")"
			if isTerminal(os.Stderr) {
				text = eraseLine + text
			}
			fmt.Fprintln(os.Stderr, text)
			endBy(s)
		}
	}()
}
