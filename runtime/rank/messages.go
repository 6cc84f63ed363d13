package rank

import (
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/program"
)

// sendStream sends a block's input or gradient, at offset at of the arena, to the next stage or the previous one.
func sendStream(r *Rank, p *comm.Pipe, at int) {
	if r.Device != nil {
		r.Device.Send(p.Name(), at, r.Program.Stream)
		return
	}
	Check(p.Send(r.Arena[at : at+r.Program.Stream]))
}

// receiveMessage receives the message of a pass, if it has one, and preposts the receive of the next pass.
func receiveMessage(r *Rank, p *comm.Pipe, at int) {
	switch {
	case p == nil:
	case r.Device != nil:
		r.Device.Receive(p.Name(), at, r.Program.Stream)
	default:
		Check(p.Receive(r.Arena[at : at+r.Program.Stream]))
	}
	prepostReceive(r, r.exec.next)
}

// prepostReceive lets a device receive the message of an action while it computes the previous one. The previous pass
// has emptied the buffer when it began. On a CPU the receiver copies a message from the sender's memory, so there is
// nothing to post.
func prepostReceive(r *Rank, action int) {
	e := r.exec
	if r.Device == nil || !r.Program.PrepostReceives || action == len(e.actions) {
		return
	}
	if p := e.incoming(e.actions[action]); p != nil {
		r.Device.PrepostReceive(p.Name(), e.received, r.Program.Stream)
	}
}

// incoming returns the pipe that brings an action's message, nil if it has none.
func (e *executor) incoming(a program.Action) *comm.Pipe {
	switch a.Kind {
	case program.Forward:
		return e.chunks[a.Chunk].from
	case program.Backward:
		return e.chunks[a.Chunk].gradFrom
	}
	return nil
}

// waitSent waits, or makes later device work wait, until one more message has left the rank's memory.
func waitSent(r *Rank, p *comm.Pipe) {
	if r.Device != nil {
		r.Device.AwaitSent(p.Name())
		return
	}
	Check(p.WaitSent())
}
