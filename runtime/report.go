package runtime

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/planc-dev/planc/runtime/amount"
	"github.com/planc-dev/planc/runtime/fold"
	"github.com/planc-dev/planc/runtime/visible"
)

// How often progress is reported.
const (
	liveEvery = 100 * time.Millisecond // on a terminal
	lineEvery = 5 * time.Second        // elsewhere
)

// report tells people, or a logger, how the run goes.
type report struct {
	w        io.Writer // nil: log
	terminal bool
	log      *slog.Logger

	live bool // the terminal's last line is a live one
	next time.Time
}

func newReport(o *options) *report {
	if l := o.launch; l != nil && l.Process > 0 { // the first process speaks for all
		return &report{w: io.Discard}
	}
	r := &report{w: o.text, terminal: o.terminal, log: o.logger}
	if r.w == nil && r.log == nil {
		r.log = slog.Default()
	}
	return r
}

// say prints text for people, or logs msg with its attributes.
func (r *report) say(text, msg string, attrs ...any) {
	if r.w == nil {
		r.log.Info(msg, attrs...)
		return
	}
	r.clear()
	fmt.Fprintln(r.w, message(text, r.terminal))
}

// message is a text as its reader wants it: within the columns of a terminal, a line in a log; and what it quotes of names, files
// and other processes is escaped.
func message(text string, terminal bool) string {
	text = visible.Text(text)
	if !terminal {
		return text
	}
	text, stack, panicked := strings.Cut(text, "\ngoroutine ")
	if text = fold.Lines(text, fold.Columns, fold.Indent); panicked { // a stack is laid out already
		text += "\ngoroutine " + stack
	}
	return text
}

// warn is say for what should not be overlooked.
func (r *report) warn(text string, attrs ...any) {
	if r.w == nil {
		r.log.Warn(text, attrs...)
		return
	}
	r.clear()
	fmt.Fprintln(r.w, message("warning: "+text, r.terminal))
}

// clear removes the live line.
func (r *report) clear() {
	if r.live {
		fmt.Fprint(r.w, "\r\x1b[K")
		r.live = false
	}
}

// step reports a step where it is time to. left is the time that the other steps will take.
func (r *report) step(s *Step, total int, tokensPerSecond float64, left time.Duration) {
	now := time.Now()
	if now.Before(r.next) && s.Step != total {
		return
	}
	if r.w == nil {
		r.next = now.Add(2 * lineEvery)
		r.log.Info("step", "step", s.Step, "loss", s.Loss, "lr", s.LR, "grad_norm", s.GradNorm, "tokens_per_s", math.Round(tokensPerSecond))
		return
	}
	text := fmt.Sprintf("step %d/%d  loss %.4f  %s tokens/s  %s left", s.Step, total, s.Loss, amount.Short(tokensPerSecond), left.Round(time.Second))
	if !r.terminal {
		r.next = now.Add(lineEvery)
		fmt.Fprintln(r.w, text)
		return
	}
	r.next = now.Add(liveEvery)
	fmt.Fprint(r.w, "\r\x1b[K"+text)
	r.live = true
}

// size prints bytes in binary units.
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

// seconds prints a duration of a step.
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
