package spec

import (
	"fmt"
	"maps"
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Precision says in which type each kind of state is kept, by the job file's names: f64, f32, bf16, fp16, and
// for Compute also fp8. Master "none" is no copy beside Params. The zero value is "not decided".
type Precision struct {
	Compute string `yaml:"compute" class:"d" enum:"f64,f32,bf16,fp16,fp8" doc:"of matrix products; its preset fills what is absent below" absent:"required" eg:"bf16"`
	Params  string `yaml:"params" class:"d" enum:"f64,f32,bf16,fp16" doc:"of weights" absent:"the preset's" eg:"bf16"`
	Grads   string `yaml:"grads" class:"d" enum:"f64,f32,bf16,fp16" doc:"of accumulated gradients" absent:"the preset's" eg:"f32"`
	Reduce  string `yaml:"reduce" class:"d" enum:"f64,f32,bf16,fp16" doc:"of gradients on the network" absent:"the preset's" eg:"f32"`
	Master  string `yaml:"master" class:"d" enum:"none,f64,f32,bf16,fp16" doc:"of the optimizer's copy of the weights" absent:"the preset's" eg:"f32"`
	Moments string `yaml:"moments" class:"d" enum:"f64,f32,bf16,fp16" doc:"of the optimizer's two moments" absent:"the preset's" eg:"f32"`
	// "" is nearest
	Rounding  string    `yaml:"rounding" class:"d" enum:"nearest,stochastic" doc:"of updated weights to bf16, without a master copy: to the nearest, or by chance, so that small updates are not lost" absent:"nearest" eg:"stochastic"`
	LossScale LossScale `yaml:"loss_scale" class:"r" doc:"none, dynamic, a number, or {init, window, hysteresis, min}" absent:"none; dynamic with fp16" eg:"dynamic"`
}

// Stochastic is rounding up or down by chance, as far as a number is from either neighbour.
const Stochastic = "stochastic"

// LossScale multiplies the loss so that small gradients do not vanish. Kind is none, static (Init) or
// dynamic.
type LossScale struct {
	Kind       string  `yaml:"-"`
	Init       float64 `yaml:"init" over:"0" doc:"what the loss is multiplied by at first" absent:"65536" eg:"65536"`
	Window     int     `yaml:"window" min:"1" max:"1e9" doc:"good steps after which it doubles" absent:"1000" eg:"1000"`
	Hysteresis int     `yaml:"hysteresis" min:"1" max:"1e9" doc:"bad steps after which it halves" absent:"2" eg:"2"`
	Min        float64 `yaml:"min" over:"0" doc:"which it does not go below" absent:"1" eg:"1"`
	// Consecutive is DeepSpeed's consecutive_hysteresis.
	Consecutive bool `yaml:"consecutive" doc:"a good step forgives all bad ones; else only doubling does" absent:"false" eg:"true"`
}

var (
	noScale      = LossScale{Kind: "none", Init: 1}
	dynamicScale = LossScale{Kind: "dynamic", Init: 65536, Window: 1000, Hysteresis: 2, Min: 1}
)

// Presets are the precisions that have a name.
var Presets = map[string]Precision{
	"f64":  {"f64", "f64", "f64", "f64", "none", "f64", "", noScale},
	"f32":  {"f32", "f32", "f32", "f32", "none", "f32", "", noScale},
	"bf16": {"bf16", "bf16", "f32", "f32", "f32", "f32", "", noScale},
	"fp16": {"fp16", "fp16", "f32", "f32", "f32", "f32", "", dynamicScale},
	"fp8":  {"fp8", "bf16", "f32", "f32", "f32", "f32", "", noScale},
}

// otherNames are what others call the presets.
var otherNames = map[string]string{"fp32": "f32", "float32": "f32", "float": "f32", "tf32": "f32", "fp64": "f64",
	"float64": "f64",
	"double":  "f64", "bfloat16": "bf16", "float16": "fp16", "f16": "fp16", "half": "fp16", "f8": "fp8",
	// the narrowest that there is
	"fp4": "fp8", "f4": "fp8", "nvfp4": "fp8", "mxfp4": "fp8", "mxfp8": "fp8", "float8": "fp8"}

// UnmarshalNode reads a preset's name, or the block.
func (p *Precision) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	name := n
	if n.Kind == strict.Map {
		name = n.Get("compute")
		if name == nil {
			c.Addf(n.Pos, Missing, "%s has no compute, as in {compute: bf16}: what it leaves out follows from that",
				path)
			c.Struct(n, path, p)
			return
		}
	}
	if name.Kind == strict.String {
		if preset, ok := Presets[name.Text]; ok {
			*p = preset
		}
	}
	switch {
	case n.Kind == strict.Map:
		c.Struct(n, path, p)
		p.rounding(c, path)
	case n.Kind != strict.String:
		c.Decode(n, path, &p.Compute)
	case p.Compute != n.Text:
		fix, ok := otherNames[n.Text]
		if !ok {
			fix = ir.Nearest(n.Text, slices.Sorted(maps.Keys(Presets)))
		}
		c.Fixf(n.Pos, strict.UnknownValue, fix, "%s is %q; want one of f64, f32, bf16, fp16, fp8, or the block",
			path, n.Text)
	}
}

