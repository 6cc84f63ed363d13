package costmodel

// Contention is the cost of collectives for compute that runs concurrently.
type Contention struct {
	// slowdown of compute, a fraction, while they run: they take multiprocessors, memory bandwidth and power
	Slows float64
	Gain  float64 // upper bound of the time in sequence over the time of both concurrently; 0: unbounded
}

// Added returns the time that collectives of moved seconds add to a pass that computes concurrently. waits is how long
// compute waits for them under the schedule. The sum of work and the result grows with each argument.
func (c Contention) Added(work, moved, waits Seconds) Seconds {
	added := waits + Seconds(c.Slows)*min(moved, work)
	if c.Gain > 0 {
		added = max(added, (work+moved)/Seconds(c.Gain)-work)
	}
	return added
}
