package validate

import (
	"strings"

	"github.com/planc-dev/planc/costmodel"
)

// Defaults of empty cells that do not depend on the engine.
const (
	defaultVocab    = 51200 // GPT-2's 50257, padded as in Megatron with tp 8
	headWidth       = 128
	defaultPerNode  = 8
	defaultMicro    = 1
	expertPlaces    = 1.25 // moe_slack, the capacity factor: for planc's own slots, which other engines do not have
	defaultMicroRaw = 8    // largest micro-batch assumed for fsdp, whose users fill the device
)

// defaults are the defaults of empty cells for an engine.
type defaults struct {
	zero  int // without dist_optimizer
	micro int
	cp    string // how keys and values are exchanged
	doc   string
}

// defaultsOf has a row for each engine.
var defaultsOf = map[string]defaults{
	"planc":         {0, defaultMicro, "ring", "zero 0, micro_batch 1, cp_kind ring"},
	"megatron":      {0, defaultMicro, "ring", "zero 0 (1 with dist_optimizer), micro_batch 1, cp_kind ring"},
	"megatron-fsdp": {3, defaultMicro, "ring", "zero 3, micro_batch 1, cp_kind ring"},
	"deepspeed":     {1, defaultMicro, "heads", "zero 1, micro_batch 1, cp_kind heads"},
	"hai-llm":       {1, defaultMicro, "ring", "zero 1, micro_batch 1, cp_kind ring"},
	"fsdp": {3, defaultMicroRaw, "gather",
		"zero 3, micro_batch the largest up to 8 that divides a replica's share; with a pipeline zero 1, micro_batch " +
			"1; cp_kind gather"},
}

// runtimes are words in a row's source or note that identify the runtime.
var runtimes = []struct{ word, engine string }{
	{"deepspeed", "deepspeed"}, {"bigscience", "deepspeed"}, {"mt-nlg", "deepspeed"}, {"glm-130b", "deepspeed"},
	{"vtrain", "deepspeed"},
	{"amp (neurips", "deepspeed"}, {"hai-llm", "hai-llm"}, {"megatron", "megatron"}, {"nemo", "megatron"},
	{"fsdp", "fsdp"}, {"llm-foundry", "fsdp"}, {"torchtitan", "fsdp"},
	{"pytorch", "fsdp"}, {"accelerate", "fsdp"}, {"maxtext", "fsdp"},
}

// engine returns the engine that ran the row. For an empty cell it is the engine that the source names, or else the
// note. Otherwise it is fsdp if a plan without tp and pp states zero 0, 2 or 3 or has fused attention; deepspeed if
// fp16 is combined with zero 1 or more; else megatron.
func (r *Row) engine() string {
	if e := r.lower("engine"); e != "" {
		return engineNames[e]
	}
	for _, text := range []string{r.lower("source"), r.lower("note")} {
		for _, w := range runtimes {
			if strings.Contains(text, w.word) {
				return w.engine
			}
		}
	}
	zero, stated := r.zeroStage()
	half := strings.Contains(r.lower("precision"), "fp16")
	plain := r.count("tp", 1)*r.count("pp", 1) == 1 && !r.truth("dist_optimizer", false)
	switch {
	case half && stated && zero > 0:
		return "deepspeed"
	case plain && (stated && zero != 1 || r.truth("flash_attention", false)):
		return "fsdp"
	}
	return "megatron"
}

// engineNames maps the spellings of engines in tables.
var engineNames = map[string]string{"planc": "planc", "megatron": "megatron", "megatron-lm": "megatron",
	"megatron-core": "megatron", "nemo": "megatron", "megatron-fsdp": "megatron-fsdp",
	"fsdp": "fsdp", "fsdp2": "fsdp", "ddp": "fsdp", "torchtitan": "fsdp", "pytorch": "fsdp", "deepspeed": "deepspeed",
	"megatron-deepspeed": "deepspeed", "hai-llm": "hai-llm"}

// zeroStage returns zero_or_fsdp; stated is false if the cell is empty or "none".
func (r *Row) zeroStage() (stage int, stated bool) {
	text := r.lower("zero_or_fsdp")
	if strings.Contains(text, "hsdp") || strings.Contains(text, "fsdp") {
		return 3, true
	}
	v, ok := r.float("zero_or_fsdp")
	if !ok || v < 0 || v > 3 {
		return 0, false
	}
	return int(v), true
}

// flash reports whether attention is fused. Without a cell, it is on devices of sm_90 and later, and with a SwiGLU or
// GeGLU MLP.
func (r *Row) flash(c *costmodel.Cluster) bool {
	modern := r.truth("gated_mlp", false) || c.GPU.Arch >= "sm_90" && c.GPU.Arch != "cpu"
	return r.truth("flash_attention", modern || strings.HasPrefix(c.GPU.Arch, "sm_1"))
}
