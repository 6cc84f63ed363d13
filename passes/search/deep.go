package search

// A pipeline of very many stages or chunks is tried on request alone: there are as many splits as blocks, and simulating each
// takes as long as it has chunks. Published runs have at most 64 stages (a GPT of 1T parameters, Narayanan et al. 2021) and 16
// chunks a stage (BLOOM and MT-NLG have one). Models of up to 126 blocks lose nothing.

// deepest is how many stages a pipeline has at most if no pin asks for more, and how many chunks, if two a stage are not more.
const deepest = 256

// mostVPP is how many chunks a stage has at most if no pin asks for more. The bubble is divided by vpp while each further chunk
// adds as many sends, so that beyond this only the sends grow.
const mostVPP = 64

// mostTried returns the most chunks a stage that are tried. Two are always tried, even if the model has too few blocks: that is
// what to say of zb-v.
func mostTried(pp int, d *Dims) int {
	if pp <= 1 {
		return 1
	}
	return min(mostVPP, max(2, min(d.mostChunks(), deepest)/pp))
}

// tooDeep reports whether the problem leaves legal pipelines out since they have more than [deepest] stages.
func (p *Problem) tooDeep(d *Dims) bool {
	return p.free("pp") && p.some("pp", func(pp int) bool { return pp > deepest && pp <= d.mostChunks() })
}

// tooManyChunks reports whether the problem leaves legal pipelines out since they have more chunks than are tried.
func (p *Problem) tooManyChunks(d *Dims) bool {
	return p.free("vpp") && p.Pins.allows("schedule", "interleaved") && p.some("pp", func(pp int) bool {
		return pp > 1 && (pp <= deepest || !p.free("pp")) && mostTried(pp, d) < d.mostChunks()/pp
	})
}

// some reports whether a degree may have a value that ok holds of.
func (p *Problem) some(key string, ok func(int) bool) bool {
	for _, n := range p.ints(key, divisors(p.Cluster.Devices())) {
		if ok(n) {
			return true
		}
	}
	return false
}
