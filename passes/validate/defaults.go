package validate

import (
	"strings"

	"github.com/planc-dev/planc/costmodel"
)

// What empty cells mean where no engine says otherwise.
const (
	defaultVocab    = 51200 // GPT-2's 50257, padded as Megatron pads it for tp 8
	headWidth       = 128
	defaultPerNode  = 8
	defaultMicro    = 1
	expertPlaces    = 1.25 // moe_slack: planc's own places, which other engines have none of
	defaultMicroRaw = 8    // of fsdp, whose users fill the device: at most so many sequences
)

// defaults are what an engine's empty cells mean.
type defaults struct {
	zero  int // without dist_optimizer
	micro int
	cp    string // how keys move
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

// runtimes are words of a row's source or note that say whose runtime ran it.
var runtimes = []struct{ word, engine string }{
	{"deepspeed", "deepspeed"}, {"bigscience", "deepspeed"}, {"mt-nlg", "deepspeed"}, {"glm-130b", "deepspeed"},
	{"vtrain", "deepspeed"},
	{"amp (neurips", "deepspeed"}, {"hai-llm", "hai-llm"}, {"megatron", "megatron"}, {"nemo", "megatron"},
	{"fsdp", "fsdp"}, {"llm-foundry", "fsdp"}, {"torchtitan", "fsdp"},
	{"pytorch", "fsdp"}, {"accelerate", "fsdp"}, {"maxtext", "fsdp"},
}

// engine is whose runtime ran the row. For an empty cell it is the one that the source names, or else the note; else
// fsdp where a plan without tp and pp states zero 0, 2 or 3 or has fused attention; deepspeed where fp16 goes with zero
// 1 or more; megatron otherwise.
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

// engineNames are the engines as people write them.
var engineNames = map[string]string{"planc": "planc", "megatron": "megatron", "megatron-lm": "megatron",
	"megatron-core": "megatron", "nemo": "megatron", "megatron-fsdp": "megatron-fsdp",
	"fsdp": "fsdp", "fsdp2": "fsdp", "ddp": "fsdp", "torchtitan": "fsdp", "pytorch": "fsdp", "deepspeed": "deepspeed",
	"megatron-deepspeed": "deepspeed", "hai-llm": "hai-llm"}

// zeroStage is zero_or_fsdp; stated is false where the cell is empty or "none".
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

// flash tells whether attention is fused: as the row says, else on devices of sm_90 and later, and where the MLP is
// gated.
func (r *Row) flash(c *costmodel.Cluster) bool {
	modern := r.truth("gated_mlp", false) || c.GPU.Arch >= "sm_90" && c.GPU.Arch != "cpu"
	return r.truth("flash_attention", modern || strings.HasPrefix(c.GPU.Arch, "sm_1"))
}
