//go:build cuda && linux

package gpu

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/runtime/gpu/comm"
)

// ncclLine is a line on which the rank communicates through NCCL.
type ncclLine struct {
	comm     *comm.Comm
	pipe     *pipe // nil if the line has collectives
	alike    bool  // the members' arenas have the same layout
	messages bool  // the members also send to each other
}

// ncclLines returns these lines, in the same order on all ranks.
func (d *communication) ncclLines() (all []ncclLine) {
	for _, l := range d.rank.Lines() {
		if c := d.commByLine[l.Name]; c != nil {
			all = append(all, ncclLine{c, d.pipes[l.Name], l.SameStage, l.Messages})
		}
	}
	return all
}

// connect sends a flag on each line, because NCCL connects ranks and allocates memory at their first
// communication. The flag says whether the member failed to register its arena: if one member could not
// register, no member of the line may.
func (d *communication) connect(m *machine) error {
	if len(d.comms) == 0 {
		return nil
	}
	lines := d.ncclLines()
	bytes := int64(len(lines) * flagSize)
	s, sent, received := d.compute.stream, d.tables.memory.At(0, bytes),
		d.tables.memory.At((bytes+partAlign-1)&^(partAlign-1), bytes)
	room, own := d.staging.At(0, bytes), make([]float32, len(lines))
	for i := range lines {
		own[i] = flagValue(!d.register(m, &lines[i]))
		binary.NativeEndian.PutUint32(room.Slice()[i*flagSize:], math.Float32bits(own[i]))
	}
	if err := s.Upload(sent, room); err != nil {
		return err
	}
	for i := range lines {
		if err := lines[i].exchangeFlags(s, received.Pointer+cuda.Pointer(i*flagSize),
			sent.Pointer+cuda.Pointer(i*flagSize)); err != nil {
			return err
		}
		lines[i].exchangeMessages(d)
	}
	if err := errors.Join(s.Download(room, received), d.awaitErr("the first communication of the ranks",
		s.Synchronize)); err != nil {
		return err
	}
	for i := range lines {
		// on a pipe only the other rank's flag is received
		without := own[i] + math.Float32frombits(binary.NativeEndian.Uint32(room.Slice()[i*flagSize:]))
		if lines[i].canRegister() {
			m.ncclReport.count(without == 0)
		}
		if without == 0 {
			continue
		}
		if err := lines[i].comm.NCCL.Deregister(); err != nil {
			return err
		}
	}
	return nil
}

// exchangeMessages exchanges a number between all members of a line whose members send to each other. NCCL connects
// two ranks at their first message even if it connects collectives earlier (NCCL_RUNTIME_CONNECT).
func (l *ncclLine) exchangeMessages(d *communication) {
	if !l.messages {
		return
	}
	n := l.comm.Ranks
	parts := d.scratchParts(n*flagSize, n*flagSize)
	d.exchange(l.comm, parts[1], parts[0], 1, flagSize, cuda.Float32)
}

// canRegister reports whether NCCL may use the arenas in place. It requires operands at the same offset of
// the registered memory on all ranks, which holds for groups within one stage. Messages may lie anywhere.
func (l *ncclLine) canRegister() bool { return l.pipe != nil || l.alike }

// flagSize is the size of the flag that members exchange, an f32: the number of members that could not
// register.
const flagSize = 4

func flagValue(set bool) float32 {
	if set {
		return 1
	}
	return 0
}

// exchangeFlags enqueues the exchange of the members' flags: a group receives the sum, a pipe the other
// rank's flag.
func (l *ncclLine) exchangeFlags(s *cuda.Stream, to, from cuda.Pointer) error {
	c, p := l.comm, l.pipe
	if p == nil {
		return c.AllReduce(s, to, from, 1, cuda.Float32, cuda.Sum)
	}
	return c.Group(s, func() error {
		const n = flagSize / messageSize
		return errors.Join(c.Send(s, from, n, messageType, p.peer), c.Receive(s, to, n, messageType, p.peer))
	})
}
