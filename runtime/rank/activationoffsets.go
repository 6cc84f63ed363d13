package rank

import "github.com/planc-dev/planc/runtime/program"

// functions returns the functions of a run's layers. The backward pass of recomputed layers is not split. Neither is
// that of recomputed groups, because their saved values would be gone when the second part runs.
func (s *Segment) functions(run *program.LayerRun) (forward, backward, weights func(*Rank, *Block)) {
	switch {
	case run.Remat:
		return s.RematForward, s.RematBackward, nil
	case run.Every > 0 && s.Weights != nil:
		return s.Forward, func(r *Rank, b *Block) {
			s.Backward(r, b)
			s.Weights(r, b)
		}, nil
	}
	return s.Forward, s.Backward, s.Weights
}

// groupOf returns the first layer of the group of layer k, and the index of layer k in it. In runs without groups each
// layer is its own group.
func groupOf(s *program.LayerRun, k int) (first, at int) {
	if s.Every == 0 {
		return k, 0
	}
	return k - k%s.Every, k % s.Every
}

// spareMemory returns the offset in the arena of the part of the activation region after the chunks' buffers.
func spareMemory(s *program.Stage) int {
	end := 0
	for i := range s.Chunks {
		end = max(end, s.Chunks[i].Offset+s.Chunks[i].Buffers*s.Chunks[i].Size)
	}
	return s.Arena.Activations.Offset + end
}

// inputOffset returns the offset in the arena of the input of layer k of run i of a chunk, for a buffer. After the last
// run it is the chunk's output.
func inputOffset(r *Rank, c *chunk, buffer, i, k int) int {
	if i == len(c.Runs) {
		return buffer + c.Size - r.Program.Stream
	}
	run := &c.Runs[i]
	switch {
	case k == run.Count:
		return inputOffset(r, c, buffer, i+1, 0)
	case run.Split:
		return r.exec.spare + (c.splitBefore(i)+k)%2*r.Program.Stream
	case run.Every > 0:
		first, at := groupOf(run, k)
		if at > 0 {
			return r.exec.spare + at*run.Inner - r.Program.Stream
		}
		return buffer + run.Offset + first/run.Every*run.Stride
	}
	return buffer + run.Offset + k*run.Stride
}

// splitBefore returns the number of layers before run i of the chunk whose inputs are in the spare memory.
func (c *chunk) splitBefore(i int) int {
	n := 0
	for j := range c.Runs[:i] {
		if c.Runs[j].Split {
			n += c.Runs[j].Count
		}
	}
	return n
}

// slotOffset returns the offset of the values that layer k of run i saves.
func slotOffset(r *Rank, c *chunk, buffer, i, k int) int {
	run := &c.Runs[i]
	switch {
	case run.Every > 0:
		_, at := groupOf(run, k)
		return r.exec.spare + at*run.Inner
	case run.Split || !r.Program.Segments[run.Segment].Input:
		return buffer + run.Offset + k*run.Stride
	}
	return buffer + run.Offset + k*run.Stride + r.Program.Stream
}
