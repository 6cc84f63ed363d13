package ir

// PlanRule is a rule of legality that looks at the plan alone.
type PlanRule struct {
	Key  string
	When string // the rule in words
	OK   func(p *Plan) bool
}

// RecomputeRules are all of them. In normal form recompute_layers is how many blocks of each chunk are recomputed, its
// first ones: at most those of the largest chunk, 0 where recompute is none.
var RecomputeRules = []PlanRule{
	{"recompute", "recompute is none, selective or full",
		func(p *Plan) bool {
			return p.Recompute == "none" || p.Recompute == "selective" || p.Recompute == "full"
		}},
	{"recompute_layers", "recompute_layers is 0 where recompute is none, else 1 up to the blocks of the largest chunk",
		func(p *Plan) bool {
			if p.Recompute == "none" {
				return p.RecomputeLayers == 0
			}
			return p.RecomputeLayers >= 1 && p.RecomputeLayers <= p.LargestChunk()
		}},
	{"recompute_every", "recompute_every above 1 goes with recompute full, and is at most recompute_layers",
		func(p *Plan) bool {
			return p.RecomputeEvery == 1 || p.Recompute == "full" && p.RecomputeEvery > 1 &&
				p.RecomputeEvery <= p.RecomputeLayers
		}},
	{"recompute_split", "recompute_split goes with recomputed blocks whose inputs are all kept (recompute_every 1), " +
		"with tp > 1, and without sp, which splits them anyway", func(p *Plan) bool {
		return !p.RecomputeSplit || p.Recompute != "none" && p.RecomputeEvery == 1 && p.TP > 1 && !p.SP
	}},
}
