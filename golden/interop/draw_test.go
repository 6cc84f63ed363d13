package interop_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
	"github.com/planc-dev/planc/planner"
)

// Random plans of an engine, each with a small random job on a small random cluster. Legality is that of the search:
// the rules of passes/search/space with those of costmodel/engineplans.go.

// draw is a job with a plan.
type draw struct {
	question *planner.Question
	problem  *space.Problem
	plan     ir.Plan
	given    bool // the plan gives stage_layers, as a job pins them
}

// target returns the draw as an export takes it.
func (d *draw) target() *interop.Target {
	return &interop.Target{Plan: d.plan, Job: d.question.Job, Hardware: d.question.Hardware}
}

// String returns the hardware and the plan, for messages.
func (d *draw) String() string { return d.question.Hardware.Name + ": " + d.plan.Text() }

// jobLimits restrict the jobs that are drawn.
type jobLimits struct {
	families []string // of drawnModels; nil: all
	engine   string
	even     bool // stage_layers are the engine's own, never given by the job
}

// drawnModels make the `model` mapping of a job, by family.
var drawnModels = map[string]func(r *rand.Rand) string{
	"gpt2": func(r *rand.Rand) string {
		heads := pick(r, 4, 8, 12, 16)
		return fmt.Sprintf("{model_type: gpt2, vocab_size: %d, n_embd: %d, n_layer: %d, n_head: %d, n_positions: 4096}",
			pick(r, 50257, 32000, 51200), heads*64, pick(r, 2, 4, 6, 8, 12, 16, 24), heads)
	},
	"llama": func(r *rand.Rand) string {
		heads := pick(r, 8, 16, 24, 32)
		return fmt.Sprintf("{model_type: llama, vocab_size: %d, hidden_size: %d, intermediate_size: %d, "+
			"num_hidden_layers: %d, num_attention_heads: %d, num_key_value_heads: %d, "+
			"max_position_embeddings: 8192, tie_word_embeddings: %t}", pick(r, 32000, 50000, 128256), heads*64,
			pick(r, 1024, 2816, 4096, 5632), pick(r, 2, 4, 6, 8, 12, 16, 24), heads, heads/pick(r, 1, 2, 4, 8),
			r.IntN(3) == 0)
	},
	"mixtral": func(r *rand.Rand) string {
		heads := pick(r, 8, 16, 32)
		return fmt.Sprintf("{model_type: mixtral, vocab_size: 32000, hidden_size: %d, intermediate_size: %d, "+
			"num_hidden_layers: %d, num_attention_heads: %d, num_key_value_heads: %d, "+
			"max_position_embeddings: 8192, num_local_experts: %d, num_experts_per_tok: 2}", heads*64,
			pick(r, 1024, 2048, 3584), pick(r, 2, 4, 8, 16), heads, heads/pick(r, 1, 4), pick(r, 4, 8, 16))
	},
	"qwen3_moe": func(r *rand.Rand) string {
		heads := pick(r, 8, 16, 32)
		return fmt.Sprintf("{model_type: qwen3_moe, vocab_size: 151936, hidden_size: %d, intermediate_size: 2048, "+
			"moe_intermediate_size: %d, num_hidden_layers: %d, num_attention_heads: %d, num_key_value_heads: %d, "+
			"head_dim: 64, max_position_embeddings: 8192, num_experts: %d, num_experts_per_tok: 2}", heads*64,
			pick(r, 256, 768, 1536), pick(r, 2, 4, 8, 16), heads, heads/pick(r, 1, 4), pick(r, 4, 8, 16))
	},
}

// pick returns one of the values.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// drawJob draws a job on a cluster of up to 64 GPUs.
func drawJob(t *testing.T, r *rand.Rand, limits jobLimits) *draw {
	t.Helper()
	families := limits.families
	if families == nil {
		families = []string{"gpt2", "llama", "llama", "mixtral"}
	}
	nodes, devices := pick(r, 1, 1, 2, 4, 8), pick(r, 1, 2, 4, 8, 8, 8)
	if nodes > 1 {
		devices = 8
	}
	precision := pick(r, "bf16", "bf16", "bf16", "fp16")
	text := fmt.Sprintf("model: %s\ntrain: {seq_len: %d, global_batch: %d, precision: %s, engine: %s}\n"+
		"cluster: {node: dgx-h100, nodes: %d, devices: %d}\n", drawnModels[pick(r, families...)](r),
		pick(r, 512, 1024, 2048, 4096), pick(r, 8, 16, 48, 64, 128, 256), precision, limits.engine, nodes, devices)
	read := func(string) ([]byte, error) { return []byte(text), nil }
	q, err := planner.Load("job.yaml", read)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return &draw{question: q, problem: q.Problem()}
}

