package passes

import (
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/zoo"
)

// A plan whose pipeline cannot be is refused with the rule that it breaks.
func TestIllegalPipelines(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*ir.Plan) // of pp 2, 1f1b, two micro-batches
		want   string
	}{
		{"no stage", func(p *ir.Plan) { p.PP = 1 }, "pass pipeline: schedule must be none if pp is 1, and only then"},
		{"no schedule", func(p *ir.Plan) {
			p.Schedule = "none"
		}, "pass pipeline: schedule must be none if pp is 1, and only then"},
		{"unknown", func(p *ir.Plan) {
			p.Schedule = "zb"
		}, "pass pipeline: schedule must be none, gpipe, 1f1b, interleaved, zb-h1 or zb-v"},
		{"chunks", func(p *ir.Plan) { p.VPP, p.StageLayers = 2, "0,1,1,0" },
			"pass pipeline: vpp must be above 1 with schedule interleaved, 2 with zb-v, whose chunks go down the " +
				"stages and back, else 1"},
		{"a V of one", func(p *ir.Plan) { p.Schedule = "zb-v" },
			"pass pipeline: vpp must be above 1 with schedule interleaved, 2 with zb-v, whose chunks go down the " +
				"stages and back, else 1"},
		{"uneven rounds", func(p *ir.Plan) {
			p.Schedule, p.VPP, p.StageLayers, p.MicroBatches = "interleaved", 2, "0,1,1,0", 3
		},
			"pass pipeline: schedule interleaved needs a multiple of pp micro-batches, because it visits the chunks " +
				"in groups of pp"},
		{"nothing in the middle", func(p *ir.Plan) { p.Schedule, p.VPP, p.StageLayers = "zb-v", 2, "1,0,1,0" },
			"pass pipeline: chunk 1 of stage_layers 1,0,1,0 has no blocks"},
		{"more chunks than blocks", func(p *ir.Plan) {
			p.Schedule, p.VPP, p.StageLayers = "interleaved", 3, "0,1,1,0,0,0"
		},
			"pass pipeline: chunk 3 of stage_layers 0,1,1,0,0,0 has no blocks"},
		{"too few counts", func(p *ir.Plan) {
			p.StageLayers = "2"
		}, "pass pipeline: stage_layers 2 does not split the blocks over 2 chunks"},
		{"too few blocks", func(p *ir.Plan) {
			p.StageLayers = "1,0"
		}, "pass pipeline: stage_layers 1,0 does not split the blocks over 2 chunks"},
	} {
		plan := pipelinePlan("1f1b", 2, 1, 2)
		plan.AxisOrder = "tp,dp,pp"
		c.change(&plan)
		model := gpt2
		model.Layers = 2
		_, err := Compile(build(model), plan, ir.Recipe{Optimizer: "sgd"}, Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// Sequence parallelism splits what stages hand to each other over tp: a rank sends its part of the micro-batch's
// stream, batch · seq · hidden elements over tp, and receives as much. Without it each rank has, and sends, all of it.
// Chunks that follow each other on one stage send nothing.
func TestMessagesAreSplitOverTP(t *testing.T) {
	const micro, hidden, seq = 2, 16, 8
	for _, c := range []struct {
		schedule string
		vpp, tp  int
		sp       bool
		elem     ir.Elem
	}{
		{"1f1b", 1, 1, false, ir.F64}, {"1f1b", 1, 2, false, ir.F64}, {"1f1b", 1, 2, true, ir.F64},
		{"gpipe", 1, 4, true, ir.F32},
		{"interleaved", 2, 2, true, ir.BF16}, {"zb-h1", 1, 2, true, ir.F64}, {"zb-v", 2, 2, true, ir.F32},
	} {
		plan := pipelinePlan(c.schedule, 2, c.vpp, 4)
		plan.TP, plan.SP, plan.MicroBatch, plan.AxisOrder, plan.Precision = c.tp, c.sp, micro, "tp,dp,pp",
			ir.FullPrecision(c.elem)
		model := llama
		model.Layers = 2 * c.vpp
		p := compile(t, zoo.Build("m", model, zoo.Options{SeqLen: seq, Batch: 1, Elem: c.elem}), plan,
			Options{Check: true})
		want, joints := micro*seq*hidden*c.elem.Size(), 2*c.vpp-1
		if c.sp {
			want /= c.tp
		}
		if c.schedule == "zb-v" {
			joints-- // the V's foot
		}
		got := map[ir.Op]int{}
		for i := range p.Stages {
			for _, a := range p.Stages[i].Schedule {
				for _, m := range p.Messages(i, a) {
					got[m.Op]++
					if m.Bytes != want || p.Stream != want {
						t.Errorf("%s tp %d sp %v: %v of %d bytes, a stream of %d, want %d", c.schedule, c.tp, c.sp,
							m.Op, m.Bytes, p.Stream, want)
					}
				}
			}
		}
		if n := 2 * joints * plan.MicroBatches; got[ir.OpSend] != n || got[ir.OpReceive] != n {
			t.Errorf("%s: %v, want %d each", c.schedule, got, n)
		}
	}
}
