package driver

import (
	"fmt"
	"runtime/debug"
)

// background runs the writing of checkpoints concurrently with training, one job at a time. Only the driver's goroutine
// calls its methods.
type background struct {
	ended chan func() error // receives what the driver does after the job; nil if no job is running
}

// isBusy reports whether a job is running, or has ended and was not taken.
func (b *background) isBusy() bool { return b.ended != nil }

// start runs a job. The function that it returns is called by poll or wait, in the driver's goroutine, and may start
// the next job. No job may be running.
func (b *background) start(job func() func() error) {
	ended := make(chan func() error, 1)
	b.ended = ended
	go func() {
		defer func() {
			if x := recover(); x != nil {
				err := fmt.Errorf("%v\n%s", x, debug.Stack())
				ended <- func() error { return err }
			}
		}()
		ended <- job()
	}()
}

// poll takes the job if it has ended, and returns its error.
func (b *background) poll() error {
	select {
	case finish := <-b.ended:
		b.ended = nil
		return finish()
	default:
		return nil
	}
}

// wait waits until no job is running, and returns the first error.
func (b *background) wait() (err error) {
	for b.ended != nil {
		finish := <-b.ended
		b.ended = nil
		if failed := finish(); err == nil {
			err = failed
		}
	}
	return err
}
