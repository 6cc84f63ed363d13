package runtime

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

// metricsFile is the name of a run's log, with one JSON object per line (contract.md).
const metricsFile = "metrics.jsonl"

// metrics appends to metrics.jsonl. Every line is written at once, as a whole. After the first error all further lines
// are dropped, and err holds that error.
type metrics struct {
	f       *os.File // nil in processes that do not write
	path    string
	attempt int // number of this run in its folder, from 1
	line    []byte
	size    int64 // bytes of complete lines
	err     error
}

// openMetrics opens the log in dir, to continue it.
func openMetrics(dir string) (*metrics, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("cannot create the folder of the run: %w; choose another with --dir", err)
	}
	m := &metrics{path: filepath.Join(dir, metricsFile), attempt: 1}
	if info, err := os.Stat(m.path); err == nil && !info.Mode().IsRegular() {
		return nil, exit.Errorf(exit.Input, "%s must be a regular file, because metrics are appended to it; choose "+
			"another folder with --log-dir", m.path)
	}
	f, err := os.OpenFile(m.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("cannot open the metrics: %w; choose another folder with --log-dir", err)
	}
	m.f = f
	switch err := ckpt.LockFile(f); {
	case errors.Is(err, ckpt.ErrLocked):
		f.Close()
		return nil, exit.Errorf(exit.Cannot, "another run is writing its metrics to %s; wait until it ends, or choose "+
			"another folder with --log-dir", m.path)
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("cannot open the metrics: %s: %w", m.path, err)
	}
	return m, m.scan()
}

// scan counts the earlier attempts, and ends a line that a crash cut off.
func (m *metrics) scan() error {
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

// write appends complete lines. It removes a line that is only partly written.
func (m *metrics) write(b []byte) {
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

// sync makes the lines durable.
func (m *metrics) sync() {
	if m.f == nil || m.err != nil {
		return
	}
	if err := m.f.Sync(); err != nil {
		m.fail("sync", err)
	}
}

// fail stores the error that ends writing, with advice.
func (m *metrics) fail(what string, err error) {
	hint := "; --log-dir chooses another folder"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		hint = "; free some space, or choose another folder with --log-dir"
	}
	m.err = fmt.Errorf("cannot %s the metrics: %w%s", what, err, hint)
}

// begin starts a line with the keys that every line has.
func (m *metrics) begin(step int) {
	m.line = append(m.line[:0], `{"t":`...)
	m.line = strconv.AppendFloat(m.line, float64(time.Now().UnixMilli())/1e3, 'f', 3, 64)
	m.integer("attempt", int64(m.attempt))
	m.integer("step", int64(step))
}

func (m *metrics) key(name string) {
	m.line = append(m.line, ',', '"')
	m.line = append(m.line, name...)
	m.line = append(m.line, '"', ':')
}

func (m *metrics) integer(name string, x int64) {
	m.key(name)
	m.line = strconv.AppendInt(m.line, x, 10)
}

// number writes the shortest decimal form that restores the number, with an exponent below 1e-6 and from 1e21 on, as
// package json does (1e-07 here, 1e-7 there). A number that is not finite is null.
func (m *metrics) number(name string, x float64) {
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

func (m *metrics) text(name, s string) {
	m.key(name)
	b, _ := json.Marshal(s)
	m.line = append(m.line, b...)
}

func (m *metrics) end() {
	m.line = append(m.line, '}', '\n')
	m.write(m.line)
}

// step writes the line of a step, with its aux_loss if the model has one. skipped counts the steps of this training
// without an update, and is left out while it is 0. The devices' telemetry comes last.
func (m *metrics) step(s *Step, aux bool, tokensPerSecond, mfu float64, memory int64, skipped int, d Devices) {
	m.begin(s.Step)
	m.number("loss", s.Loss)
	m.number("lr", s.LR)
	m.number("grad_norm", s.GradNorm)
	m.integer("tokens", s.Tokens)
	m.number("tokens_per_s", tokensPerSecond)
	m.number("step_s", s.Seconds)
	m.number("mfu", mfu)
	m.integer("memory_bytes", memory)
	if aux {
		m.number("aux_loss", s.AuxLoss)
	}
	m.experts(s)
	if s.LossScale > 0 {
		m.number("loss_scale", s.LossScale)
	}
	if skipped > 0 {
		m.integer("skipped", int64(skipped))
	}
	m.telemetry(d)
	m.end()
}

// valid writes the line of an evaluation after a step.
func (m *metrics) valid(step int, loss float64) {
	m.begin(step)
	m.number("valid_loss", loss)
	m.end()
}

// event writes a line about the run: start, resume, checkpoint, skip or stop.
func (m *metrics) event(step int, event, detail string) {
	m.begin(step)
	m.text("event", event)
	if detail != "" {
		m.text("detail", detail)
	}
	m.end()
}

// appendShort writes a number rounded to four decimals, without trailing zeros.
func appendShort(line []byte, x float64) []byte {
	return strconv.AppendFloat(line, math.Round(x*1e4)/1e4, 'f', -1, 64)
}