// drawLegal draws a plan that the engine can run. It draws plans until one is legal.
func drawLegal(t *testing.T, r *rand.Rand, limits jobLimits) *draw {
	t.Helper()
	for {
		d := drawJob(t, r, limits)
		const tries = 60 // of plans for one job, because a job costs more than a plan
		for range tries {
			d.drawPlan(r, limits)
			if len(d.broken()) == 0 {
				return d
			}
		}
	}
}

// drawIllegal draws a plan that breaks some rule: a legal one with one or two changed keys. It also returns what is
// wrong with it.
func drawIllegal(t *testing.T, r *rand.Rand, limits jobLimits) (*draw, []space.Reason) {
	t.Helper()
	for {
		legal := drawLegal(t, r, limits)
		const tries = 20
		for range tries {
			d := *legal
			for range 1 + r.IntN(2) {
				d.breakKey(r)
			}
			if reasons := d.broken(); len(reasons) > 0 {
				return &d, reasons
			}
		}
	}
}

// broken returns the rules that the plan breaks.
func (d *draw) broken() []space.Reason {
	problem := *d.problem
	problem.Pins = problem.Pins.Merge(nil)
	if d.given {
		problem.Pins["stage_layers"] = []string{d.plan.StageLayers}
	}
	return space.Check(&problem, d.plan)
}

// drawPlan draws a plan, mostly with degrees that multiply to the number of devices.
func (d *draw) drawPlan(r *rand.Rand, limits jobLimits) {
	dims := space.DimsOf(d.problem.Model)
	p := dims.SerialPlan(1, d.problem.Precision)
	left := d.question.Hardware.Devices()
	take := func(limit int) int {
		divisors := space.Divisors(left)
		n := divisors[r.IntN(len(divisors))]
		if n > limit {
			n = 1
		}
		left /= n
		return n
	}
	p.TP, p.PP = take(16), take(max(1, dims.MaxChunks()))
	if r.IntN(3) == 0 {
		p.CP = take(8)
	}
	p.DP = left
	if p.CP > 1 {
		p.CPKind = pick(r, "gather", "heads", "ring")
	}
	p.SP = p.TP > 1 && r.IntN(2) == 0
	if dims.Experts > 0 {
		p.MoESlack = space.DefaultMoESlack
		p.EP, p.ETP = pick(r, 1, 1, 2, 4, 8), pick(r, 1, p.TP)
	}
	d.drawPipeline(r, &p, &dims, limits)
	d.drawSharding(r, &p)
	d.drawRecompute(r, &p)
	p.MicroBatch = pick(r, 1, 1, 2, 4)
	p.MicroBatches = max(1, d.problem.GlobalBatch/(p.DP*p.MicroBatch))
	orders := space.AxisOrders(&p, d.question.Hardware.Nodes)
	p.AxisOrder = pick(r, space.DefaultOrder(&p), pick(r, orders...))
	d.plan = p
}

// drawPipeline draws the schedule and the layers of each chunk.
func (d *draw) drawPipeline(r *rand.Rand, p *ir.Plan, dims *space.Dims, limits jobLimits) {
	d.given = false
	if p.PP > 1 {
		p.Schedule = pick(r, "1f1b", "1f1b", "interleaved", "interleaved", "gpipe", "zb-h1", "zb-v")
		switch p.Schedule {
		case "interleaved":
			p.VPP = pick(r, 2, 2, 3, 4)
		case "zb-v":
			p.VPP = 2
		}
	}
	chunks := p.PP * p.VPP
	counts := make([]int, chunks)
	for i := range dims.Layers {
		counts[i%chunks]++
	}
	if chunks > 1 && !limits.even && r.IntN(4) == 0 {
		d.given = true
		from, to := r.IntN(chunks), r.IntN(chunks)
		if counts[from] > 1 {
			counts[from]--
			counts[to]++
		}
		if limits.engine == "megatron" {
			d.emptyEnds(r, counts)
		}
	}
	p.StageLayers = space.JoinCounts(counts)
}

// emptyEnds moves the layers of the first or the last chunk to the next one, or of both. Those chunks then have only
// the embedding or the output.
func (d *draw) emptyEnds(r *rand.Rand, counts []int) {
	last := len(counts) - 1
	if last < 2 {
		return
	}
	if r.IntN(3) == 0 {
		counts[1] += counts[0]
		counts[0] = 0
	}
	if r.IntN(3) == 0 {
		counts[last-1] += counts[last]
		counts[last] = 0
	}
}

