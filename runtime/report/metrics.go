package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
)

// MetricsFile is the name of a run's log, with one JSON object per line (contract.md).
const MetricsFile = "metrics.jsonl"

// Metrics appends to metrics.jsonl. Every line is written at once, as a whole. After the first error all further lines
// are dropped, and err holds that error.
type Metrics struct {
	f       *os.File // nil in processes that do not write
	Path    string
	attempt int // number of this run in its folder, from 1
	line    []byte
	size    int64 // bytes of complete lines
	err     error
}

// OpenMetrics opens the log in dir, to continue it.
func OpenMetrics(dir string) (*Metrics, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("cannot create the folder of the run: %w; choose another with --dir", err)
	}
	m := &Metrics{Path: filepath.Join(dir, MetricsFile), attempt: 1}
	if info, err := os.Stat(m.Path); err == nil && !info.Mode().IsRegular() {
		return nil, exit.Errorf(exit.Input, "%s must be a regular file, because metrics are appended to it; choose "+
			"another folder with --log-dir", m.Path)
	}
	f, err := os.OpenFile(m.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("cannot open the metrics: %w; choose another folder with --log-dir", err)
	}
	m.f = f
	switch err := ckpt.LockFile(f); {
	case errors.Is(err, ckpt.ErrLocked):
		f.Close()
		return nil, exit.Errorf(exit.Cannot, "another run is writing its metrics to %s; wait until it ends, or choose "+
			"another folder with --log-dir", m.Path)
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("cannot open the metrics: %s: %w", m.Path, err)
	}
	return m, m.scan()
}

// scan counts the earlier attempts, and ends a line that a crash cut off.
func (m *Metrics) scan() error {
	in, last := bufio.NewReader(m.f), byte('\n')
	for {
		line, err := in.ReadBytes('\n')
		m.size += int64(len(line))
		if len(line) > 0 {
			last = line[len(line)-1]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot read the metrics: %w", err)
		}
		if !bytes.Contains(line, []byte(`"event"`)) {
			continue
		}
		var e struct{ Event string }
		if json.Unmarshal(line, &e) == nil && (e.Event == "start" || e.Event == "resume") {
			m.attempt++
		}
	}
	if last != '\n' {
		m.write([]byte{'\n'})
	}
	return m.err
}

// Err returns the first error of writing.
func (m *Metrics) Err() error { return m.err }

// Close closes the file.
func (m *Metrics) Close() {
	if m.f != nil {
		m.f.Close()
	}
}

// write appends complete lines. It removes a line that is only partly written.
func (m *Metrics) write(b []byte) {
	if m.f == nil || m.err != nil {
		return
	}
	n, err := m.f.Write(b)
	if err == nil {
		m.size += int64(n)
		return
	}
	if n > 0 {
		m.f.Truncate(m.size)
	}
	m.fail("write", err)
}

// Sync makes the lines durable.
func (m *Metrics) Sync() {
	if m.f == nil || m.err != nil {
		return
	}
	if err := m.f.Sync(); err != nil {
		m.fail("sync", err)
	}
}

// fail stores the error that ends writing, with advice.
func (m *Metrics) fail(what string, err error) {
	hint := "; --log-dir chooses another folder"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		hint = "; free some space, or choose another folder with --log-dir"
	}
	m.err = fmt.Errorf("cannot %s the metrics: %w%s", what, err, hint)
}

// begin starts a line with the keys that every line has.
func (m *Metrics) begin(step int) {
	m.line = append(m.line[:0], `{"t":`...)
	m.line = strconv.AppendFloat(m.line, float64(time.Now().UnixMilli())/1e3, 'f', 3, 64)
	m.integer("attempt", int64(m.attempt))
	m.integer("step", int64(step))
}

func (m *Metrics) key(name string) {
	m.line = append(m.line, ',', '"')
	m.line = append(m.line, name...)
	m.line = append(m.line, '"', ':')
}

func (m *Metrics) integer(name string, x int64) {
	m.key(name)
	m.line = strconv.AppendInt(m.line, x, 10)
}

// number writes the shortest decimal form that restores the number, with an exponent below 1e-6 and from 1e21 on, as
// package json does (1e-07 here, 1e-7 there). A number that is not finite is null.
func (m *Metrics) number(name string, x float64) {
	m.key(name)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		m.line = append(m.line, "null"...)
		return
	}
	form := byte('f')
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	m.line = strconv.AppendFloat(m.line, x, form, -1, 64)
}

func (m *Metrics) text(name, s string) {
	m.key(name)
	b, _ := json.Marshal(s)
	m.line = append(m.line, b...)
}

func (m *Metrics) end() {
	m.line = append(m.line, '}', '\n')
	m.write(m.line)
}

// StepLine is what the line of a step holds.
type StepLine struct {
	*Step
	HasAux          bool // the model has an auxiliary loss
	TokensPerSecond float64
	MFU             float64
	Memory          int64       // bytes of a rank
	Skipped         int         // steps of this training without an update; left out while it is 0
	Telemetry       []Telemetry // of the devices
}

// Step writes the line of a step.
func (m *Metrics) Step(s *StepLine) {
	m.begin(s.Step.Step)
	m.number("loss", s.Loss)
	m.number("lr", s.LR)
	m.number("grad_norm", s.GradNorm)
	m.integer("tokens", s.Tokens)
	m.number("tokens_per_s", s.TokensPerSecond)
	m.number("step_s", s.Seconds)
	m.number("mfu", s.MFU)
	m.integer("memory_bytes", s.Memory)
	if s.HasAux {
		m.number("aux_loss", s.AuxLoss)
	}
	m.experts(s.Step)
	if s.LossScale > 0 {
		m.number("loss_scale", s.LossScale)
	}
	if s.Skipped > 0 {
		m.integer("skipped", int64(s.Skipped))
	}
	m.telemetry(s.Telemetry)
	m.end()
}

// Valid writes the line of an evaluation after a step.
func (m *Metrics) Valid(step int, loss float64) {
	m.begin(step)
	m.number("valid_loss", loss)
	m.end()
}

// Event writes a line about the run: start, resume, checkpoint, skip or stop.
func (m *Metrics) Event(step int, event, detail string) {
	m.begin(step)
	m.text("event", event)
	if detail != "" {
		m.text("detail", detail)
	}
	m.end()
}

// experts writes the expert metrics of a step: lists with a number per layer, and totals.
func (m *Metrics) experts(s *Step) {
	if len(s.Experts) == 0 {
		return
	}
	list := func(name string, value func(*ExpertLoad) float64) {
		m.key(name)
		for i := range s.Experts {
			m.line = append(m.line, "[,"[min(i, 1)])
			m.line = appendShort(m.line, value(&s.Experts[i]))
		}
		m.line = append(m.line, ']')
	}
	list("expert_load", func(e *ExpertLoad) float64 { return e.Load })
	list("expert_cv", func(e *ExpertLoad) float64 { return e.CV })
	further, dropped := 0, int64(0)
	for i := range s.Experts {
		further += s.Experts[i].Further
		dropped += s.Experts[i].Dropped
	}
	m.integer("expert_rounds", int64(further))
	m.integer("expert_dropped", dropped)
}
