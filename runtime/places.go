package runtime

// functions are those of a run's layers. Recomputed layers do their backward passes whole. So do groups that are run
// again, since what they saved is gone when a second part would run.
func (s *Segment) functions(run *LayerRun) (forward, backward, weights func(*Rank, *Block)) {
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

// group is where the group of layer k begins, and how far from there layer k is; of runs without groups each layer is
// its own.
func groupOf(s *LayerRun, k int) (first, at int) {
	if s.Every == 0 {
		return k, 0
	}
	return k - k%s.Every, k % s.Every
}

// spare is what lies behind the chunks' buffers in the activation region, as an offset in the arena.
func spareMemory(s *Stage) int {
	end := 0
	for i := range s.Chunks {
		end = max(end, s.Chunks[i].Offset+s.Chunks[i].Buffers*s.Chunks[i].Size)
	}
	return s.Arena.Activations.Offset + end
}

// input is where layer k of run i of a chunk finds its input in a buffer, as offsets in the arena; behind the last run
// it is where the chunk's output is.
func (r *Rank) input(c *chunk, buffer, i, k int) int {
	if i == len(c.Runs) {
		return buffer + c.Size - r.Program.Stream
	}
	run := &c.Runs[i]
	switch {
	case k == run.Count:
		return r.input(c, buffer, i+1, 0)
	case run.Split:
		return r.exec.spare + (c.before(i)+k)%2*r.Program.Stream
	case run.Every > 0:
		first, at := groupOf(run, k)
		if at > 0 {
			return r.exec.spare + at*run.Inner - r.Program.Stream
		}
		return buffer + run.Offset + first/run.Every*run.Stride
	}
	return buffer + run.Offset + k*run.Stride
}

// lead is how many layers the chunk has before run i.
func (c *chunk) before(i int) int {
	n := 0
	for j := range c.Runs[:i] {
		n += c.Runs[j].Count
	}
	return n
}

// slot is where layer k of run i keeps what it saves.
func (r *Rank) slot(c *chunk, buffer, i, k int) int {
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
