package rank

import (
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
	"github.com/planc-dev/planc/runtime/timeline"
)

// runEval adds the loss of micro-batch 0 to LossSum on the ranks that have the last chunk.
func runEval(r *Rank) {
	if r.Device != nil {
		r.Device.Infer(func() { inferChunks(r, false) })
		return
	}
	inferChunks(r, false)
}

// runLogits computes the logits at position Pos of every row of micro-batch 0, on the ranks that have the last chunk,
// and leaves them in the arena.
func runLogits(r *Rank) {
	if r.Device != nil {
		r.Device.Infer(func() { inferChunks(r, true) })
		logits := r.Stage.Arena.Logits
		r.Device.Download(logits.Offset, logits.Size)
		return
	}
	inferChunks(r, true)
}

func inferChunks(r *Rank, logits bool) {
	r.FinishUpdates()
	r.exec.fetch.invalidate()
	for _, c := range r.exec.chunks {
		if r.Program.Elem == program.F64 {
			forward[float64](r, c, 0, logits, nil)
		} else {
			forward[float32](r, c, 0, logits, nil)
		}
	}
}

// forward runs a chunk's forward pass on a micro-batch. If logits is set, the last segment computes logits in place of
// the loss. next is the first layer of the pass after this one, nil if there is none.
func forward[F tensors.Float](r *Rank, c *chunk, micro int, logits bool, next *layer) {
	b := &r.exec.block
	b.Micro = micro
	r.Experts.Counting = r.Training
	receiveMessage(r, c.from, inputOffset(r, c, activationBuffer(r, c, micro), 0, 0))
	for i, l := range c.layers {
		enterLayer[F](r, c, l, nextLayer(c.layers, i, next))
		end := beginLayer(r, timeline.Compute, "forward", l)
		if logits && l.seg.Logits != nil {
			l.seg.Logits(r, b)
		} else {
			l.forward(r, b)
		}
		r.compute.End(end)
	}
	r.Experts.Counting = false
	if c.to != nil {
		sendStream(r, c.to, b.Out)
	}
}

// activationBuffer returns the offset of the activations of the chunk's micro-batch.
func activationBuffer(r *Rank, c *chunk, micro int) int {
	return r.Stage.Arena.Activations.Offset + c.Offset + micro%c.Buffers*c.Size
}

// enterLayer prepares the block for a layer. It waits for the layer's parameters and starts to gather those of the
// layer that follows.
func enterLayer[F tensors.Float](r *Rank, c *chunk, l, follows *layer) {
	finishLayerUpdates(r, l)
	waitLayerGathers(r, l)
	setBlock(r, c, l, waitFetched[F](r, l, follows))
}

// setBlock sets the block's offsets for a layer whose gathered parameters begin at an offset.
func setBlock(r *Rank, c *chunk, l *layer, gathered int) {
	b := &r.exec.block
	b.Layer, r.Experts.At = l.index, LayerID{l.segment, l.index}
	buffer := activationBuffer(r, c, b.Micro)
	b.X, b.Slot, b.Out = inputOffset(r, c, buffer, l.run, l.k), slotOffset(r, c, buffer, l.run, l.k), inputOffset(r, c,
		buffer, l.run, l.k+1)
	taintWork(r)
	b.Params, b.Grads = b.Params[:0], b.Grads[:0]
	for i := range l.refs {
		f := &l.refs[i]
		at := f.param
		if r.Stage.Buckets[f.bucket].ShardedParams {
			at += gathered
		}
		b.Params = append(b.Params, at)
		b.Grads = append(b.Grads, f.grad)
	}
}

