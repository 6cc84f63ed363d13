package validate

import (
	"regexp"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
)

// ways are the options in which rows of one engine differ: parts of a runtime that users enable or that were added in
// some year. None has a constant of its own.
type ways struct {
	flash        bool // attention is fused
	compiled     bool // element-wise ops are fused, as by a compiler
	oneLoss      bool // the loss is one kernel over 16-bit logits, whose gradient replaces them in memory
	async        bool // tensor-parallel collectives overlap matmuls, in chunks
	each         bool // a token is sent to each of its experts, instead of once to each rank and node
	hidden       bool // transfers to experts and back overlap another micro-batch's compute
	fused        bool // an expert's activation and casts are fused into its GEMM kernels
	opByOp       bool // the router's choice and rotary positions run op by op
	recomputesUp bool // MLA's up-projections are recomputed
	graphed      engines.Graphed
	early        bool // Megatron-LM before 2022: separate kernels accumulate gradients
	waits        bool // Megatron-LM before 2023: stages also wait for the sends of an interleaved schedule
}

// overlappedEP is the fraction of the transfers to experts and back that overlapping compute hides: of 6.9 s predicted
// for NVIDIA's study of Qwen3 30B on 16 H100s, 3.7 s were saved.
const overlappedEP = 0.5

// Words in a row's source and note.
var (
	// XLA, inductor; hand-fused kernels
	compiles = regexp.MustCompile(`(?i)\bcompile\b|\bmaxtext\b|flashattention training|tinyllama`)
	// cross-entropy of flash-attn or Transformer Engine, which their documents and recipes name; XLA
	fusesCE = regexp.MustCompile(`(?i)llm-foundry|megatron-bridge|flashattention ` +
		`training|\bmaxtext\b|tinyllama`)
	sentEach                = regexp.MustCompile(`(?i)\ba2a dispatcher\b`)
	overlapsEP              = regexp.MustCompile(`(?i)\ba2a overlap\b|\bEP overlap on\b`)
	fusesEP                 = regexp.MustCompile(`(?i)\bfused experts\b`)
	recomputesUpProjections = regexp.MustCompile(`\bmla_up_proj\b`)
	unfused                 = regexp.MustCompile(`(?i)\brouter and rope op by op\b`)
	asyncTP                 = regexp.MustCompile(`(?i)\basync ?tp\b`)
	before22                = regexp.MustCompile(`(?i)megatron.*(sc21|20(20|21)\b)`)
	before23                = regexp.MustCompile(`(?i)\b(Korthikanti|MT-NLG)\b`)
)

// graphs are the words for the contents of CUDA graphs, the largest contents first.
var graphs = []struct {
	word string
	what engines.Graphed
}{
	{"graphs of the step", engines.GraphedStep}, {"graphs of attention and router", engines.GraphedDense},
	{"graphs of the router", engines.GraphedRouter},
}

// graphed returns the contents of CUDA graphs that a text states.
func graphed(text string) engines.Graphed {
	for _, g := range graphs {
		if strings.Contains(text, g.word) {
			return g.what
		}
	}
	return engines.NotGraphed
}

// ways reads the options from the row's source and note.
func (r *Row) ways(engine string, c *costmodel.Cluster) ways {
	text := r.Source() + " " + r.Text("note")
	return ways{
		flash:        r.flash(c),
		compiled:     engine == "fsdp" && compiles.MatchString(text),
		oneLoss:      fusesCE.MatchString(r.Source()),
		each:         sentEach.MatchString(text),
		hidden:       engine == "megatron" && overlapsEP.MatchString(text),
		fused:        engine == "megatron" && fusesEP.MatchString(text),
		opByOp:       engine == "megatron" && unfused.MatchString(text),
		recomputesUp: recomputesUpProjections.MatchString(text),
		graphed:      graphed(text),
		async:        engine == "fsdp" && asyncTP.MatchString(text),
		early:        engine == "megatron" && before22.MatchString(r.Source()),
		waits:        engine == "megatron" && (before22.MatchString(r.Source()) || before23.MatchString(r.Source())),
	}
}

// engine returns the engine with these options.
func (k engineKey) engine() *engines.Engine {
	e := *engines.EngineOf(k.name)
	megatron := engines.EngineOf("megatron")
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
	e.FusedExperts, e.RecomputesUp, e.Graphed = k.fused, k.recomputesUp, k.graphed
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
