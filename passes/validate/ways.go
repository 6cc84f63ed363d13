package validate

import (
	"regexp"
	"strings"

	"github.com/planc-dev/planc/costmodel"
)

// ways are what rows of one engine differ in: parts of a runtime that are switched on by its users or came in a year.
// None has a constant of its own.
type ways struct {
	flash    bool // attention is fused
	compiled bool // element-wise ops are fused, as by a compiler
	oneLoss  bool // the loss is one kernel over 16-bit logits, which its gradient takes the place of
	async    bool // tensor parallel collectives run beside matmuls, in chunks
	each     bool // a token goes to each of its experts, not once to each rank and node
	hidden   bool // tokens move to experts and back beside another micro-batch's compute
	fused    bool // an expert's activation and casts are parts of its products' kernels
	opByOp   bool // the router's choice and rotary positions are ops one by one
	upAgain  bool // of latent attention what widens the narrow streams is recomputed
	graphed  costmodel.Graphed
	early    bool // Megatron-LM before 2022: gradients are summed by kernels of their own
	waits    bool // and before 2023: sends of an interleaved schedule are waited for too
}

// overlappedEP is the part of the time that tokens take to experts and back that compute hides where it runs beside
// them: of 6.9 s that are priced for NVIDIA's study of Qwen3 30B on 16 H100s, 3.7 s were saved.
const overlappedEP = 0.5

// Words of a row's source and note.
var (
	// XLA, inductor; hand-fused kernels
	compiles = regexp.MustCompile(`(?i)\bcompile\b|\bmaxtext\b|flashattention training|tinyllama`)
	// flash-attn's or TE's cross-entropy, which their documents and recipes name; XLA
	fusesCE     = regexp.MustCompile(`(?i)llm-foundry|megatron-bridge|flashattention training|\bmaxtext\b|tinyllama`)
	sentEach    = regexp.MustCompile(`(?i)\ba2a dispatcher\b`)
	besideEP    = regexp.MustCompile(`(?i)\ba2a overlap\b|\bEP overlap on\b`)
	fusesEP     = regexp.MustCompile(`(?i)\bfused experts\b`)
	widensAgain = regexp.MustCompile(`\bmla_up_proj\b`)
	unfused     = regexp.MustCompile(`(?i)\brouter and rope op by op\b`)
	asyncTP     = regexp.MustCompile(`(?i)\basync ?tp\b`)
	before22    = regexp.MustCompile(`(?i)megatron.*(sc21|20(20|21)\b)`)
	before23    = regexp.MustCompile(`(?i)\b(Korthikanti|MT-NLG)\b`)
)

// graphs are the words for what CUDA graphs hold, those that hold more first.
var graphs = []struct {
	word string
	what costmodel.Graphed
}{
	{"graphs of the step", costmodel.GraphedStep}, {"graphs of attention and router", costmodel.GraphedDense},
	{"graphs of the router", costmodel.GraphedRouter},
}

// graphed is what CUDA graphs hold, as a text says.
func graphed(text string) costmodel.Graphed {
	for _, g := range graphs {
		if strings.Contains(text, g.word) {
			return g.what
		}
	}
	return costmodel.NotGraphed
}

// ways reads them from the row's source and note.
func (r *Row) ways(engine string, c *costmodel.Cluster) ways {
	text := r.Source() + " " + r.Text("note")
	return ways{
		flash:    r.flash(c),
		compiled: engine == "fsdp" && compiles.MatchString(text),
		oneLoss:  fusesCE.MatchString(r.Source()),
		each:     sentEach.MatchString(text),
		hidden:   engine == "megatron" && besideEP.MatchString(text),
		fused:    engine == "megatron" && fusesEP.MatchString(text),
		opByOp:   engine == "megatron" && unfused.MatchString(text),
		upAgain:  widensAgain.MatchString(text),
		graphed:  graphed(text),
		async:    engine == "fsdp" && asyncTP.MatchString(text),
		early:    engine == "megatron" && before22.MatchString(r.Source()),
		waits:    engine == "megatron" && (before22.MatchString(r.Source()) || before23.MatchString(r.Source())),
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
	if k.each {
		e.Once = false
	}
	if k.hidden {
		e.HiddenEP = overlappedEP
	}
	e.FusedExperts, e.RecomputesUp, e.Graphed = k.fused, k.upAgain, k.graphed
	e.OpByOp = k.opByOp
	if k.oneLoss {
		e.FloatLogits = false
	}
	if k.async {
		e.HiddenTP = megatron.HiddenTP
	}
	if k.early {
		e.SeparateSums = true
	}
	if k.waits {
		e.OverlapsInterleavedSends = false
	}
	return &e
}
