//go:build cuda && linux

package gpu

import (
	"encoding/binary"
	"math"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// What the host says of a step, in f64 each, by place: kernels read it, so that their arguments stay the same.
const (
	lossScale  = iota // what the loss is multiplied by
	tokens            // unmasked ones of the global batch
	sequences         // of the global batch
	decayRates        // of the optimizer, where parameters decay
	plainRates = decayRates + rates
	chanceKey  = plainRates + rates // of parameters' rounding, an integer of 64 bits
	values     = chanceKey + 1
	rates      = 9 // as cuda/kernels/optimizer.cu has them
)

// What the device says of a step, likewise.
const (
	lossSum    = iota // of unmasked tokens
	auxSum            // of what routers are trained with
	squaresSum        // of gradients; and behind it
	badLoss           // how many ranks' loss is not finite
	clipped           // the gradients' norm, the factor of gradients, whether the step is skipped
	results    = clipped + 3
)

// step is what is said of a step, on both sides, and how it is done.
type step struct {
	said, heard         cuda.Memory
	hostSaid, hostHeard cuda.Pinned
	done                int         // steps
	varies              bool        // launches differ from step to step
	graph               *cuda.Graph // of a step
}

// open makes room.
func (s *step) open(d *device, m *machine) (err error) {
	p := d.rank.Program
	s.varies = p.Dropout || p.Experts.Copies > 0 || m.shared // whose ranks meet on the host
	if err = updates(p.Kept()); err != nil {
		return err
	}
	s.said, s.heard = d.alloc(values*8), d.alloc(results*8)
	if s.hostSaid, err = cuda.AllocPinned(values * 8); err != nil {
		return err
	}
	s.hostHeard, err = cuda.AllocPinned(results * 8)
	return err
}

// forget ends the graph.
func (s *step) forget() {
	if s.graph != nil {
		_ = s.graph.Close()
		s.graph = nil
	}
}

func (s *step) close() {
	_ = s.hostSaid.Free()
	_ = s.hostHeard.Free()
}

// value is where a number that the host says lies on the device.
func (s *step) value(i int) cuda.Pointer { return s.said.Pointer + cuda.Pointer(i*8) }

// result is where a number that the device says lies.
func (s *step) result(i int) cuda.Pointer { return s.heard.Pointer + cuda.Pointer(i*8) }

// say sends what kernels of the step read.
func (s *step) say(d *device) {
	var x [values]float64
	r := d.rank
	x[lossScale], x[tokens], x[sequences] = r.Scale, r.Tokens, float64(r.Program.Batch.GlobalBatch)
	ratesOf(x[decayRates:plainRates], r.Program.Optim, &r.Hyper, r.Hyper.WeightDecay)
	ratesOf(x[plainRates:], r.Program.Optim, &r.Hyper, 0)
	putFloats(s.hostSaid.Slice(), x[:]...)
	binary.NativeEndian.PutUint64(s.hostSaid.Slice()[chanceKey*8:], rt.ChanceKey(r))
	rt.Check(d.compute.stream.Upload(s.said, s.hostSaid))
}

// putFloats and getFloat are numbers in pinned memory.
func putFloats(to []byte, x ...float64) {
	for i, v := range x {
		binary.NativeEndian.PutUint64(to[i*8:], math.Float64bits(v))
	}
}

func getFloat(from []byte) float64 { return math.Float64frombits(binary.NativeEndian.Uint64(from)) }

// ratesOf are what an update reads, in the order of cuda/kernels/optimizer.cu.
func ratesOf(to []float64, kind rt.OptimizerKind, h *rt.Hyper, decay float64) {
	if kind == rt.SGD {
		copy(to, []float64{h.LR, h.Momentum, decay})
		return
	}
	shrink := 1.0
	if kind == rt.AdamW {
		shrink, decay = 1-h.LR*decay, 0
	}
	step := h.LR / (1 - math.Pow(h.Beta1, float64(h.T)))
	root := 1 / math.Sqrt(1-math.Pow(h.Beta2, float64(h.T)))
	copy(to, []float64{step, root, shrink, decay, h.Beta1, 1 - h.Beta1, h.Beta2, 1 - h.Beta2, h.Eps})
}

// hear waits for all that was begun, and takes what the device says of it.
func (s *step) hear(d *device) (x [results]float64) {
	rt.Check(d.compute.stream.Download(s.hostHeard, s.heard))
	rt.Check(d.compute.stream.Synchronize())
	host := s.hostHeard.Slice()
	for i := range x {
		x[i] = getFloat(host[i*8:])
	}
	return x
}

// Step does a step: the first call by call, the second as it is captured, the others again as they were captured.
func (d *device) Step(work func()) {
	s := &d.step
	s.say(d)
	if s.done > 0 && !s.varies && s.graph == nil {
		var err error
		s.graph, err = d.compute.stream.Capture(func() error {
			d.begin(work)
			return nil
		})
		rt.Check(err)
	}
	if s.graph != nil {
		rt.Check(d.compute.stream.Replay(s.graph))
	} else {
		d.begin(work)
	}
	s.done++
	x := s.hear(d)
	r := d.rank
	rt.AddStepAux(r, x[auxSum])
	r.LossSum, r.Norm, r.Clip, r.Skip = x[lossSum], x[clipped], x[clipped+1], x[clipped+2] != 0
}

// Infer does forward passes.
func (d *device) Infer(work func()) {
	d.begin(work)
	d.rank.LossSum = d.step.hear(d)[lossSum]
}

// begin puts all of a step or an evaluation on streams; what comes behind it on the first comes behind all.
func (d *device) begin(work func()) {
	rt.Check(d.compute.stream.Fill(d.step.heard, 0))
	for _, p := range d.pipes {
		p.forget()
	}
	for _, c := range d.byLine {
		if c.local != nil {
			c.local.used = 0
		}
	}
	work()
	d.join()
}
