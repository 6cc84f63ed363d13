//go:build cuda && linux

package gpu

import (
	"encoding/binary"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
)

// routers are what a step's calls of Rounds need where the host does not look at choices. A step that is run call by
// call waits for them, and counts: it finds how many rounds each layer needs. A captured one has as many as were ever
// needed; what is left of them is empty and adds nothing. The device counts what each call would need, and a step that
// needed more is skipped on all ranks: it is run again call by call, and captured anew.
type routers struct {
	most  map[layer]int // rounds
	calls []routing     // of a step, in order, those that are counted
	next  int           // of the calls, where a step is captured

	// int32: the rounds of each call, then of each call how many choices each expert got and, behind them, kept
	counts cuda.Memory
	limits cuda.Memory // int32: the rounds that each call has
	host   [3]cuda.Pinned
}

type layer struct{ segment, layer int }

// routing is a call of Rounds.
type routing struct {
	at      layer
	group   int
	experts int
	counts  int // where its counts begin, in int32
}

// Rounds is the runtime's.
func Rounds(r *rt.Rank, group int, index Buf[int32], experts, places int) int {
	d := of(r)
	at := layer{}
	at.segment, at.layer = rt.Layer(r)
	if d.step.capturing {
		return d.routers.captured(d, at, index, experts, places)
	}
	n := d.roundsNow(group, index, experts, places)
	if r.Training {
		d.routers.note(routing{at: at, group: group, experts: experts}, n, rt.IsCounting(r))
	}
	return n
}

// roundsNow waits for the choices, and counts.
func (d *device) roundsNow(group int, index Buf[int32], experts, places int) int {
	r := d.rank
	d.Download(index.At, index.N*size[int32]())
	ids := rt.View[int32](r, index.At, index.N)
	if !d.apart {
		return rt.Rounds(r, group, ids, experts, places)
	}
	n := d.most(group, cpu.Rounds(ids, experts, places))
	rt.CountRounds(r, ids, experts, n)
	return n
}

// note takes note of a call of a step that is run call by call.
func (s *routers) note(c routing, rounds int, counted bool) {
	if s.most == nil {
		s.most = map[layer]int{}
	}
	s.most[c.at] = max(s.most[c.at], rounds)
	if counted {
		s.calls = append(s.calls, c)
	}
}

// prepare makes room for the calls of a step that is to be captured, and says how many rounds each has.
func (s *routers) prepare(d *device) error {
	s.next = 0
	if len(s.calls) == 0 {
		return nil
	}
	n := len(s.calls)
	for i := range s.calls {
		s.calls[i].counts = n
		n += 2 * s.calls[i].experts
	}
	if s.counts.Bytes == 0 {
		s.counts, s.limits = d.table(4*n), d.table(4*len(s.calls))
		for i := range s.host {
			s.host[i] = d.host(int64(4 * n))
		}
	}
	host := d.staging.At(0, int64(4*len(s.calls)))
	for i, c := range s.calls {
		binary.NativeEndian.PutUint32(host.Slice()[4*i:], uint32(s.most[c.at]))
	}
	if err := d.compute.stream.Upload(s.limits, host); err != nil {
		return err
	}
	return d.awaited("the upload of routers' limits", d.compute.stream.Synchronize)
}

// captured has the device count what a call needs, and says how many rounds it has.
func (s *routers) captured(d *device, at layer, index Buf[int32], experts, places int) int {
	if rt.IsCounting(d.rank) {
		c, rounds := &s.calls[s.next], s.counts.Pointer+cuda.Pointer(4*s.next)
		all := s.counts.Pointer + cuda.Pointer(4*c.counts)
		kept := all + cuda.Pointer(4*experts)
		d.call("census", "i32", experts, index.N, kept, all, d.ptr(index.At), index.N, experts)
		d.call("rounds", "i32", 1, experts, rounds, kept, experts, places)
		s.next++
	}
	return s.most[at]
}

// judge leaves with the step's results whether a call of it, on any rank, needed more rounds than it had.
func (s *routers) judge(d *device) {
	if !d.step.capturing || len(s.calls) == 0 {
		return
	}
	for from, to := 0, 0; from < len(s.calls); from = to {
		group := s.calls[from].group
		for to = from; to < len(s.calls) && s.calls[to].group == group; to++ {
		}
		if c := d.group(group); c != nil {
			at := s.counts.Pointer + cuda.Pointer(4*from)
			rt.Check(c.AllReduce(d.compute.stream, at, at, to-from, cuda.Int32, cuda.Max))
		}
	}
	d.call("exceeds", "i32", 1, len(s.calls), d.step.result(again), s.counts.Pointer, s.limits.Pointer,
		d.step.value(spoiled), len(s.calls))
}

// download brings the counts of a captured step to a slot.
func (s *routers) download(d *device, slot int) {
	if d.step.graph != nil && len(s.calls) > 0 {
		rt.Check(d.compute.stream.Download(s.host[slot], s.counts))
	}
}

// tell notes what the device has counted in the slot's step.
func (s *routers) tell(d *device, slot int) {
	if len(s.calls) == 0 {
		return
	}
	host := s.host[slot].Slice()
	at := func(i int) int32 { return int32(binary.NativeEndian.Uint32(host[4*i:])) }
	for i, c := range s.calls {
		rt.CountCensus(d.rank, c.at.segment, c.at.layer, int(at(i)), c.experts, func(e int) (all, kept int) {
			return int(at(c.counts + e)), int(at(c.counts + c.experts + e))
		})
	}
}
