//go:build cuda && linux

package gpu

import (
	"encoding/binary"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
)

// routers manages the calls of Rounds in a captured step, in which the host does not see the choices. A
// step that runs call by call waits for the choices and counts the rounds that each layer needs. A captured
// step has as many rounds as were ever needed; unneeded rounds are empty and add nothing. The device counts
// what each call would need. If a step needs more, all ranks skip it, run it again call by call, and
// capture a new graph.
type routers struct {
	maxRounds map[layer]int // rounds
	calls     []roundsCall  // counted calls of a step, in order
	next      int           // index into calls during capture

	// int32: the rounds of each call, then for each call the number of choices of each expert, and then of
	// those kept
	counts cuda.Memory
	limits cuda.Memory // int32: the rounds that each call has
	host   [3]cuda.Pinned
}

type layer struct{ segment, layer int }

// roundsCall is a call of Rounds.
type roundsCall struct {
	at      layer
	group   int
	experts int
	counts  int // start of its counts, in int32
}

// Rounds computes the runtime's Rounds.
func Rounds(r *rt.Rank, group int, index Buf[int32], experts, places int) int {
	d := deviceOf(r)
	at := layer{}
	at.segment, at.layer = rt.Layer(r)
	if d.step.capturing {
		return d.routers.captured(d, at, index, experts, places)
	}
	n := d.roundsNow(group, index, experts, places)
	if r.Training {
		d.routers.record(roundsCall{at: at, group: group, experts: experts}, n, rt.IsCounting(r))
	}
	return n
}

// roundsNow waits for the choices, and counts the rounds.
func (d *device) roundsNow(group int, index Buf[int32], experts, places int) int {
	r := d.rank
	d.Download(index.At, index.N*size[int32]())
	ids := rt.View[int32](r, index.At, index.N)
	if !d.multiProcess {
		return rt.Rounds(r, group, ids, experts, places)
	}
	n := d.maxOver(group, cpu.Rounds(ids, experts, places))
	rt.CountRounds(r, ids, experts, n)
	return n
}

// record records a call in a step that runs call by call.
func (s *routers) record(c roundsCall, rounds int, counted bool) {
	if s.maxRounds == nil {
		s.maxRounds = map[layer]int{}
	}
	s.maxRounds[c.at] = max(s.maxRounds[c.at], rounds)
	if counted {
		s.calls = append(s.calls, c)
	}
}

// prepare allocates memory for the calls of a step that will be captured, and uploads the rounds of each.
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
		binary.NativeEndian.PutUint32(host.Slice()[4*i:], uint32(s.maxRounds[c.at]))
	}
	if err := d.compute.stream.Upload(s.limits, host); err != nil {
		return err
	}
	return d.awaitErr("the upload of routers' limits", d.compute.stream.Synchronize)
}

// captured launches the kernels that count what a call needs, and returns the number of rounds of the
// graph.
func (s *routers) captured(d *device, at layer, index Buf[int32], experts, places int) int {
	if rt.IsCounting(d.rank) {
		c, rounds := &s.calls[s.next], s.counts.Pointer+cuda.Pointer(4*s.next)
		all := s.counts.Pointer + cuda.Pointer(4*c.counts)
		accepted := all + cuda.Pointer(4*experts)
		d.call("census", "i32", experts, index.N, accepted, all, d.ptr(index.At), index.N, experts)
		d.call("rounds", "i32", 1, experts, rounds, accepted, experts, places)
		s.next++
	}
	return s.maxRounds[at]
}

// checkLimits writes to the step's results whether any of its calls, on any rank, needed more rounds than
// it had.
func (s *routers) checkLimits(d *device) {
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
	d.call("exceeds", "i32", 1, len(s.calls), d.step.result(retry), s.counts.Pointer, s.limits.Pointer,
		d.step.value(previousRetried), len(s.calls))
}

// download copies the counts of a captured step to a slot.
func (s *routers) download(d *device, slot int) {
	if d.step.graph != nil && len(s.calls) > 0 {
		rt.Check(d.compute.stream.Download(s.host[slot], s.counts))
	}
}

// report reports the counts of the slot's step to the runtime.
func (s *routers) report(d *device, slot int) {
	if len(s.calls) == 0 {
		return
	}
	host := s.host[slot].Slice()
	at := func(i int) int32 { return int32(binary.NativeEndian.Uint32(host[4*i:])) }
	for i, c := range s.calls {
		rt.CountCensus(d.rank, c.at.segment, c.at.layer, int(at(i)), c.experts, func(e int) (all, accepted int) {
			return int(at(c.counts + e)), int(at(c.counts + c.experts + e))
		})
	}
}
