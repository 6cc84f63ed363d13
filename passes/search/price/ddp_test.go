package price

import (
	"testing"

	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
)

// fsdpReplicas returns a plan of 8 replicas under engine fsdp, and the number of its model's parameters.
func fsdpReplicas(t *testing.T, zeroGroup int) (s *Pricer, plan ir.Plan, params int) {
	t.Helper()
	p := problem(cluster(t, "dgx-h100", 1, 8), gpt2Config(2, 256, 4, 1024, 128), 128, 64, mixed)
	p.Engine = engines.EngineOf("fsdp")
	p.Precision = p.Engine.State(mixed)
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	plan = s.dims.SerialPlan(4, p.Precision)
	plan.DP, plan.MicroBatches, plan.AxisOrder, plan.ZeroGroup = 8, 2, "tp,dp", zeroGroup
	for i, n := range s.base(plan).elems {
		params += n * p.Model.Segments[i].Count
	}
	return s, plan, params
}

// The state of PyTorch's DDP takes, for N parameters, 4N bytes of parameters, 4N of gradients, 8N of moments, 4N of
// buckets and 2N of 16-bit weights. The times of a plan's tables are those of the search.
func TestStateOfDDP(t *testing.T) {
	s, plan, params := fsdpReplicas(t, 1)
	near := func(what string, got int64, want int) {
		t.Helper()
		if got < int64(want) || float64(got) > 1.02*float64(want) { // buckets are padded
			t.Errorf("%s take %d bytes, want %d", what, got, want)
		}
	}
	m, _ := s.candidateMemory(CandidateOf(plan))
	near("parameters", m.Params, 4*params)
	near("gradients", m.Grads, 4*params)
	near("moments", m.Optimizer, 8*params)
	near("buckets and casts", m.Comm, 6*params)
	if got := s.Priced(CandidateOf(plan)).Predict.BytesPerParam; got != 16 {
		t.Errorf("%d bytes a parameter, want 16", got)
	}
	for _, recompute := range []string{"none", "full"} {
		plan.Recompute, plan.RecomputeLayers = recompute, map[string]int{"full": 2}[recompute]
		tables, found := s.step(s.tables(plan)).Total(), s.stepOf(CandidateOf(plan)).Total()
		host := s.device.PassOverhead() * 2 // of the micro-batches, which the tables do not have
		if d := float64(found - tables - host); d > 1e-9*float64(found) || d < -1e-9*float64(found) {
			t.Errorf("recompute %s: the search's step is %v, that of the tables %v", recompute, found, tables)
		}
	}
}

// FSDP2 with 16-bit compute keeps, for N parameters on 8 ranks, N/8 parameters, their gradients and two moments in FP32
// (PyTorch 2.9, distributed/fsdp/_fully_shard: FSDPParam's _sharded_param_data; foreach_reduce casts to orig_dtype).
// With reshard_after_forward=False it also keeps the 16-bit copies of all N parameters until the backward pass ends.
func TestStateOfFSDP(t *testing.T) {
	s, plan, params := fsdpReplicas(t, 8)
	const shard = 4 + 4 + 4 + 4 // parameters, gradients, two moments
	for _, c := range []struct {
		zero, want, perParam int
	}{
		{2, 2*params + shard*params/8, 18},
		{3, shard * params / 8, 16},
	} {
		plan.Zero = c.zero
		m, _ := s.candidateMemory(CandidateOf(plan))
		// planc's shards are padded
		if got := m.Params + m.Grads + m.Optimizer; got < int64(c.want) || float64(got) > 1.02*float64(c.want) {
			t.Errorf("zero %d: the state takes %d bytes, want %d", c.zero, got, c.want)
		}
		if got := s.Priced(CandidateOf(plan)).Predict.BytesPerParam; got != c.perParam {
			t.Errorf("zero %d: %d bytes a parameter, want %d", c.zero, got, c.perParam)
		}
	}
}
