package deepspeed

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// numbers are the keys with which DeepSpeed, or the optimizer or scheduler that it makes, computes without converting
// the value. Keys of zero_optimization, bf16, fp16 and tensor_parallel are none of them: pydantic converts text there.
// Source: DeepSpeed 0.19.8, runtime/config.py: _batch_assertion, DeepSpeedConfig.__init__ (sequence_parallel_size);
// runtime/engine.py and runtime/zero: gradient_clipping; module_inject/auto_ep_config.py; runtime/lr_schedules.py.
var numbers = []string{globalKey, microKey, stepsKey, "sequence_parallel_size", "gradient_clipping", "vocabulary_size",
	"optimizer.params.lr", "optimizer.params.eps", "optimizer.params.weight_decay", "optimizer.params.momentum",
	"optimizer.params.max_grad_norm", "scheduler.params.warmup_min_lr", "scheduler.params.warmup_max_lr",
	"scheduler.params.warmup_num_steps", "scheduler.params.total_num_steps", "scheduler.params.warmup_min_ratio",
	"scheduler.params.cos_min_ratio"}

// expertNumbers are such keys if expert_parallel.enabled is true.
var expertNumbers = []string{"expert_parallel.autoep_size", "expert_parallel.expert_tensor_parallel_size"}

// quotedNumbers reports numbers in quotes where DeepSpeed converts no text.
func (r *reader) quotedNumbers() {
	hasExperts := r.IsTrue("expert_parallel.enabled")
	r.Doc.Root.Walk(func(path string, f *tree.Field) {
		isNumber := slices.Contains(numbers, path) || hasExperts && slices.Contains(expertNumbers, path)
		text := strings.TrimSpace(f.Value.Text)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || f.Value.Kind != strict.String || !isNumber {
			return
		}
		fix := "write " + text + " without quotes"
		if math.IsInf(value, 0) || math.IsNaN(value) { // JSON has neither
			fix = "write a finite number without quotes"
		}
		r.Wrong(path, strict.WrongType, "", "%s is %q, a text, with which DeepSpeed cannot compute: %s", path,
			f.Value.Text, fix)
	})
}
