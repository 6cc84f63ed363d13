package spec

import (
	"fmt"
	"maps"
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Precision is the type of each kind of state, in the job file's names: f64, f32, bf16, fp16 and, for Compute, also
// fp8. Master "none" means that there is no copy in addition to Params. The zero value means that the precision is not
// decided.
type Precision struct {
	Compute string `yaml:"compute" class:"d" enum:"f64,f32,bf16,fp16,fp8" doc:"type of matmuls; its preset fills in the fields below that are absent" absent:"required" eg:"bf16"`
	Params  string `yaml:"params" class:"d" enum:"f64,f32,bf16,fp16" doc:"type of the weights" absent:"the preset's" eg:"bf16"`
	Grads   string `yaml:"grads" class:"d" enum:"f64,f32,bf16,fp16" doc:"type in which gradients are accumulated" absent:"the preset's" eg:"f32"`
	Reduce  string `yaml:"reduce" class:"d" enum:"f64,f32,bf16,fp16" doc:"type in which gradients are reduced over the network" absent:"the preset's" eg:"f32"`
	Master  string `yaml:"master" class:"d" enum:"none,f64,f32,bf16,fp16" doc:"type of the optimizer's copy of the weights" absent:"the preset's" eg:"f32"`
	Moments string `yaml:"moments" class:"d" enum:"f64,f32,bf16,fp16" doc:"type of the optimizer's two moments" absent:"the preset's" eg:"f32"`
	// "" means nearest
	Rounding  string    `yaml:"rounding" class:"d" enum:"nearest,stochastic" doc:"rounding of updated weights to bf16, without a master copy: to nearest, or stochastic, which keeps small updates on average" absent:"nearest" eg:"stochastic"`
	LossScale LossScale `yaml:"loss_scale" class:"r" doc:"none, dynamic, a number, or {init, window, hysteresis, min}" absent:"none; dynamic with fp16" eg:"dynamic"`
}

// Stochastic means stochastic rounding: up or down at random, with probabilities that keep the mean.
const Stochastic = "stochastic"

// LossScale multiplies the loss so that small gradients do not underflow. Kind is none, static (Init) or dynamic.
type LossScale struct {
	Kind       string  `yaml:"-"`
	Init       float64 `yaml:"init" over:"0" doc:"initial factor of the loss" absent:"65536" eg:"65536"`
	Window     int     `yaml:"window" min:"1" max:"1e9" doc:"good steps after which the factor doubles" absent:"1000" eg:"1000"`
	Hysteresis int     `yaml:"hysteresis" min:"1" max:"1e9" doc:"bad steps after which the factor halves" absent:"2" eg:"2"`
	Min        float64 `yaml:"min" over:"0" doc:"smallest factor" absent:"1" eg:"1"`
	// Consecutive is DeepSpeed's consecutive_hysteresis.
	Consecutive bool `yaml:"consecutive" doc:"true: a good step resets the count of bad steps; false: only doubling resets it" absent:"false" eg:"true"`
}

var (
	noScale      = LossScale{Kind: "none", Init: 1}
	dynamicScale = LossScale{Kind: "dynamic", Init: 65536, Window: 1000, Hysteresis: 2, Min: 1}
)

// Presets are the named precisions.
var Presets = map[string]Precision{
	"f64":  {"f64", "f64", "f64", "f64", "none", "f64", "", noScale},
	"f32":  {"f32", "f32", "f32", "f32", "none", "f32", "", noScale},
	"bf16": {"bf16", "bf16", "f32", "f32", "f32", "f32", "", noScale},
	"fp16": {"fp16", "fp16", "f32", "f32", "f32", "f32", "", dynamicScale},
	"fp8":  {"fp8", "bf16", "f32", "f32", "f32", "f32", "", noScale},
}

// otherNames maps names that other tools use to presets.
var otherNames = map[string]string{"fp32": "f32", "float32": "f32", "float": "f32", "tf32": "f32", "fp64": "f64",
	"float64": "f64",
	"double":  "f64", "bfloat16": "bf16", "float16": "fp16", "f16": "fp16", "half": "fp16", "f8": "fp8",
	// the narrowest type that planc has
	"fp4": "fp8", "f4": "fp8", "nvfp4": "fp8", "mxfp4": "fp8", "mxfp8": "fp8", "float8": "fp8"}

// UnmarshalNode reads the name of a preset, or a mapping.
func (p *Precision) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	name := n
	if n.Kind == strict.Map {
		name = n.Get("compute")
		if name == nil {
			c.Addf(n.Pos, Missing, "%s has no compute, as in {compute: bf16}: the other fields' defaults "+
				"depend on it",
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
		c.Fixf(n.Pos, strict.UnknownValue, fix, "%s is %q; use one of f64, f32, bf16, fp16, fp8, or a mapping",
			path, n.Text)
	}
}

// rounding replaces nearest with "", which means the same. It reports stochastic rounding if nothing would be rounded.
func (p *Precision) rounding(c *strict.Context, path string) {
	at := path + ".rounding"
	refuse := func(format string, args ...any) { c.Addf(c.Pos(at), Conflict, at+" is stochastic, "+format, args...) }
	copied := p.Master != "none" && p.Master != p.Params
	switch {
	case p.Rounding == "nearest":
		p.Rounding = ""
	case p.Rounding != Stochastic:
	case p.Params != "bf16":
		refuse("but weights in %s are not rounded stochastically: use params: bf16, or rounding: nearest", p.Params)
	case copied:
		refuse("but the master copy in %s keeps what rounding would lose: use master: none, or rounding: "+
			"nearest", p.Master)
	}
}

// UnmarshalNode reads none, dynamic, a number, or a mapping.
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
			c.Addf(n.Pos, strict.OutOfRange, "%s is %s; it must be more than 0", path, n.Text)
		}
	default:
		c.Addf(n.Pos, strict.WrongType, "%s is %v; use none, dynamic, a number, or {init, window, hysteresis, "+
			"min}",
			path, n.Kind)
	}
}

