package weights

import (
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/runtime/cpu"
)

// layer is a node of the graph, in one of the model's layers; -1 where it is outside of blocks.
type layer struct {
	at int
	*ir.Node
}

// nodes are those of all layers, in order.
func nodes(m *ir.Model) (list []layer) {
	at := 0
	for _, s := range m.Segments {
		for range s.Count {
			in := -1
			if s.Name == ir.BlockName || s.Name == ir.DenseName {
				in = at
				at++
			}
			for _, n := range s.Forward.Nodes {
				list = append(list, layer{in, n})
			}
		}
	}
	return list
}

// factsOf are what reading.py records, of planc's graph of the model.
func factsOf(c *spec.Config) map[string]any {
	c.Fit(readingSeq)
	count := float64(c.Params())
	if c.Family == spec.BERT && !c.Tied {
		count += float64(c.Vocab) // cls.predictions.bias, which nothing reads
	}
	if c.RouteBias { // transformers does not count them
		count -= float64((c.Layers - c.Dense) * c.Experts)
	}
	facts := map[string]any{"parameters": count}
	if count > 1e5 { // as reading.py's LARGE
		return facts
	}
	seq := readingSeq
	if c.Family == spec.ViT {
		seq = c.MaxPositions
	}
	m := zoo.Build("x", *c, zoo.Options{SeqLen: seq, Batch: 1, Elem: ir.F64})
	f := graphFacts{c: c, drops: map[string]any{}, eps: map[float64]bool{}, stds: map[float64]bool{},
		acts: map[float64]bool{}, embed: 1}
	for _, n := range nodes(m) {
		f.node(n)
	}
	for _, s := range m.Segments {
		for _, v := range s.Forward.Weights() {
			if v.Param.Init == "normal" && v.Param.Tied == "" {
				f.stds[v.Param.Std] = true
			}
		}
	}
	facts["tensors"] = tensorsSum(m, c)
	facts["stds"], facts["eps"], facts["act"] = sorted(f.stds), sorted(f.eps), sorted(f.acts)[0]
	facts["rope"], facts["drops"], facts["embed_scale"] = same(f.rope), f.drops, f.embed
	if c.Family != spec.Bloom { // its attention is not of the kind that reading.py looks into
		facts["sees"], facts["scale"], facts["softcap"] = same(f.sees), same(f.scale), f.softcap
	}
	if f.cap > 0 {
		facts["logit_cap"] = f.cap
	}
	if f.route != nil {
		facts["route"] = f.route
	}
	if c.PaddingRow > 0 {
		facts["padding"] = float64(c.PaddingRow - 1)
	}
	if c.Balance > 0 { // what it comes to is law 2's business
		facts["aux"] = true
	}
	return facts
}

type graphFacts struct {
	c               *spec.Config
	sees, rope      []any
	scale           []any
	softcap         float64
	drops           map[string]any
	eps, stds, acts map[float64]bool
	embed, cap      float64
	route           map[string]any
}

// acts are the values of activations at 1.
var acts = map[ir.Op]float64{ir.OpGelu: 0.841192, ir.OpGeluErf: 0.841345, ir.OpSilu: 0.731059, ir.OpRelu: 1}

func (f *graphFacts) node(n layer) {
	a := &n.Attr
	if act, ok := acts[n.Op]; ok {
		f.acts[act] = true
	}
	switch n.Op {
	case ir.OpLayerNorm, ir.OpRMSNorm:
		f.eps[a.Eps] = true
	case ir.OpDropout:
		f.drop(a.Drop)
	case ir.OpScale:
		if n.at < 0 && n.Outs[0].Name == "e_scaled" {
			f.embed = a.Scale
		}
	case ir.OpSoftcap:
		f.cap = a.Softcap
	case ir.OpAttention:
		f.attention(n)
	case ir.OpRope:
		if strings.HasPrefix(n.Outs[0].Name, "q") {
			f.turn(n)
		}
	case ir.OpRoute:
		f.routes(n)
	}
}

func (f *graphFacts) drop(p float64) {
	if p > 0 {
		key := strconv.FormatFloat(p, 'g', -1, 64)
		n, _ := f.drops[key].(float64)
		f.drops[key] = n + 1
	}
}

