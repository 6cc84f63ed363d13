//go:build cuda && linux

package gpu

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/planc-dev/planc/cuda"
)

// member is a line on which the rank communicates by NCCL.
type member struct {
	comm  *comm
	pipe  *pipe // nil where all of the line join what they have
	alike bool  // the members' arenas are laid out alike
}

// members are those lines, in one order on all ranks.
func (d *device) members() (all []member) {
	for _, l := range d.rank.Lines() {
		if c := d.byLine[l.Name]; c != nil {
			all = append(all, member{c, d.pipes[l.Name], l.Alike})
		}
	}
	return all
}

// connect has each line send something: NCCL connects ranks, and takes memory for it, when they first do. What each
// member sends is whether it could not register its arena: where one could not, none may.
func (d *device) connect(m *machine) error {
	if len(d.comms) == 0 {
		return nil
	}
	lines := d.members()
	bytes := int64(len(lines) * flagSize)
	s, sent, heard := d.compute.stream, d.tables.memory.At(0, bytes),
		d.tables.memory.At((bytes+roomAlign-1)&^(roomAlign-1), bytes)
	room, own := d.staging.At(0, bytes), make([]float32, len(lines))
	for i := range lines {
		own[i] = lacks(!d.register(m, &lines[i]))
		binary.NativeEndian.PutUint32(room.Slice()[i*flagSize:], math.Float32bits(own[i]))
	}
	if err := s.Upload(sent, room); err != nil {
		return err
	}
	for i := range lines {
		if err := lines[i].meet(s, heard.Pointer+cuda.Pointer(i*flagSize),
			sent.Pointer+cuda.Pointer(i*flagSize)); err != nil {
			return err
		}
	}
	if err := errors.Join(s.Download(room, heard), d.awaited("the first meeting of ranks", s.Synchronize)); err != nil {
		return err
	}
	for i := range lines {
		// of a pipe the other's alone is heard
		without := own[i] + math.Float32frombits(binary.NativeEndian.Uint32(room.Slice()[i*flagSize:]))
		if lines[i].registrable() {
			m.told.count(without == 0)
		}
		if without == 0 {
			continue
		}
		if err := lines[i].comm.nccl.Deregister(); err != nil {
			return err
		}
	}
	return nil
}

// registrable tells whether NCCL may use the arenas in place: it wants operands at one place of what is registered on
// all ranks, which those of groups are that are of one stage; messages may lie anywhere.
func (l *member) registrable() bool { return l.pipe != nil || l.alike }

// flagSize is the bytes of what members tell each other, an f32: 0 or how many are without.
const flagSize = 4

func lacks(set bool) float32 {
	if set {
		return 1
	}
	return 0
}

// meet puts on the stream that the line's members tell each other their flags: of a group the sum, of a pipe the
// other's.
func (l *member) meet(s *cuda.Stream, to, from cuda.Pointer) error {
	c, p := l.comm, l.pipe
	if p == nil {
		return c.AllReduce(s, to, from, 1, cuda.Float32, cuda.Sum)
	}
	return c.Group(s, func() error {
		const n = flagSize / messageSize
		return errors.Join(c.Send(s, from, n, messageType, p.peer), c.Receive(s, to, n, messageType, p.peer))
	})
}
