package validate

import (
	"regexp"

	"github.com/planc-dev/planc/costmodel"
)

// ways are what rows of one engine differ in: parts of a runtime that are switched on by its users or came in a year. None has a
// constant of its own.
type ways struct {
	flash    bool // attention is fused
	compiled bool // element-wise ops are fused, as by a compiler
	oneLoss  bool // the loss is one kernel over 16-bit logits, which its gradient takes the place of
	async    bool // tensor parallel collectives run beside matmuls, in chunks
	early    bool // Megatron-LM before 2022: gradients are summed by kernels of their own
}

// Words of a row's source and note.
var (
	compiles = regexp.MustCompile(`(?i)\bcompile\b|\bmaxtext\b|flashattention training|tinyllama`) // XLA, inductor; hand-fused kernels
	fusesCE  = regexp.MustCompile(`(?i)llm-foundry|flashattention training|\bmaxtext\b|tinyllama`) // flash-attn's cross-entropy, which their documents name; XLA
	asyncTP  = regexp.MustCompile(`(?i)\basync ?tp\b`)
	before22 = regexp.MustCompile(`(?i)megatron.*(sc21|20(20|21)\b)`)
)

// ways reads them from the row's source and note.
func (r *Row) ways(engine string, c *costmodel.Cluster) ways {
	text := r.Source() + " " + r.Text("note")
	return ways{
		flash:    r.flash(c),
		compiled: engine == "fsdp" && compiles.MatchString(text),
		oneLoss:  fusesCE.MatchString(r.Source()),
		async:    engine == "fsdp" && asyncTP.MatchString(text),
		early:    engine == "megatron" && before22.MatchString(r.Source()),
	}
}

// engine is the engine that runs so.
func (k engineKey) engine() *costmodel.Engine {
	e := *costmodel.EngineOf(k.name)
	megatron := costmodel.EngineOf("megatron")
	e.Unfused = !k.flash
	if k.compiled {
		e.Elementwise = min(e.Elementwise, megatron.Elementwise)
	}
	if k.oneLoss {
		e.FloatLogits = false
	}
	if k.async {
		e.HiddenTP = megatron.HiddenTP
	}
	if k.early {
		e.SeparateSums = true
	}
	return &e
}
