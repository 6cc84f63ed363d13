package search

import "github.com/planc-dev/planc/ir"

// A pipeline has a bounded number of stages and chunks: simulating one takes as long as it has chunks for each of its
// stages. The deepest that was published has 64 stages (a GPT of 1T parameters, Narayanan et al. 2021). A model of up
// to 126 blocks with an embedding and a head, which are the most that the catalogue has, loses nothing.
const (
	maxStages = 128
	maxVPP    = 64  // chunks of a stage
	maxChunks = 128 // of all stages
)

// shallow reports whether a plan's pipeline keeps to the bounds.
func shallow(p *ir.Plan, _ *ruleContext) bool {
	return p.PP <= maxStages && p.VPP <= maxVPP && p.PP*p.VPP <= maxChunks
}

// maxVPPTried returns the most chunks a stage that are tried. Two are always tried, even if the model has too few blocks:
// that is what to say of zb-v.
func (d *Dims) maxVPPTried(pp int) int {
	if pp <= 1 {
		return 1
	}
	return max(2, min(maxVPP, min(d.maxChunks(), maxChunks)/pp))
}