// backward runs a chunk's backward pass, from the last block to the first. After the last micro-batch, the reduction of
// a bucket starts as soon as its gradients are complete. Buckets that are scattered after each micro-batch start block
// by block.
func backward[F tensors.Float](r *Rank, c *chunk, micro int, next *layer) {
	e := r.exec
	b := &e.block
	b.Micro = micro
	b.DY = gradientOffset(r, c, c.layers[len(c.layers)-1], e.dy)
	receiveMessage(r, c.gradFrom, b.DY)
	for i, l := range c.reverse {
		enterLayer[F](r, c, l.layer, nextVisitedLayer(c.reverse, i, next))
		if l.recompute {
			end := beginLayer(r, timeline.Recompute, "recompute", l.layer)
			l.seg.Forward(r, b)
			r.compute.End(end)
			continue
		}
		if below := c.gradientReceiver(i); below != nil {
			b.DX = gradientOffset(r, c, below, e.otherBuffer(b.DY))
		} else if c.gradTo != nil {
			b.DX = sendBuffer(r)
		}
		end := beginLayer(r, timeline.Compute, "backward", l.layer)
		if l.weights == nil {
			runScattered[F](r, l.layer, l.backward)
		} else {
			l.backward(r, b)
		}
		r.compute.End(end)
		if l.seg.Input {
			b.DY = b.DX
		}
		if !e.split {
			layerDone[F](r, l.layer)
		}
	}
	if !e.split {
		taint(r, activationBuffer(r, c, micro), c.Size)
	}
	if c.gradTo != nil {
		sendStream(r, c.gradTo, b.DY)
		e.sent[e.sends%2] = c.gradTo
		e.sends++
	}
}

// gradientReceiver returns the layer that receives the gradient of visit i; nil if it is in another chunk.
func (c *chunk) gradientReceiver(i int) *layer {
	for _, v := range c.reverse[i+1:] {
		if !v.recompute {
			return v.layer
		}
	}
	return nil
}

// otherBuffer returns the buffer for gradients between blocks that is not at an offset.
func (e *executor) otherBuffer(at int) int {
	if at == e.dy {
		return e.dx
	}
	return e.dy
}

// weightGradients runs the second part of the chunk's split backward pass over the micro-batch.
func weightGradients[F tensors.Float](r *Rank, c *chunk, micro int) {
	b := &r.exec.block
	b.Micro = micro
	prepostReceive(r, r.exec.next)
	for i := len(c.layers) - 1; i >= 0; i-- {
		l := c.layers[i]
		setBlock(r, c, l, 0)
		b.DY = gradientOffset(r, c, l, 0)
		if l.weights != nil {
			end := beginLayer(r, timeline.Compute, "weight gradients", l)
			runScattered[F](r, l, l.weights)
			r.compute.End(end)
		}
		layerDone[F](r, l)
	}
	taint(r, activationBuffer(r, c, micro), c.Size)
}

// gradientOffset returns the offset of the gradient of a layer's output. It is next to the layer's saved values if the
// second part of a split backward pass needs it, else at passing.
func gradientOffset(r *Rank, c *chunk, l *layer, passing int) int {
	if l.weights != nil && l.seg.Gradient {
		run := &c.Runs[l.run]
		return activationBuffer(r, c, r.exec.block.Micro) + run.Offset + (l.k+1)*run.Stride - r.Program.Stream
	}
	return passing
}

// runScattered runs a function that adds to the gradients of a layer, and starts to scatter those that are scattered
// after each micro-batch.
func runScattered[F tensors.Float](r *Rank, l *layer, f func(*Rank, *Block)) {
	beginScatter[F](r, l)
	f(r, &r.exec.block)
	endScatter[F](r, l)
}

// layerDone records that a layer has finished the block's micro-batch.
func layerDone[F tensors.Float](r *Rank, l *layer) {
	if r.exec.block.Micro == r.Program.Batch.MicroBatches-1 {
		finishLayer[F](r, l)
	}
}

// sendBuffer returns the offset for the next gradient to send, after the previous message from there has left.
func sendBuffer(r *Rank) int {
	e := r.exec
	if p := e.sent[e.sends%2]; p != nil {
		waitSent(r, p)
	}
	return r.Stage.Arena.Comm.Offset + e.sends%2*r.Program.Stream
}
