package ir

// ScheduleRules are the rules for schedules and degrees.
var ScheduleRules = []PlanRule{
	{"schedule", "schedule must be none, gpipe, 1f1b, interleaved, zb-h1 or zb-v", func(p *Plan) bool {
		return chunksOf[p.Schedule] != nil
	}},
	{"schedule", "schedule must be none if pp is 1, and only then", func(p *Plan) bool {
		return (p.PP == 1) == (p.Schedule == "none")
	}},
	{"vpp", "vpp must be above 1 with schedule interleaved, 2 with zb-v, whose chunks go down the stages and " +
		"back, else 1", func(p *Plan) bool {
		ok := chunksOf[p.Schedule]
		return ok == nil || ok(p.VPP)
	}},
	{"schedule", "schedule interleaved needs a multiple of pp micro-batches, because it visits the chunks in " +
		"groups of pp", func(p *Plan) bool {
		return p.Schedule != "interleaved" || p.MicroBatches%p.PP == 0
	}},
}

// chunksOf maps the schedules to the numbers of chunks that a stage may have.
var chunksOf = map[string]func(vpp int) bool{
	"none": one, "gpipe": one, "1f1b": one, "zb-h1": one,
	"interleaved": func(vpp int) bool { return vpp > 1 },
	"zb-v":        func(vpp int) bool { return vpp == 2 },
}

func one(vpp int) bool { return vpp == 1 }