func (f *graphFacts) attention(n layer) {
	seq := float64(n.Args[0].Type.Dims[1].Size)
	first, last := seq, seq
	if n.Attr.Causal {
		first = 1
	}
	if w := n.Attr.Window; w > 0 && n.Attr.Layers.Local(n.at) {
		last = min(last, float64(w))
	}
	f.sees = append(f.sees, []any{first, last})
	f.scale = append(f.scale, n.Attr.Scale)
	f.softcap = n.Attr.Softcap
	f.drop(n.Attr.Drop)
}

// turn runs the kernel on the vector of ones and zeros that shows the angles at position 1.
func (f *graphFacts) turn(n layer) {
	a := &n.Attr
	r, err := ir.ParseRope(a.Rope)
	if err != nil {
		panic(err)
	}
	theta := a.Theta
	if a.Local > 0 && a.Layers.Local(n.at) {
		theta, r = a.Local, ir.RopeScaling{}
	}
	dims := n.Args[0].Type.Dims
	turn := dims[len(dims)-1].Size
	if a.Turn > 0 {
		turn = a.Turn
	}
	scale := cpu.RopeScale{Kind: r.Kind, Factor: r.Factor, LowFreq: r.LowFreq, HighFreq: r.HighFreq,
		BetaFast: r.BetaFast, BetaSlow: r.BetaSlow,
		OriginalLen: r.Original, SeqLen: readingSeq, Attention: r.Attention, Exact: r.Exact, Factors: r.Factors}
	x, y := make([]float64, turn), make([]float64, turn)
	for j := range turn / 2 {
		x[j] = 1
	}
	cpu.Use(cpu.Portable)
	cpu.Table[float64]().RoPE(y, x, 1, 1, 1, turn, turn, cpu.Where{At: 1}, theta, scale, false)
	var angles []any
	for j := range turn / 2 {
		angles = append(angles, math.Atan2(y[j+turn/2], y[j]))
	}
	pairs := "halves"
	if a.Pairs {
		pairs = "neighbours"
	}
	f.rope = append(f.rope, map[string]any{"pairs": pairs, "angles": angles, "factor": math.Hypot(y[0], y[turn/2])})
}

// routes are what each family's router says of itself in transformers.
func (f *graphFacts) routes(n layer) {
	f.route = map[string]any{"top_k": float64(f.c.Choices)}
	switch f.c.Family {
	case spec.Qwen2MoE, spec.Qwen3MoE:
		f.route["norm_topk_prob"] = n.Attr.Share
	case spec.DeepseekV2, spec.DeepseekV3:
		f.route["routed_scaling_factor"] = 1.0
		if n.Attr.Scale != 0 {
			f.route["routed_scaling_factor"] = n.Attr.Scale
		}
		if f.c.Family == spec.DeepseekV3 {
			f.route["norm_topk_prob"] = n.Attr.Share
		}
	}
}

// tensorsSum is the checksum of the names and shapes of the model's tensors in files.
func tensorsSum(m *ir.Model, c *spec.Config) string {
	layers := map[string]int{}
	for _, s := range m.Segments {
		layers[s.Name] = s.Count
	}
	var lines []string
	for _, pub := range Locate(m, c).Tensors {
		segment, _, _ := strings.Cut(pub.Shares[0].Param, ".")
		for i := range layers[segment] {
			name := strings.ReplaceAll(pub.Name, "{layer}", strconv.Itoa(pub.From+i))
			shape := strings.ReplaceAll(fmt.Sprint(pub.Shape), " ", ", ")
			lines = append(lines, name+" "+shape)
		}
	}
	if c.Family == spec.BERT && !c.Tied {
		lines = append(lines, fmt.Sprintf("cls.predictions.bias [%d]", c.Vocab))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(strings.Join(lines, "\n"))))
}

func sorted(set map[float64]bool) (out []any) {
	var list []float64
	for x := range set {
		list = append(list, x)
	}
	slices.Sort(list)
	for _, x := range list {
		out = append(out, x)
	}
	return out
}

// same is one if all are alike, else one for each layer.
func same(list []any) []any {
	for _, x := range list {
		if !alike(list[0], x) {
			return list
		}
	}
	if len(list) == 0 {
		return []any{}
	}
	return list[:1]
}
