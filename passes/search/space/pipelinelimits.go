package space

import "github.com/planc-dev/planc/ir"

// A pipeline has a bounded number of stages and chunks, because simulating it takes time proportional to chunks times
// stages. The deepest published pipeline has 64 stages (a GPT of 1T parameters, Narayanan et al. 2021). A model of up
// to 126 blocks with an embedding and a head loses nothing; that is the largest of the catalogue.
const (
	MaxStages = 128
	MaxVPP    = 64  // chunks per stage
	MaxChunks = 128 // chunks of all stages
)

// shallow reports whether a plan's pipeline is within these limits.
func shallow(p *ir.Plan, _ *RuleContext) bool {
	return p.PP <= MaxStages && p.VPP <= MaxVPP && p.PP*p.VPP <= MaxChunks
}

// MaxVPP returns the largest number of chunks per stage that is tried. It is at least 2 even if the model has too few
// blocks, so that there is a message for zb-v.
func (d *Dims) MaxVPP(pp int) int {
	if pp <= 1 {
		return 1
	}
	return max(2, min(MaxVPP, min(d.MaxChunks(), MaxChunks)/pp))
}
