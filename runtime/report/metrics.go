package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
)

// MetricsFile is the name of a run's log, with one JSON object per line (contract.md).
const MetricsFile = "metrics.jsonl"

// Metrics appends to metrics.jsonl, and writes its numbers to TensorBoard's event files in the same folder. Every line
// and event is written at once, as a whole. After the first error of a file its further lines or events are dropped.
type Metrics struct {
	appender
	events events
	Path   string
	// also shown the metrics; nil: none
	Exporter Exporter
	Plan     string // written when a run starts or resumes
	Program  string // hash of the program, which is written with Plan
	attempt  int    // number of this run in its folder, from 1
	line     []byte
}

// OpenMetrics opens the log in dir, to continue it.
func OpenMetrics(dir string) (*Metrics, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("cannot create the folder of the run: %w; choose another with --dir", err)
	}
	m := &Metrics{Path: filepath.Join(dir, MetricsFile), attempt: 1}
	m.what, m.events.what = "the metrics", "the TensorBoard events"
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
		m.append([]byte{'\n'})
	}
	return m.err
}

// Err returns the first error of writing.
func (m *Metrics) Err() error { return cmp.Or(m.err, m.events.err) }

// Close closes the files.
func (m *Metrics) Close() {
	m.appender.close()
	m.events.close()
	if m.Exporter != nil {
		m.Exporter.Close()
	}
}

// Sync makes the lines and events durable.
func (m *Metrics) Sync() {
	m.appender.sync()
	m.events.sync()
}

// begin starts a line with the keys that every line has.
func (m *Metrics) begin(step int) {
	now := time.Now()
	m.line = append(m.line[:0], `{"t":`...)
	m.line = strconv.AppendFloat(m.line, float64(now.UnixMilli())/1e3, 'f', 3, 64)
	m.integer("attempt", int64(m.attempt))
	m.integer("step", int64(step))
	m.events.begin(now, step)
}

func (m *Metrics) key(name string) {
	m.line = append(m.line, ',', '"')
	m.line = append(m.line, name...)
	m.line = append(m.line, '"', ':')
}

func (m *Metrics) integer(name string, x int64) {
	m.key(name)
	m.line = strconv.AppendInt(m.line, x, 10)
	m.events.scalar(name, float64(x))
}

// number writes a key with a number.
func (m *Metrics) number(name string, x float64) {
	m.key(name)
	m.events.scalar(name, x)
	m.value(x)
}

// value writes the shortest decimal form that restores the number, with an exponent below 1e-6 and from 1e21 on, as
// package json does (1e-07 here, 1e-7 there). A number that is not finite is null.
func (m *Metrics) value(x float64) {
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
	m.append(m.line)
	m.events.end()
}

// StepLine is what the line of a step holds.
type StepLine struct {
	*Step
	HasAux          bool // the model has an auxiliary loss
	TokensPerSecond float64
	MFU             float64
	Memory          int64       // bytes of a rank
	Skipped         int         // steps of this training without an update; left out while it is 0
	Times           *Times      // nil: not measured
	Params          []ParamNorm // nil: not computed
	Telemetry       []Telemetry // of the devices
}

// Step writes the line of a step.
func (m *Metrics) Step(s *StepLine) {
	if m.Exporter != nil {
		m.Exporter.Step(s)
	}
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
	m.times(s.Times)
	m.params(s.Params)
	m.telemetry(s.Telemetry)
	m.end()
}

// params writes the norms of parameters and gradients, each as an object by name.
func (m *Metrics) params(norms []ParamNorm) {
	if len(norms) == 0 {
		return
	}
	object := func(name string, value func(*ParamNorm) float64) {
		m.key(name)
		for i := range norms {
			m.line = append(m.line, "{,"[min(i, 1)], '"')
			m.line = append(append(m.line, norms[i].Name...), '"', ':')
			x := value(&norms[i])
			m.value(x)
			m.events.scalar(name+"/"+norms[i].Name, x)
		}
		m.line = append(m.line, '}')
	}
	object("weight_norms", func(p *ParamNorm) float64 { return p.Weight })
	object("grad_norms", func(p *ParamNorm) float64 { return p.Grad })
}

// Valid writes the line of an evaluation after a step.
func (m *Metrics) Valid(step int, loss float64) {
	m.begin(step)
	m.number("valid_loss", loss)
	m.end()
	if m.Exporter != nil {
		m.Exporter.Valid(loss)
	}
}

// Event writes a line about the run: start, resume, sample, remove, skip, straggler or stop. The first two
// begin a file of TensorBoard events.
func (m *Metrics) Event(step int, event, detail string) {
	if m.f != nil && (event == "start" || event == "resume" || event == "rollback") {
		m.events.err = m.events.open(filepath.Dir(m.Path), m.attempt, step)
	}
	m.begin(step)
	m.text("event", event)
	if detail != "" {
		m.text("detail", detail)
	}
	if m.Plan != "" && (event == "start" || event == "resume") {
		m.text("plan", m.Plan)
		m.text("program", m.Program)
	}
	m.end()
}

// Checkpoint writes the event of a durable checkpoint: its folder, how many seconds training stopped for it, and how
// long it took to write.
func (m *Metrics) Checkpoint(step int, path string, stall, write float64) {
	m.begin(step)
	m.text("event", "checkpoint")
	m.text("detail", path)
	m.number("stall_s", stall)
	m.number("write_s", write)
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
			x := value(&s.Experts[i])
			m.line = appendShort(m.line, x)
			m.events.element(name, i, x)
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