// IsZero reports whether the precision is not decided yet.
func (p Precision) IsZero() bool { return p == Precision{} }

// BytesPerParam returns the bytes per parameter of weights, gradients, master copy and two moments.
func (p Precision) BytesPerParam() int { return p.IR().BytesPerParam() }

// elems maps the job file's names to types. With fp8, tensors are stored as bf16.
var elems = map[string]ir.Elem{"f64": ir.F64, "f32": ir.F32, "bf16": ir.BF16, "fp16": ir.F16, "fp8": ir.BF16}

// IR returns the precision in the form of plans. For fp8 it has bf16, the type in which tensors are stored, and sets
// FP8: matmuls round their operands to FP8.
func (p Precision) IR() ir.Precision {
	q := ir.Precision{Compute: elems[p.Compute], Params: elems[p.Params], Grads: elems[p.Grads],
		Reduce: elems[p.Reduce], Master: elems[p.Params], Moments: elems[p.Moments]}
	if p.Master != "none" {
		q.Master = elems[p.Master]
	}
	q.FP8 = p.Compute == "fp8"
	return q
}

// Refused returns why planc does not compile this precision, "" if it does. State may be narrower than the compute
// type, except with f64, in which the laws are tested: it does not mix with other types.
func (p Precision) Refused() string {
	q := p.IR()
	all := []ir.Elem{q.Compute, q.Params, q.Grads, q.Reduce, q.Master, q.Moments}
	switch {
	case slices.Contains(all, ir.F64) && q != ir.FullPrecision(ir.F64):
		return "f64 cannot be combined with other types: use f64 for every field of train.precision, or for " +
			"none"
	case q.Reduce.Size() > q.Grads.Size():
		return fmt.Sprintf("gradients accumulated in %s cannot be reduced in %s, because they are rounded "+
			"already: use %s for both",
			p.Grads, p.Reduce, p.Reduce)
	case q.Reduce.Narrow() && q.Grads.Narrow() && q.Reduce != q.Grads:
		return fmt.Sprintf("gradients accumulated in %s cannot be reduced in %s: use the same type for both",
			p.Grads, p.Reduce)
	case q.Master.Narrow() && q.Master != q.Params:
		return fmt.Sprintf("a master copy in %s is not more precise than parameters in %s: use f32 or none",
			p.Master, p.Params)
	}
	return ""
}

// DefaultPrecision returns the preset for a device's architecture, for jobs without a precision.
func DefaultPrecision(arch string) string {
	switch arch {
	case "cpu":
		return "f32"
	case "sm_70", "sm_75": // V100, T4: no bf16
		return "fp16"
	}
	return "bf16"
}
