package ir

// PlanRule is a rule of legality that depends only on the plan.
type PlanRule struct {
	Key  string
	When string // the rule in words
	OK   func(p *Plan) bool
}

// RecomputeRules are all rules for recomputation. In normal form recompute_layers is the number of blocks at the start
// of each chunk that are recomputed: at most those of the largest chunk, 0 if recompute is none.
var RecomputeRules = []PlanRule{
	{"recompute", "recompute must be none, selective or full",
		func(p *Plan) bool {
			return p.Recompute == "none" || p.Recompute == "selective" || p.Recompute == "full"
		}},
	{"recompute_layers", "recompute_layers must be 0 if recompute is none, else 1 up to the blocks of the " +
		"largest chunk",
		func(p *Plan) bool {
			if p.Recompute == "none" {
				return p.RecomputeLayers == 0
			}
			return p.RecomputeLayers >= 1 && p.RecomputeLayers <= p.LargestChunk()
		}},
	{"recompute_every", "recompute_every above 1 needs recompute full, and must be at most recompute_layers",
		func(p *Plan) bool {
			return p.RecomputeEvery == 1 || p.Recompute == "full" && p.RecomputeEvery > 1 &&
				p.RecomputeEvery <= p.RecomputeLayers
		}},
	{"recompute_split", "recompute_split needs recomputed blocks whose inputs are all saved (recompute_every " +
		"1), tp > 1, and no sp, which shards the inputs anyway", func(p *Plan) bool {
		return !p.RecomputeSplit || p.Recompute != "none" && p.RecomputeEvery == 1 && p.TP > 1 && !p.SP
	}},
}
