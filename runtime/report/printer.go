package report

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
	LineEvery = 5 * time.Second        // elsewhere
)

// progressAfter is the time after which a long task shows its progress for the first time.
const progressAfter = 500 * time.Millisecond

// Printer prints the progress of a run for people, or logs it. Any goroutine may use it.
type Printer struct {
	mutex    sync.Mutex
	w        io.Writer // nil: use log
	terminal bool
	log      *slog.Logger

	live bool // the terminal's last line is the live status line
	next time.Time
}

// NewPrinter returns a printer of text for people on w, with a live status line if w is a terminal. If w is nil, it
// logs to log instead, or to slog's default logger.
func NewPrinter(w io.Writer, terminal bool, log *slog.Logger) *Printer {
	if w == nil && log == nil {
		log = slog.Default()
	}
	return &Printer{w: w, terminal: terminal, log: log}
}

// Info prints text for people, or logs msg with its attributes.
func (p *Printer) Info(text, msg string, attrs ...any) {
	if p.w == nil {
		p.log.Info(msg, attrs...)
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.erase()
	fmt.Fprintln(p.w, Message(text, p.terminal))
}

// Message formats a text for its reader: wrapped to the terminal's columns, or on one line in a log. It escapes quoted
// names, file contents and messages of other processes.
func Message(text string, terminal bool) string {
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

// Warn prints or logs a warning.
func (p *Printer) Warn(text string, attrs ...any) {
	if p.w == nil {
		p.log.Warn(text, attrs...)
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.erase()
	fmt.Fprintln(p.w, Message("warning: "+text, p.terminal))
}

// Clear removes the live status line.
func (p *Printer) Clear() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.erase()
}

func (p *Printer) erase() {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.live = false
	}
}

// Step reports a step if the interval has passed. left is the estimated time of the remaining steps.
func (p *Printer) Step(s *Step, total int, tokensPerSecond float64, left time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := time.Now()
	if now.Before(p.next) && s.Step != total {
		return
	}
	if p.w == nil {
		p.next = now.Add(p.interval())
		p.log.Info("step", "step", s.Step, "loss", s.Loss, "lr", s.LR, "grad_norm", s.GradNorm, "tokens_per_s",
			math.Round(tokensPerSecond))
		return
	}
	text := fmt.Sprintf("step %d/%d  loss %.4f  %s tokens/s  %s left", s.Step, total, s.Loss,
		amount.Short(tokensPerSecond), left.Round(time.Second))
	p.next = now.Add(p.interval())
	if !p.terminal {
		fmt.Fprintln(p.w, text)
		return
	}
	fmt.Fprint(p.w, "\r\x1b[K"+text)
	p.live = true
}

// ProgressLine is the progress of a task: text for people, or a log message with its attributes.
type ProgressLine struct {
	Text, Msg string
	Attrs     []any
}

// ShowDuring shows the progress of a task at intervals, until the returned function is called.
func (p *Printer) ShowDuring(line func() ProgressLine) (end func()) {
	every, ended, over := p.interval(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(min(progressAfter, every))
		defer timer.Stop()
		for {
			select {
			case <-over:
				return
			case <-timer.C:
				p.progress(line())
				timer.Reset(every)
			}
		}
	}()
	return func() {
		close(over)
		<-ended
		p.Clear()
	}
}

// interval returns the time between two progress reports.
func (p *Printer) interval() time.Duration {
	switch {
	case p.w == nil:
		return 2 * LineEvery
	case p.terminal:
		return liveEvery
	}
	return LineEvery
}

func (p *Printer) progress(line ProgressLine) {
	if p.w == nil {
		p.log.Info(line.Msg, line.Attrs...)
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.terminal {
		fmt.Fprintln(p.w, line.Text)
		return
	}
	fmt.Fprint(p.w, "\r\x1b[K"+line.Text)
	p.live = true
}

// Size formats a number of bytes in binary units.
func Size(bytes int64) string {
	x, units := float64(bytes), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for x >= 1000 && len(units) > 1 {
		x, units = x/1024, units[1:]
	}
	if units[0] == "B" {
		return fmt.Sprintf("%.0f B", x)
	}
	return fmt.Sprintf("%.1f %s", x, units[0])
}

// Seconds formats the duration of a step.
func Seconds(s float64) string {
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
