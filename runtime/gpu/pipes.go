//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// Messages are sent as 16-bit numbers, whatever their contents.
const (
	messageType = cuda.Float16
	messageSize = 2
)

// Send sends bytes of the arena to the other stage of a pipe, concurrently with later work.
func (d *communication) Send(name string, at, bytes int) {
	p := d.pipes[name]
	if p.comm == nil {
		p.toSelf = append(p.toSelf, at)
		return
	}
	p.after(d.compute)
	rt.Check(p.comm.Send(p.stream, d.ptr(at), bytes/messageSize, messageType, p.peer))
	rt.Check(p.stream.Record(p.sentEvents[p.sent%len(p.sentEvents)]))
	p.sent++
}

// PrepostReceive receives the pipe's next message into bytes of the arena, concurrently with later work. [Receive]
// copies it from there. Ranks that share a GPU do not prepost, because the host of the receiver would wait until the
// message is sent.
func (d *communication) PrepostReceive(name string, at, bytes int) {
	p := d.pipes[name]
	if p.comm == nil || p.comm.Shares() {
		return
	}
	p.startReceive(d.compute, d.ptr(at), bytes)
	p.preposted = d.memory(at, bytes)
}

// startReceive receives the pipe's next message on the pipe's stream, after the present work of the compute stream.
func (p *pipe) startReceive(compute *workStream, at cuda.Pointer, bytes int) {
	p.after(compute)
	rt.Check(p.comm.Receive(p.stream, at, bytes/messageSize, messageType, p.peer))
}

// Receive makes later work wait until the pipe's next message is in the arena.
func (d *communication) Receive(name string, at, bytes int) {
	p := d.pipes[name]
	if p.comm == nil {
		from := p.toSelf[0]
		p.toSelf = p.toSelf[1:]
		rt.Check(d.compute.stream.Copy(d.memory(at, bytes), d.memory(from, bytes)))
		return
	}
	if p.preposted.Bytes == 0 {
		p.startReceive(d.compute, d.ptr(at), bytes)
		d.compute.after(p.workStream)
		return
	}
	d.compute.after(p.workStream)
	rt.Check(d.compute.stream.Copy(d.memory(at, bytes), p.preposted))
	p.preposted = cuda.Memory{}
}

// AwaitSent makes later work wait until the oldest message that it has not waited for yet is received. At most
// two messages are in flight, because their buffers alternate.
func (d *communication) AwaitSent(name string) {
	p := d.pipes[name]
	if p.comm == nil {
		return
	}
	if p.comm.Shares() {
		rt.Check(p.comm.Settle(d.compute.stream))
		return
	}
	rt.Check(d.compute.stream.Wait(p.sentEvents[p.awaited%len(p.sentEvents)]))
	p.awaited++
}

// reset prepares the pipe for a step. All messages have arrived before.
func (p *pipe) reset() { p.sent, p.awaited, p.toSelf, p.preposted = 0, 0, p.toSelf[:0], cuda.Memory{} }
