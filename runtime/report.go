package runtime

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/planc-dev/planc/runtime/amount"
	"github.com/planc-dev/planc/runtime/fold"
	"github.com/planc-dev/planc/runtime/visible"
)

// Intervals between progress reports.
const (
	liveEvery = 100 * time.Millisecond // on a terminal
	lineEvery = 5 * time.Second        // elsewhere
)

// progressAfter is the time after which a long task shows its progress for the first time.
const progressAfter = 500 * time.Millisecond

// report prints the progress of a run for people, or logs it. Any goroutine may use it.
type report struct {
	mutex    sync.Mutex
	w        io.Writer // nil: use log
	terminal bool
	log      *slog.Logger

	live bool // the terminal's last line is the live status line
	next time.Time
}

func newReport(o *options) *report {
	if l := o.launch; l != nil && l.Process > 0 { // only the first process prints
		return &report{w: io.Discard}
	}
	r := &report{w: o.text, terminal: o.terminal, log: o.logger}
	if r.w == nil && r.log == nil {
		r.log = slog.Default()
	}
	return r
}

// info prints text for people, or logs msg with its attributes.
func (r *report) info(text, msg string, attrs ...any) {
	if r.w == nil {
		r.log.Info(msg, attrs...)
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.erase()
	fmt.Fprintln(r.w, message(text, r.terminal))
}

// message formats a text for its reader: wrapped to the terminal's columns, or on one line in a log. It escapes quoted
// names, file contents and messages of other processes.
func message(text string, terminal bool) string {
	text = visible.Text(text)
	if !terminal {
		return text
	}
	text, stack, panicked := strings.Cut(text, "\ngoroutine ")
	text = fold.Lines(text, fold.Columns, fold.Indent)
	if panicked { // a stack trace keeps its own lines
		text += "\ngoroutine " + stack
	}
	return text
}

// warn prints or logs a warning.
func (r *report) warn(text string, attrs ...any) {
	if r.w == nil {
		r.log.Warn(text, attrs...)
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.erase()
	fmt.Fprintln(r.w, message("warning: "+text, r.terminal))
}

// clear removes the live status line.
func (r *report) clear() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.erase()
}

func (r *report) erase() {
	if r.live {
		fmt.Fprint(r.w, "\r\x1b[K")
		r.live = false
	}
}

// step reports a step if the interval has passed. left is the estimated time of the remaining steps.
func (r *report) step(s *Step, total int, tokensPerSecond float64, left time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := time.Now()
	if now.Before(r.next) && s.Step != total {
		return
	}
	if r.w == nil {
		r.next = now.Add(r.interval())
		r.log.Info("step", "step", s.Step, "loss", s.Loss, "lr", s.LR, "grad_norm", s.GradNorm, "tokens_per_s",
			math.Round(tokensPerSecond))
		return
	}
	text := fmt.Sprintf("step %d/%d  loss %.4f  %s tokens/s  %s left", s.Step, total, s.Loss,
		amount.Short(tokensPerSecond), left.Round(time.Second))
	r.next = now.Add(r.interval())
	if !r.terminal {
		fmt.Fprintln(r.w, text)
		return
	}
	fmt.Fprint(r.w, "\r\x1b[K"+text)
	r.live = true
}

// progressLine is the progress of a task: text for people, or a log message with its attributes.
type progressLine struct {
	text, msg string
	attrs     []any
}

// showDuring shows the progress of a task at intervals, until the returned function is called.
func (r *report) showDuring(far func() progressLine) (end func()) {
	every, ended, over := r.interval(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(min(progressAfter, every))
		defer timer.Stop()
		for {
			select {
			case <-over:
				return
			case <-timer.C:
				r.progress(far())
				timer.Reset(every)
			}
		}
	}()
	return func() {
		close(over)
		<-ended
		r.clear()
	}
}

// interval returns the time between two progress reports.
func (r *report) interval() time.Duration {
	switch {
	case r.w == nil:
		return 2 * lineEvery
	case r.terminal:
		return liveEvery
	}
	return lineEvery
}

func (r *report) progress(p progressLine) {
	if r.w == nil {
		r.log.Info(p.msg, p.attrs...)
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.terminal {
		fmt.Fprintln(r.w, p.text)
		return
	}
	fmt.Fprint(r.w, "\r\x1b[K"+p.text)
	r.live = true
}

// size formats a number of bytes in binary units.
func size(bytes int64) string {
	x, units := float64(bytes), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for x >= 1000 && len(units) > 1 {
		x, units = x/1024, units[1:]
	}
	if units[0] == "B" {
		return fmt.Sprintf("%.0f B", x)
	}
	return fmt.Sprintf("%.1f %s", x, units[0])
}

// seconds formats the duration of a step.
func seconds(s float64) string {
	switch {
	case math.IsNaN(s) || s <= 0:
		return "unknown"
	case s < 1e-3:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
	return fmt.Sprintf("%.2f s", s)
}
