package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Column is a column of a table of measured runs.
type Column struct {
	Name string
	// "yes": required; "one of": a row needs at least one of these; "": an empty cell has a default
	Need string
	Doc  string
}

// Values of Need.
const (
	needed = "yes"
	oneOf  = "one of"
)

// Columns are the columns that are read, in the usual order. Other columns of a table are ignored.
var Columns = []Column{
	{"source", "", "who measured; empty: the file's name"},
	{"model", needed, "a name of the catalogue; any name if hidden gives its shape"},
	{"layers", "", "blocks; needed with hidden"},
	{"hidden", "", "width of a block's input; if given, the row's own shape is used"},
	{"heads", "", "query heads; empty: the number for which heads are nearest to 128 wide"},
	{"kv_heads", "", "key/value heads; empty: heads"},
	{"ffn_hidden", "", "width of the MLP, or of an expert; empty: 4 × hidden"},
	{"gated_mlp", "", "yes for Llama's blocks; empty: GPT-2's"},
	{"vocab", "", "rows of the embedding; empty: 51200"},
	{"seq_len", needed, "tokens per sequence"},
	{"experts", "", "experts per block; empty or 1: none"},
	{"top_k", "", "experts per token; needed with experts, if the catalogue has no such model"},
	{"gpu", needed, "H100-SXM, A100, rtx-4090, ..."},
	{"gpu_mem_gb", "", "distinguishes GPUs of the same name"},
	{"gpus_per_node", "", "empty: the catalogue's number for a node of that GPU"},
	{"num_gpus", needed, "over all nodes"},
	{"intra_bw_note", "", "the link inside a node; if it contains PCIe, that is assumed"},
	{"inter_bw_note", "", "the network, such as 8x400Gb/s; empty: the catalogue's"},
	{"dp", "", "replicas; empty: follows from the other degrees"},
	{"tp", "", "tensor-parallel degree; empty: 1, as for the other degrees"},
	{"pp", "", "stages"},
	{"vpp", "", "chunks per stage"},
	{"cp", "", "context-parallel degree"},
	{"cp_kind", "", "gather, heads or ring; empty: the usual one of the engine"},
	{"ep", "", "expert-parallel degree"},
	{"etp", "", "tensor-parallel degree inside experts"},
	{"sp", "", "yes or no; empty: with fused attention"},
	{"zero_or_fsdp", "", "0 to 3, fsdp or hsdp; empty: the engine's"},
	{"dist_optimizer", "", "yes: ZeRO 1 at least"},
	{"micro_batch", "", "sequences; empty: the engine's"},
	{"global_batch", "", "sequences per step; empty: one micro-batch per stage"},
	{"schedule", "", "1F1B, interleaved, gpipe, or zb-h1, which also stands for DualPipe's bubble"},
	{"stage_layers", "", "layers of each chunk; empty: even"},
	{"recompute", "", "none, selective or full"},
	{"flash_attention", "", "yes or no; empty: yes on sm_90 and later, and with gated_mlp"},
	{"precision", "", "bf16, fp16, f32, fp8 or mxfp8; empty: the usual one of the GPU"},
	{"engine", "", "planc, megatron, megatron-fsdp, fsdp, deepspeed or hai-llm; empty: derived from source and " +
		"note"},
	{"measured_step_s", oneOf, "seconds per step"},
	{"measured_tokens_per_s_per_gpu", oneOf, "with global_batch it gives the seconds per step"},
	{"measured_mem_gb_per_gpu", oneOf, "memory in use on the fullest GPU"},
	{"measured_fits", oneOf, "yes or no; a note with OOM says no"},
	{"note", "", "free text; some words have a meaning, such as OOM"},
}

// lacks returns why a row cannot be priced because of required cells: all reasons at once.
func (r *Row) lacks() error {
	var missing, wrong []string
	for _, c := range Columns {
		if c.Need != needed || c.Name == "model" && r.count("hidden", 0) > 0 {
			continue
		}
		text := r.Text(c.Name)
		switch {
		case text == "":
			missing = append(missing, c.Name+r.misnamed(c.Name))
		case c.Name != "model" && c.Name != "gpu" && r.count(c.Name, 0) < 1:
			wrong = append(wrong, fmt.Sprintf("%s is %q; it must be a whole number above 0", c.Name, text))
		}
	}
	if len(missing) > 0 {
		wrong = append([]string{are(missing) + " missing"}, wrong...)
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(wrong, "; "))
}

// misnamed returns a hint at the row's column that is probably a misspelling of the missing one, "" if there is none.
func (r *Row) misnamed(name string) string {
	var others []string
	for cell := range r.cells {
		if !slices.ContainsFunc(Columns, func(c Column) bool { return c.Name == cell }) {
			others = append(others, cell)
		}
	}
	slices.Sort(others)
	if near := ir.Nearest(name, others); near != "" {
		return fmt.Sprintf(" (%s is no column)", near)
	}
	return ""
}

// are starts a sentence with a list of names: "gpu is", "gpu and num_gpus are".
func are(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0] + " is"
	}
	return strings.Join(names[:last], ", ") + " and " + names[last] + " are"
}
