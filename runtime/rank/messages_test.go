package rank

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/program"
)

// messageLog is a device that records messages and passes.
type messageLog struct {
	Device
	t     *testing.T
	lines []string
	full  string // the pipe whose message is in the receive buffer, or on its way there
}

func (l *messageLog) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *messageLog) Send(line string, _, _ int) { l.add("send %s", line) }

func (l *messageLog) Receive(line string, _, _ int) {
	if l.full != "" && l.full != line {
		l.t.Errorf("a pass receives %s, but the buffer is for %s", line, l.full)
	}
	l.full = ""
	l.add("receive %s", line)
}

func (l *messageLog) PrepostReceive(line string, at, bytes int) {
	if l.full != "" {
		l.t.Errorf("%s is preposted into the buffer of %s", line, l.full)
	}
	if at != 1000 || bytes != 64 {
		l.t.Errorf("%d bytes are preposted at %d", bytes, at)
	}
	l.full = line
	l.add("prepost %s", line)
}

func (l *messageLog) AwaitSent(string)  {}
func (l *messageLog) Clear(int, int)    {}
func (l *messageLog) SumLoss(int)       {}
func (l *messageLog) ClipGradients(int) {}
func (l *messageLog) Infer(work func()) { work() }

// middleStage returns the log of the middle one of three stages.
func middleStage(t *testing.T, schedule string, prepost bool) (*Rank, *messageLog) {
	t.Helper()
	l := &messageLog{t: t}
	pass := func(kind string) func(*Rank, *Block) {
		return func(_ *Rank, b *Block) { l.add("%s%d", kind, b.Micro) }
	}
	p := &Program{ProgramData: ProgramData{Elem: program.F64, Stream: 64, PrepostReceives: prepost, Loss: -1,
		Mesh: []program.Axis{{Name: program.StageAxis, Size: 3}}, Batch: program.BatchLayout{MicroBatches: 2}},
		Segments: []Segment{{SegmentData: SegmentData{Input: true, Output: true}, Forward: pass("F"),
			Backward: pass("B"), Weights: pass("W")}}}
	for i := range 3 {
		s := program.Stage{Schedule: schedule, Gather: 32, Scatter: 16, Chunks: []program.Chunk{{Index: i,
			Runs: []program.LayerRun{{Count: 1, Stride: 64}}, Size: 128, Buffers: 2}}}
		s.Arena.Comm = program.Region{Offset: 500, Size: 564 + 2*32 + 2*16}
		s.Arena.Size = s.Arena.Comm.Offset + s.Arena.Comm.Size
		p.Stages = append(p.Stages, s)
	}
	r, err := New(p, comm.NewWorld(p.CommMesh(), 0), 1)
	if err != nil {
		t.Fatal(err)
	}
	r.Device = l
	return r, l
}

// A stage posts the receive of a pass before the compute of the pass before it, when that has emptied the buffer. A
// pass of weight gradients receives nothing.
func TestReceivesArePreposted(t *testing.T) {
	const input, gradient = "activations of chunk 0 for chunk 1", "gradients of chunk 2 for chunk 1"
	const output, before = "send activations of chunk 1 for chunk 2", "send gradients of chunk 1 for chunk 0"
	r, l := middleStage(t, "F0*2 (B0 W0)*2 U", true)
	for range 2 {
		l.lines = nil
		work[float64](r)
		if want := []string{
			"prepost " + input,
			"receive " + input, "prepost " + input, "F0", output,
			"receive " + input, "prepost " + gradient, "F1", output,
			"receive " + gradient, "B0", before,
			"prepost " + gradient, "W0",
			"receive " + gradient, "B1", before,
			"W1",
		}; !slices.Equal(l.lines, want) {
			t.Errorf("the stage does\n%q, want\n%q", l.lines, want)
		}
		l.lines = nil
		runEval(r) // its passes receive their messages when they begin
		if want := []string{"receive " + input, "F0", output}; !slices.Equal(l.lines, want) {
			t.Errorf("an evaluation does %q, want %q", l.lines, want)
		}
	}
	r, l = middleStage(t, "(F0 B0 W0)*2 U", false)
	work[float64](r)
	if slices.ContainsFunc(l.lines, func(s string) bool { return strings.HasPrefix(s, "prepost") }) {
		t.Errorf("a program without the buffer does %q", l.lines)
	}
}