// isUneven reports whether the chunks have different numbers of layers.
func (d *draw) isUneven() bool {
	counts := space.ParseCounts(&d.plan)
	return slices.Min(counts) < slices.Max(counts)
}

// drawSharding draws a ZeRO stage and its groups.
func (d *draw) drawSharding(r *rand.Rand, p *ir.Plan) {
	shards := d.problem.Shardings(p)
	if len(shards) > 0 {
		s := shards[r.IntN(len(shards))]
		p.Zero, p.ZeroGroup = s.Zero, s.Group
	}
}

// drawRecompute draws what is recomputed.
func (d *draw) drawRecompute(r *rand.Rand, p *ir.Plan) {
	largest := p.LargestChunk()
	p.Recompute = pick(r, "none", "selective", "full", "full")
	switch p.Recompute {
	case "selective":
		p.RecomputeLayers = pick(r, largest, largest, 1+r.IntN(largest))
	case "full":
		p.RecomputeLayers = 1 + r.IntN(largest)
		if r.IntN(3) == 0 {
			p.RecomputeLayers = largest
			p.RecomputeEvery = 1 + r.IntN(largest)
		}
		p.RecomputeSplit = r.IntN(4) == 0
	}
}

// breakKey changes one key of the plan to a value that may be wrong.
func (d *draw) breakKey(r *rand.Rand) {
	p := &d.plan
	degree := func() int { return pick(r, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32) }
	changes := []func(){
		func() { p.TP = degree() }, func() { p.PP = degree() }, func() { p.CP = degree() },
		func() { p.DP = degree() }, func() { p.EP = degree() }, func() { p.ETP = degree() },
		func() { p.VPP = degree() }, func() { p.MicroBatch = degree() }, func() { p.MicroBatches = degree() },
		func() { p.SP = !p.SP }, func() { p.Zero = r.IntN(4) }, func() { p.ZeroGroup = degree() },
		func() { p.Schedule = pick(r, space.Schedules...) }, func() { p.CPKind = pick(r, ir.ContextKinds...) },
		func() { p.Recompute = pick(r, "none", "selective", "full") }, func() { p.RecomputeLayers = degree() },
		func() { p.RecomputeEvery = degree() },
	}
	changes[r.IntN(len(changes))]()
}

// Draws of every engine reach every choice that the engine has, and illegal ones break many rules.
func TestDraws(t *testing.T) {
	for engine, want := range map[string]string{
		"megatron": "interleaved 1f1b cp_gather cp_ring cp_heads zero_0 zero_1 selective full given ep sp " +
			"groups every uneven ends",
		"deepspeed": "1f1b zero_0 zero_1 zero_2 zero_3 full selective sp cp_heads",
		"fsdp":      "1f1b interleaved gpipe zb-v zero_2 zero_3 cp_gather cp_ring full given sp groups",
	} {
		r := rand.New(rand.NewPCG(24, 1)) // of each engine, because the order of a map is another one in each run
		seen := map[string]int{}
		const draws = 150
		for range draws {
			d := drawLegal(t, r, jobLimits{engine: engine})
			p := &d.plan
			seen[p.Schedule]++
			seen["cp_"+p.CPKind]++
			seen[fmt.Sprint("zero_", p.Zero)]++
			seen[p.Recompute]++
			counts := space.ParseCounts(p)
			for name, is := range map[string]bool{"given": d.given, "ep": p.EP > 1, "sp": p.SP,
				"uneven": d.isUneven() && !d.given, "ends": counts[0] == 0 || counts[len(counts)-1] == 0,
				"groups": p.Zero > 0 && p.ZeroGroup < p.Replicas(), "every": p.RecomputeEvery > 1} {
				if is {
					seen[name]++
				}
			}
		}
		for _, name := range strings.Fields(want) {
			if seen[name] == 0 {
				t.Errorf("%s: none of %d draws has %s: %v", engine, draws, name, seen)
			}
		}
		keys := map[string]bool{}
		for range draws {
			_, reasons := drawIllegal(t, r, jobLimits{engine: engine})
			for _, reason := range reasons {
				keys[reason.Key] = true
			}
		}
		if len(keys) < 10 {
			t.Errorf("%s: illegal draws break rules of %v only", engine, keys)
		}
	}
}
