package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/timeline"
)

// TraceSteps is the range of steps that are traced, both included; the zero value is none.
type TraceSteps struct{ First, Last int }

// tracer records the trace of some steps. It has the driver's own track; the ranks have theirs.
type tracer struct {
	*job
	track     timeline.Track
	recording bool
	isOver    bool // the trace is written, or there will be none
}

// check returns an error if the program cannot be traced.
func (r *tracer) check() error {
	if r.o.Trace != (TraceSteps{}) && r.p.Devices != nil {
		return exit.Errorf(exit.Input, "--trace-steps is not supported yet for programs for GPUs: Nsight Systems "+
			"traces them (nsys profile -t cuda,nvtx %s ...)", filepath.Base(os.Args[0]))
	}
	return nil
}

// before starts the trace before its first step, and writes it before the step after its last.
func (r *tracer) before(step int) error {
	t := r.o.Trace
	if t.First == 0 || r.isOver {
		return nil
	}
	if step > t.Last {
		if err := r.finish(); err != nil {
			r.report.Warn(err.Error()) // training goes on
		}
		return nil
	}
	if step >= t.First && !r.recording {
		r.recording = true
		r.record(true)
	}
	return nil
}

func (r *tracer) record(on bool) {
	r.track.Record(on)
	for _, k := range r.crew.mine {
		k.Compute().Record(on)
		k.Communication().Record(on)
	}
}

// begin begins a piece of the driver's work. The returned function ends it.
func (r *tracer) begin(kind string, at int) (end func()) {
	if !r.recording {
		return func() {}
	}
	m := r.track.Begin(timeline.Other)
	s := r.track.Span()
	s.Kind, s.At = kind, at
	return func() { r.track.End(m) }
}

// finish writes the trace.
func (r *tracer) finish() error {
	t := r.o.Trace
	if t.First == 0 || r.isOver {
		return nil
	}
	r.isOver = true
	if !r.recording {
		r.report.Warn(fmt.Sprintf("there is no trace: this run has no step from %d to %d", t.First, t.Last))
		return nil
	}
	r.record(false)
	r.recording = false
	path := filepath.Join(r.o.LogDir, fmt.Sprintf("trace-%d-%d.json", t.First, t.Last))
	if err := r.write(path); err != nil {
		return fmt.Errorf("cannot write the trace: %w; choose another folder with --log-dir", err)
	}
	r.report.Info(fmt.Sprintf("trace of steps %d to %d: %s", t.First, min(t.Last, r.done.step), path), "trace",
		"first", t.First, "last", t.Last, "path", path)
	return nil
}

// write writes the trace to a file.
func (r *tracer) write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	steps := timeline.Thread{Name: "steps", Track: &r.track}
	processes := []timeline.Process{{Name: "driver", Threads: []timeline.Thread{steps}}}
	for _, k := range r.crew.mine {
		processes = append(processes, timeline.Process{Name: rankName(k), Threads: []timeline.Thread{
			{Name: "compute", Track: k.Compute()}, {Name: "communication", Track: k.Communication()}}})
	}
	err = timeline.Write(f, processes, map[string]string{"name": r.p.Name, "plan": r.p.Plan.Text,
		"program": r.p.Hash, "steps": fmt.Sprintf("%d:%d", r.o.Trace.First, r.o.Trace.Last)})
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// rankName returns the name of a rank in a trace, with its coordinates: "rank 3 (dp 1 tp 1)".
func rankName(k *rank.Rank) string {
	name := "rank " + strconv.Itoa(k.ID)
	var at []string
	for _, a := range k.Program.Mesh {
		if a.Size > 1 {
			at = append(at, fmt.Sprintf("%s %d", a.Name, k.Coord[a.Name]))
		}
	}
	if len(at) == 0 {
		return name
	}
	return name + " (" + strings.Join(at, " ") + ")"
}