// rounding makes nearest of a job what it is in one that does not say, and refuses rounding by chance where nothing is.
func (p *Precision) rounding(c *strict.Context, path string) {
	at := path + ".rounding"
	refuse := func(format string, args ...any) { c.Addf(c.Pos(at), Conflict, at+" is stochastic, "+format, args...) }
	copied := p.Master != "none" && p.Master != p.Params
	switch {
	case p.Rounding == "nearest":
		p.Rounding = ""
	case p.Rounding != Stochastic:
	case p.Params != "bf16":
		refuse("and weights in %s are not rounded by chance: params: bf16 is wanted, or nearest", p.Params)
	case copied:
		refuse("and the master copy in %s keeps what rounding loses: master: none is wanted, or nearest", p.Master)
	}
}

// UnmarshalNode reads none, dynamic, a number, or the block.
func (s *LossScale) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	switch {
	case n.Kind == strict.Map:
		*s = dynamicScale
		c.Struct(n, path, s)
	case n.Kind == strict.String && n.Text == "none":
		*s = noScale
	case n.Kind == strict.String && n.Text == "dynamic":
		*s = dynamicScale
	case n.Kind == strict.Int || n.Kind == strict.Float:
		*s = LossScale{Kind: "static"}
		c.Decode(n, path, &s.Init)
		if !(s.Init > 0) {
			c.Addf(n.Pos, strict.OutOfRange, "%s is %s; more than 0 is wanted", path, n.Text)
		}
	default:
		c.Addf(n.Pos, strict.WrongType, "%s is %v; want none, dynamic, a number, or {init, window, hysteresis, min}",
			path, n.Kind)
	}
}

// IsZero says whether the precision is not decided yet.
func (p Precision) IsZero() bool { return p == Precision{} }

// BytesPerParam is weights + gradients + master copy + two moments.
func (p Precision) BytesPerParam() int { return p.IR().BytesPerParam() }

// elems are the job file's names of types. Tensors of fp8 computations are stored as bf16.
var elems = map[string]ir.Elem{"f64": ir.F64, "f32": ir.F32, "bf16": ir.BF16, "fp16": ir.F16, "fp8": ir.BF16}

// IR is the precision as plans have it. With fp8 it says bf16, in which tensors are stored, and that products round
// their operands to 8 bits.
func (p Precision) IR() ir.Precision {
	q := ir.Precision{Compute: elems[p.Compute], Params: elems[p.Params], Grads: elems[p.Grads],
		Reduce: elems[p.Reduce], Master: elems[p.Params], Moments: elems[p.Moments]}
	if p.Master != "none" {
		q.Master = elems[p.Master]
	}
	q.FP8 = p.Compute == "fp8"
	return q
}

// Refused says why no program is made with this precision, "" if one is. What is kept may be narrower than what is
// computed with, but for f64, which the laws are judged in and which mixes with nothing.
func (p Precision) Refused() string {
	q := p.IR()
	all := []ir.Elem{q.Compute, q.Params, q.Grads, q.Reduce, q.Master, q.Moments}
	switch {
	case slices.Contains(all, ir.F64) && q != ir.FullPrecision(ir.F64):
		return "f64 goes with f64 alone: set every field of train.precision to it, or none"
	case q.Reduce.Size() > q.Grads.Size():
		return fmt.Sprintf("gradients kept in %s are not reduced in %s: what was rounded stays so; set both to %s",
			p.Grads, p.Reduce, p.Reduce)
	case q.Reduce.Narrow() && q.Grads.Narrow() && q.Reduce != q.Grads:
		return fmt.Sprintf("gradients kept in %s are not reduced in %s: set both to one type", p.Grads, p.Reduce)
	case q.Master.Narrow() && q.Master != q.Params:
		return fmt.Sprintf("a master copy in %s is no more exact than parameters in %s; f32 is, or none",
			p.Master, p.Params)
	}
	return ""
}

// DefaultPrecision is the preset for a device that the job says nothing about, by its architecture.
func DefaultPrecision(arch string) string {
	switch arch {
	case "cpu":
		return "f32"
	case "sm_70", "sm_75": // V100, T4: no bf16
		return "fp16"
	}
	return "bf16"
}
