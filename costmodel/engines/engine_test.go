package engines

import (
	"cmp"
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// korthikanti are the shapes of Korthikanti et al. 2022, table 3, with the paper's plan.
type korthikanti struct {
	name                                         string
	layers, hidden, heads, tp, pp, vpp, micro, n int
}

// gpt is a model of the paper as megatron runs it.
func (k korthikanti) gpt() *Transformer {
	return &Transformer{Seq: 2048, Hidden: k.hidden, Heads: k.heads, KVHeads: k.heads, HeadDim: k.hidden / k.heads,
		FFN:   4 * k.hidden,
		Vocab: 51200, Bias: true, Dropout: true, KeysSeen: 2048}
}

// What a block keeps is the paper's: sbh(10 + 24/t + 5as/(ht)) bytes, equation 2; with sequence parallelism
// sbh/t (34 + 5as/h), equation 4; where scores are recomputed without their term.
func TestActivationsOfABlock(t *testing.T) {
	e := *EngineOf("megatron")
	e.Unfused = true
	for _, k := range []korthikanti{{"22B", 48, 6144, 64, 8, 1, 1, 4, 1}, {"175B", 96, 12288, 96, 8, 8, 3, 1, 64},
		{"1T", 128, 25600, 160, 8, 64, 1, 1, 512}} {
		s, b, h, a, tp := 2048.0, float64(k.micro), float64(k.hidden), float64(k.heads), float64(k.tp)
		for _, c := range []struct {
			sp        bool
			recompute string
			want      float64
		}{
			{false, "none", s * b * h * (10 + 24/tp + 5*a*s/(h*tp))},
			{true, "none", s * b * h / tp * (34 + 5*a*s/h)},
			{false, "selective", s * b * h * (10 + 24/tp)},
			{true, "selective", s * b * h * 34 / tp},
		} {
			p := Split{TP: k.tp, Micro: k.micro, SP: c.sp, Size: 2}
			_, block, _ := e.Layers(k.gpt(), p, c.recompute)
			input := 2 * s * b * h // which the chunk's buffer holds
			if c.sp {
				input /= tp
			}
			if got := block.Saved + input; math.Abs(got/c.want-1) > 1e-12 {
				t.Errorf("%s, sp %v, %s: a block keeps %.0f bytes, the formula says %.0f", k.name, c.sp, c.recompute,
					got, c.want)
			}
		}
	}
}

// The paper's figure 7 (through calculon's tables): parts of tensor parallelism's activations that its ways of saving
// them leave. Rows are those of tools/validate/rows; activations are in the notes.
func TestPublishedActivations(t *testing.T) {
	f, err := os.Open("../../tools/validate/rows/korthikanti_memory_analytic.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range lines[0] {
		at[name] = i
	}
	e := *EngineOf("megatron")
	e.Unfused = true
	n := 0
	for _, line := range lines[1:] {
		number := func(name string) int { v, _ := strconv.Atoi(line[at[name]]); return v }
		_, text, ok := strings.Cut(line[at["note"]], "activations=")
		if !ok || line[at["recompute"]] == "full" {
			continue
		}
		text = text[:strings.IndexFunc(text, func(c rune) bool { return c != '.' && (c < '0' || c > '9') })]
		published, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		k := korthikanti{line[at["model"]], number("layers"), number("hidden"), number("heads"), number("tp"),
			number("pp"), max(1, number("vpp")), number("micro_batch"), 0}
		plan := ir.SerialPlan(k.layers, k.micro, ir.Precision{})
		plan.TP, plan.PP, plan.VPP, plan.MicroBatches = k.tp, k.pp, k.vpp, number("global_batch")/k.micro
		plan.Schedule = "1f1b"
		if k.vpp > 1 {
			plan.Schedule = "interleaved"
		}
		recompute := line[at["recompute"]]
		_, block, _ := e.Layers(k.gpt(), Split{TP: k.tp, Micro: k.micro, SP: line[at["sp"]] == "1", Size: 2}, recompute)
		input := 2 * 2048 * float64(k.micro*k.hidden)
		if line[at["sp"]] == "1" {
			input /= float64(k.tp)
		}
		passes := k.pp
		if k.vpp > 1 {
			many := make([]int, k.vpp)
			for i := range many {
				many[i] = 2 * k.pp * k.vpp
			}
			passes = 0
			for _, b := range e.InFlight(&plan, 0, many) {
				passes += b
			}
		}
		got := (block.Saved + input) * float64(passes) * float64(k.layers) / float64(k.pp*k.vpp) / (1 << 30)
		n++
		if math.Abs(got/published-1) > 0.012 {
			t.Errorf("%s, %s: the first stage keeps %.2f GiB, published %.2f", k.name, recompute, got, published)
		}
	}
	if n < 8 {
		t.Errorf("%d rows of the table have activations, 8 are wanted", n)
	}
}

// Laws of a matmul's time: never above the device's rate, never less for more of any dimension at whole tiles, and a
// shape that leaves most multiprocessors idle is far below the rate.
func TestMatmulTimes(t *testing.T) {
	c, err := costmodel.Resolve(costmodel.Ref{Node: "dgx-a100"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := c.DeviceOf(&EngineOf("megatron").Kernels, "bf16")
	rate := func(m, n, k float64) float64 {
		o := costmodel.Op{Kind: costmodel.Matrix, Flops: 2 * m * n * k,
			Bytes: 2 * (m*k + k*n + m*n), Shape: costmodel.GEMM{M: m, N: n, K: k, Batch: 1}, Kernel: 1}
		return o.Flops / float64(d.Time(&o)) / float64(d.Peak)
	}
	for m := 256.0; m <= 16384; m *= 2 {
		for n := 256.0; n <= 16384; n *= 2 {
			for k := 256.0; k <= 16384; k *= 2 {
				r := rate(m, n, k)
				if r > 0.869 {
					t.Errorf("%v × %v × %v runs at %.3f of the peak; the best that was measured is 0.869", m, n, k, r)
				}
				if more := rate(m, n, 2*k); more < r*(1-1e-9) {
					t.Errorf("%v × %v × %v runs at %.3f, twice as deep at %.3f", m, n, k, r, more)
				}
			}
		}
	}
	if big, small := rate(8192, 8192, 8192), rate(256, 256, 8192); big < 0.6 || small > 0.5*big {
		t.Errorf("a large product runs at %.3f, one of two tiles at %.3f of the peak", big, small)
	}
	if odd := rate(8192, 8190, 8192); odd > 0.5*rate(8192, 8192, 8192) {
		t.Errorf("a product of odd size runs at %.3f of the peak", odd)
	}
}

// An op grown along its slope is the op at that micro-batch: what the search's bounds rest on.
func TestLinesOfOps(t *testing.T) {
	s := korthikanti{"22B", 48, 6144, 64, 8, 1, 1, 1, 1}.gpt()
	for _, e := range Engines[1:] {
		for _, again := range []string{"none", "selective", "full"} {
			at := func(micro int) Layer {
				_, block, _ := e.Layers(s, Split{TP: 8, Micro: micro, SP: true, Size: 2}, again)
				return block
			}
			one, two, five := at(1), at(2), at(5)
			for i := range one.Backward.Ops {
				slope := one.Backward.Ops[i].Slope(&two.Backward.Ops[i])
				if got, want := one.Backward.Ops[i].Grown(&slope, 4),
					five.Backward.Ops[i]; math.Abs(got.Flops-want.Flops) > 1e-9*want.Flops || got.Shape != want.Shape {
					t.Errorf("%s, %s, op %d: %v at micro-batch 5, its line says %v", e.Name, again, i, want, got)
				}
			}
			if math.Abs(five.Saved-5*one.Saved) > 1e-6*five.Saved {
				t.Errorf("%s, %s: saved bytes are no line", e.Name, again)
			}
		}
	}
}

// Other engines keep state in their own types: bytes a parameter as their documents count them.
func TestBytesOfState(t *testing.T) {
	preset := ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
		Moments: ir.F32}
	for name, want := range map[string]int{"planc": 18, "megatron": 18, "deepspeed": 16, "fsdp": 16} {
		if got := EngineOf(name).State(preset).BytesPerParam(); got != want {
			t.Errorf("%s keeps %d bytes a parameter, %d are wanted", name, got, want)
		}
	}
	half := preset
	half.Compute, half.Params = ir.F16, ir.F16
	if q := EngineOf("megatron").State(half); q.Grads != ir.F16 || q.BytesPerParam() != 16 {
		t.Errorf("megatron keeps %d bytes a parameter of fp16, gradients of %v", q.BytesPerParam(), q.Grads)
	}
	if q := EngineOf("fsdp").State(ir.FullPrecision(ir.F32)); q.BytesPerParam() != 16 {
		t.Errorf("f32 stays f32: %d bytes a parameter", q.BytesPerParam())
	}
}

// A bar is that of the most alike rows, and says which they are.
func TestErrorBars(t *testing.T) {
	c, err := costmodel.Resolve(costmodel.Ref{Node: "dgx-a100", Nodes: 8}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := ErrorBarOf(EngineOf("megatron"), c, "bf16", 8, false, 10)
	if b.Rows < 5 || b.Like != (Like{"megatron", "sm_80", "yes", "several"}) || b.Error <= 0 || b.Error >= 0.5 {
		t.Errorf("bar %+v", b)
	}
	// whose rows with experts there are; none is on an A100
	h, err := costmodel.Resolve(costmodel.Ref{Node: "dgx-h100", Nodes: 8}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bar := ErrorBarOf(EngineOf("megatron"), h, "bf16", 8, true, 10); bar.Engine == b.Engine || bar.Rows == 0 {
		t.Errorf("with experts the bar is %+v", bar)
	}
	if bar := ErrorBarOf(EngineOf("megatron"), c, "bf16", 8, true, 10); bar.Rows != 0 ||
		bar.Beyond.Trait != "flops" {
		t.Errorf("with experts on A100 the bar is %+v", bar)
	}
	if own := ErrorBarOf(PlancEngine, c, "bf16", 8, false, 10); own != b {
		t.Errorf("planc's own bar %+v is not Megatron's", own)
	}
	if b := ErrorBarOf(PlancEngine, c, "bf16", 8, false, 1e-3); b.Rows != 0 || b.Error != gpuError ||
		b.String() != "assumed; the shortest step of a measured run is 58 ms" {
		t.Errorf("of a step shorter than any that was measured: %+v, %s", b, b)
	}
	if b := ErrorBarOf(PlancEngine, c, "f32", 8, false, 10); b.Rows != 0 || b.Error != gpuError ||
		b.String() != "assumed; no measured run computes in f32" {
		t.Errorf("of a type that no run computes in: %+v, %s", b, b)
	}
	strange := *c
	strange.GPU.Arch = "sm_999"
	if b := ErrorBarOf(EngineOf("deepspeed"), &strange, "bf16", 1, false, 10); b.Engine != "deepspeed" ||
		b.Generation != "" {
		t.Errorf("bar of an unknown GPU %+v", b)
	}
}

// Hardware unlike that of any row has no rows' bar, and it is said which part of it; where less alike rows have its
// like, theirs.
func TestErrorBarsOfHardware(t *testing.T) {
	for _, x := range []struct {
		node, engine string
		nodes        int
		change       func(*costmodel.Cluster)
		like         Like
		beyond       string
	}{
		{"dgx-h100", "megatron", 8, nil, Like{"megatron", "sm_90", "yes", "several"}, ""},
		// its rows state 12 % more
		{"gb300-nvl72", "megatron", 2, nil, Like{"megatron", "sm_103", "yes", "several"}, ""},
		// such memory only others have, whose bar is wider
		{"dgx-h200", "megatron", 8, nil, Like{Engine: "megatron"}, ""},
		{"a3-mega", "megatron", 8, nil, Like{Engine: "megatron"}, ""}, // and such NICs
		// and such links
		{"dgx-a800", "megatron", 8, nil, Like{Engine: "megatron"}, ""},
		{"p4d", "megatron", 8, nil, Like{},
			"a device's share of the NICs is 6.25 GB/s; measured runs of megatron have 25 to 112.5"},
		{"p4d", "megatron", 1, nil, Like{Engine: "megatron", Generation: "sm_80"}, ""}, // one node needs no NIC
		{"p4d", "deepspeed", 8, nil, Like{"deepspeed", "sm_80", "yes", "several"}, ""},
		{"rtx-4090", "megatron", 1, nil, Like{},
			"a link inside a node has 10 GB/s; measured runs of megatron have 150 to 900"},
		// one device needs no link
		{"rtx-4090", "megatron", 1, func(c *costmodel.Cluster) { c.Node.Devices = 1 }, Like{Engine: "megatron"}, ""},
		{"l4", "megatron", 1, func(c *costmodel.Cluster) {
			c.Node.Devices = 1
		}, Like{}, "a device's memory has 300 GB/s; measured runs of megatron have 900 to 8000"},
		{"dgx-h100", "megatron", 8, func(c *costmodel.Cluster) {
			c.GPU.PeakTFLOPS = map[string]float64{"bf16": 9000}
		}, Like{},
			"a device's peak in 16 bits is 9000 TFLOP/s; measured runs of megatron have 125 to 2500"},
		{"dgx-h100", "megatron", 8, func(c *costmodel.Cluster) { // the furthest is named
			c.Network = []costmodel.Tier{{NICs: 1, Bandwidth: costmodel.GBs / 8}}
			c.Node.Link.Bandwidth = 100 * costmodel.GBs
		}, Like{}, "a device's share of the NICs is 0.01562 GB/s; measured runs of megatron have 25 to 112.5"},
		{"dgx-h100", "megatron", 64, func(c *costmodel.Cluster) { // of the second tier
			c.Network = []costmodel.Tier{{Nodes: 8, NICs: 8, Bandwidth: 50 * costmodel.GBs}, {NICs: 1}}
		}, Like{}, "a device's share of the NICs is 6.25 GB/s; measured runs of megatron have 25 to 112.5"},
	} {
		c, err := costmodel.Resolve(costmodel.Ref{Node: x.node, Nodes: x.nodes}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x.change != nil {
			x.change(c)
		}
		b := ErrorBarOf(EngineOf(x.engine), c, "bf16", 8, false, 10)
		if b.Like != x.like || (b.Rows > 0) != (x.beyond == "") ||
			b.Rows == 0 && (b.Error != gpuError || b.String() != "assumed; "+x.beyond) {
			t.Errorf("%d × %s, %s: %+v, %s; want %v, %s", x.nodes, x.node, x.engine, b, b, x.like, x.beyond)
		}
	}
}

// No hardware has a narrower bar than the most alike rows have.
func TestErrorBarsWiden(t *testing.T) {
	wider := 0
	for _, name := range costmodel.ClusterNames() {
		for _, e := range Engines {
			for i := range 8 {
				c, err := costmodel.Resolve(costmodel.Ref{Node: name, Nodes: 1 + 3*(i&1)}, nil, nil)
				if err != nil || c.IsCPU() || e.Own {
					continue
				}
				pp, experts := 1+(i&2), i&4 > 0
				got := ErrorBarOf(e, c, "bf16", pp, experts, 10).Error
				for _, like := range LikeOf(cmp.Or(e.Like, e.Name), c, pp, experts) {
					if j := slices.IndexFunc(errorBars, func(b ErrorBar) bool { return b.Like == like }); j >= 0 {
						if want := errorBars[j].Error; got < want {
							t.Errorf("%d × %s, %s: ± %v, its most alike rows %v have %v", c.Nodes, name, e.Name,
								got, like, want)
						} else if got > want {
							wider++
						}
						break
					}
				}
			}
		}
	}
	if wider < 50 {
		t.Errorf("%d bars are wider", wider)
	}
}
