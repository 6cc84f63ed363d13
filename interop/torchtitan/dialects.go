package torchtitan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

// otherDialects are keys of other versions of torchtitan, with what the user types instead in a file of 0.2.
var otherDialects = map[string]string{
	// the main branch since 2026-08-20 counts tokens
	"training.num_tokens_per_microbatch_per_dp_rank": localKey + ", in sequences: tokens / " + seqKey,
	"training.num_tokens_per_train_step":             globalKey + ", in sequences: tokens / " + seqKey,
	"training.max_context_length":                    seqKey,
	"parallelism.num_pp_microbatches":                pipeMicroKey + ", which is " + localKey + " / micro-batches",
	// 0.1 had the degrees in other tables
	"training.batch_size":                         localKey,
	"training.data_parallel_degree":               shardKey,
	"training.data_parallel_replicate_degree":     replicateKey,
	"training.data_parallel_shard_degree":         shardKey,
	"training.tensor_parallel_degree":             tpKey,
	"training.compile":                            "compile.enable",
	"experimental.pipeline_parallel_degree":       ppKey,
	"experimental.pipeline_parallel_schedule":     scheduleKey,
	"experimental.pipeline_parallel_microbatches": pipeMicroKey + ", which is " + localKey + " / micro-batches",
	"experimental.context_parallel_degree":        cpKey,
	"experimental.enable_async_tensor_parallel":   parallelism + "enable_async_tensor_parallel",
	"parallelism.pipeline_parallel_split_points":  modulesKey,
	"float8.moe_fqns_prototype":                   "quantize.grouped_mm.float8.fqns",
	"mx.moe_fqns_prototype":                       "quantize.grouped_mm.mx.fqns",
}

// otherSections are sections of 0.1, with their names in 0.2.
// Source: torchtitan 0.2.2, config/job_config.py: Quantize, QuantizedLinear.
var otherSections = map[string]string{"float8": "quantize.linear.float8", "mx": "quantize.linear.mx"}

// inSection returns the key of 0.2 for a key of a section of 0.1; "" if there is none.
func inSection(path string) string {
	section, name, _ := strings.Cut(path, ".")
	if renamed := otherSections[section]; renamed != "" {
		if row, ok := Keys.Find(renamed + "." + name); ok {
			return row.Key
		}
	}
	return ""
}

// tokenKeys are those of otherDialects whose value is divided by the sequence length.
var tokenKeys = map[string]string{"training.num_tokens_per_microbatch_per_dp_rank": localKey,
	"training.num_tokens_per_train_step": globalKey}

// refuseDialects reports keys of other versions.
func (r *reader) refuseDialects() {
	for _, table := range r.Doc.Root.Fields {
		if renamed := otherSections[table.Key]; renamed != "" && r.isRenamed(table) {
			r.Diags = append(r.Diags, ir.Diag{Pos: table.Pos, Code: WrongDialect, Msg: fmt.Sprintf("[%s] is a section "+
				"of torchtitan 0.1, and planc reads files of 0.2: write [%s]", table.Key, renamed)})
		}
		for _, f := range table.Value.Fields {
			path := table.Key + "." + f.Key
			instead, ok := otherDialects[path]
			if !ok {
				continue
			}
			version := "torchtitan 0.1"
			if _, isToken := tokenKeys[path]; isToken || path == "training.max_context_length" ||
				path == "parallelism.num_pp_microbatches" {
				version = "torchtitan's main branch since 2026-08-20"
			}
			r.Diags = append(r.Diags, ir.Diag{Pos: f.Pos, Code: WrongDialect, Msg: fmt.Sprintf("%s is a key of %s, "+
				"and planc reads files of 0.2: write %s", path, version, r.concrete(path, f.Value.Text, instead))})
		}
	}
}

// isRenamed reports whether a table of 0.1 is to be renamed: it has keys of 0.2's section, or none. A table of the
// user's own module is not.
func (r *reader) isRenamed(table *tree.Field) bool {
	hasKey := func(f *tree.Field) bool { return inSection(table.Key+"."+f.Key) != "" }
	keys := table.Value.Fields
	return (len(keys) == 0 || slices.ContainsFunc(keys, hasKey)) && r.Text("job.custom_config_module") == ""
}

// concrete returns what to type instead of a key: with a number if the file says the sequence length.
func (r *reader) concrete(path, value, instead string) string {
	key, isToken := tokenKeys[path]
	tokens, err := strconv.Atoi(value)
	length, ok := r.Doc.Root.Find("training.max_context_length").Int()
	if !ok {
		length, ok = r.Doc.Root.Find(seqKey).Int()
	}
	if !isToken || err != nil || !ok || length < 1 || tokens%length != 0 {
		return instead
	}
	return fmt.Sprintf("%s = %d, in sequences of %d tokens", key, tokens/length, length)
}
