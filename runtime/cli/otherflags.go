package cli

import "strings"

// otherFlags maps flags of Megatron, DeepSpeed, torchrun, Hugging Face's Trainer and nanoGPT to the flags of a training
// binary. It also lists planc's own flags whose value is compiled into a program.
var otherFlags = []struct {
	names   string
	instead string // V is the value
}{
	{"lr learning-rate", "use --set train.optimizer.lr=V"},
	{"weight-decay wd", "use --set train.optimizer.weight_decay=V"},
	{"grad-clip clip-grad max-grad-norm gradient-clipping", "use --set train.optimizer.clip_norm=V"},
	{"epochs num-epochs max-epochs num-train-epochs", "use --set train.epochs=V"},
	{"max-steps max-iters train-iters num-steps iters", "use --steps V"},
	{"tokens train-tokens", "use --set train.tokens=V"},
	{"warmup warmup-steps warmup-iters lr-warmup-iters", "use --set train.schedule.warmup=V"},
	{"min-lr", "use --set train.schedule.min_lr=V"},
	{"output-dir out-dir save save-dir", "use --dir V"},
	{"logging-dir", "use --log-dir V"},
	{"save-steps save-interval", "use --checkpoint-every V"},
	{"save-total-limit keep-latest-k keep-last", "use --set train.checkpoint.keep_last=V"},
	{"load resume-from resume-from-checkpoint", "use --resume V"},
	{"data-path train-data", "use --data V"},
	{"start prompt", `use --generate "V"`},
	{"max-tokens num-tokens sample-tokens", "use --max-new-tokens V"},
	{"batch-size global-batch global-batch-size train-batch-size",
		"the batch is compiled into the program: compile it again with --global-batch V"},
	{"micro-batch-size per-device-train-batch-size",
		"the micro-batch is compiled into the program: compile it again with --set plan.micro_batch=V"},
	{"seq-len seq-length max-length max-seq-length block-size context-length",
		"the length of sequences is compiled into the program: compile it again with --seq-len V"},
	{"gpus gpu num-gpus ngpus devices cluster",
		"the devices are compiled into the program: compile it again with another --cluster, such as --cluster 8xh100"},
	{"precision dtype mixed-precision",
		"the precision is compiled into the program: compile it again with another --precision, such as " +
			"--precision bf16"},
}

// otherFlag returns what to type in place of another tool's flag; "" if the flag is unknown. A missing value is shown
// as the letter N.
func otherFlag(name, value string) string {
	name = strings.ToLower(name)
	if value == "" || strings.HasPrefix(value, "--") {
		value = "N"
	}
	for _, f := range otherFlags {
		for n := range strings.FieldsSeq(f.names) {
			if n == name {
				return "; " + strings.ReplaceAll(f.instead, "V", value)
			}
		}
	}
	return ""
}
