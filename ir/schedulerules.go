package ir

// ScheduleRules say which schedules go with which degrees.
var ScheduleRules = []PlanRule{
	{"schedule", "schedule is none, gpipe, 1f1b, interleaved, zb-h1 or zb-v", func(p *Plan) bool {
		return chunksOf[p.Schedule] != nil
	}},
	{"schedule", "schedule is none where pp is 1, and only there", func(p *Plan) bool {
		return (p.PP == 1) == (p.Schedule == "none")
	}},
	{"vpp", "vpp is above 1 under schedule interleaved, 2 under zb-v, whose chunks go down the stages and " +
		"back, else 1", func(p *Plan) bool {
		ok := chunksOf[p.Schedule]
		return ok == nil || ok(p.VPP)
	}},
	{"schedule", "schedule interleaved has a multiple of pp micro-batches, since it goes round the chunks in " +
		"groups of pp", func(p *Plan) bool {
		return p.Schedule != "interleaved" || p.MicroBatches%p.PP == 0
	}},
}

// chunksOf are the schedules, and how many chunks a stage may have under each.
var chunksOf = map[string]func(vpp int) bool{
	"none": one, "gpipe": one, "1f1b": one, "zb-h1": one,
	"interleaved": func(vpp int) bool { return vpp > 1 },
	"zb-v":        func(vpp int) bool { return vpp == 2 },
}

func one(vpp int) bool { return vpp == 1 }
