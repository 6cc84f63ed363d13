package problems

import (
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search/space"
)

// Precisions are the precisions to draw from: f32, the 16-bit presets, and presets with each field changed.
var Precisions = []ir.Precision{
	ir.FullPrecision(ir.F32), ir.FullPrecision(ir.F64), ir.FullPrecision(ir.BF16),
	{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.F16, Params: ir.F16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.BF16, Master: ir.F32, Moments: ir.BF16},
	{Compute: ir.BF16, Params: ir.BF16, Grads: ir.BF16, Reduce: ir.BF16, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.BF16, Params: ir.F32, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.F16, Params: ir.F32, Grads: ir.F32, Reduce: ir.F16, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.F32, Params: ir.BF16, Grads: ir.BF16, Reduce: ir.BF16, Master: ir.BF16, Moments: ir.BF16},
}

// RandomCluster draws a small cluster of CPUs or GPUs, on one node or two.
func RandomCluster(t testing.TB, r *rand.Rand) *costmodel.Cluster {
	devices := []int{1, 2, 3, 4, 6, 8, 8, 12, 16}[r.IntN(9)]
	kind := []string{"cpu", "cpu", "dgx-h100"}[r.IntN(3)]
	c := *Cluster(t, kind, 1, 0)
	c.Nodes, c.Node.Devices, c.Network = 1, devices, nil
	if devices%2 == 0 && r.IntN(3) == 0 { // bytes matter on a slow network, rounds on one with high latency
		c.Nodes, c.Node.Devices = 2, devices/2
		c.Network = []costmodel.Tier{[]costmodel.Tier{{Name: "far", Bandwidth: 1e9, LatencyUS: 20},
			{Name: "slow", Bandwidth: 1e6, LatencyUS: 1}}[r.IntN(2)]}
	}
	if c.Node.Devices == 1 { // no other device to link with
		c.Node.Link, c.Node.SHARP = costmodel.Link{}, false
	}
	return &c
}

// Random draws a small model and a small cluster.
func Random(t testing.TB, r *rand.Rand) *space.Problem {
	pick := func(vs ...int) int { return vs[r.IntN(len(vs))] }
	heads, seq := pick(2, 4, 8), pick(8, 16, 24)
	var cfg spec.Config
	if r.IntN(2) == 0 {
		cfg = GPT2(pick(1, 3, 5), heads*pick(4, 8), heads, pick(61, 64, 257), seq)
		cfg.Tied = r.IntN(2) == 0
		cfg.DropResid, cfg.DropAttn = float64(r.IntN(2))*0.1, float64(r.IntN(2))*0.1
	} else {
		cfg = Llama(Sizes{pick(1, 3, 5), heads * pick(4, 8), heads, heads / pick(1, 2), heads * pick(8, 16),
			pick(61, 64, 257), seq})
		cfg.Tied = r.IntN(2) == 0
		cfg.AttentionBias = r.IntN(2) == 0
	}
	if r.IntN(2) == 0 {
		if f := Families[r.IntN(len(Families))]; f.Modern == (cfg.Family == spec.Llama) {
			cfg.Family = f.Name
			f.Change(&cfg)
		}
	}
	if cfg.Family == spec.Llama && r.IntN(3) == 0 {
		cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, pick(4, 6, 8),
			pick(1, 2, 3), cfg.FFN, r.IntN(2) == 0
	}
	p := New(RandomCluster(t, r), cfg, seq, pick(8, 12, 16, 24), Precisions[r.IntN(len(Precisions))])
	if r.IntN(3) == 0 {
		p.Recipe.Optimizer, p.Recipe.NoMomentum = "sgd", p.GlobalBatch > 12
	}
	if cfg.Experts > 0 && r.IntN(2) == 0 { // some values are only tried on request
		p.Pins = space.Pins{"schedule": space.Schedules}
	}
	if r.IntN(2) == 0 { // sequences are too short for cp to be tried without a request
		p.Pins = p.Pins.Merge(space.Pins{"cp": {"1", "2", "4"}})
	}
	return p
}
