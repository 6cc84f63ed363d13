package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Column is a column that a table of measured runs may have.
type Column struct {
	Name string
	// "yes", "one of", which are those of which a row has one at least, or "" where an empty cell has a default
	Need string
	Doc  string
}

// Need's words.
const (
	needed = "yes"
	oneOf  = "one of"
)

// Columns are those that are read, in the order in which people write them. What else a table has is passed over.
var Columns = []Column{
	{"source", "", "who measured; the file where it is empty"},
	{"model", needed, "a name of the catalogue; any name where hidden says its shape"},
	{"layers", "", "blocks; needed with hidden"},
	{"hidden", "", "width of a block's input; with it the row's own shape counts"},
	{"heads", "", "of queries; empty: as many as are nearest to 128 wide"},
	{"kv_heads", "", "of keys and values; empty: heads"},
	{"ffn_hidden", "", "width of the MLP, or of an expert; empty: 4 × hidden"},
	{"gated_mlp", "", "yes for Llama's blocks; else GPT-2's"},
	{"vocab", "", "rows of the embedding; empty: 51200"},
	{"seq_len", needed, "positions of a sequence"},
	{"experts", "", "of a block; empty or 1: none"},
	{"top_k", "", "experts that a token goes to; needed with experts, where the catalogue has no such model"},
	{"gpu", needed, "H100-SXM, A100, rtx-4090, ..."},
	{"gpu_mem_gb", "", "tells GPUs of one name apart"},
	{"gpus_per_node", "", "empty: as the catalogue's node of that GPU"},
	{"num_gpus", needed, "of all nodes together"},
	{"intra_bw_note", "", "the link in a node; with the word PCIe it is that"},
	{"inter_bw_note", "", "the network, such as 8x400Gb/s; empty: the catalogue's"},
	{"dp", "", "replicas; empty: what the other degrees leave"},
	{"tp", "", "ranks that share a block; empty: 1, as of the other degrees"},
	{"pp", "", "stages"},
	{"vpp", "", "chunks of a stage"},
	{"cp", "", "ranks that share a sequence"},
	{"cp_kind", "", "gather, heads or ring; empty: as the engine's users have it"},
	{"ep", "", "ranks that share the experts of a block"},
	{"etp", "", "ranks that share an expert"},
	{"sp", "", "yes or no; empty: with fused attention"},
	{"zero_or_fsdp", "", "0 to 3, fsdp or hsdp; empty: the engine's"},
	{"dist_optimizer", "", "yes: ZeRO 1 at least"},
	{"micro_batch", "", "sequences; empty: the engine's"},
	{"global_batch", "", "sequences of a step; empty: one micro-batch for each stage"},
	{"schedule", "", "1F1B, interleaved, gpipe, or zb-h1, of which DualPipe has the bubble"},
	{"stage_layers", "", "layers of each chunk; empty: even"},
	{"recompute", "", "none, selective or full"},
	{"flash_attention", "", "yes or no; empty: on sm_90 and later, and with a gated MLP"},
	{"precision", "", "bf16, fp16, f32, fp8 or mxfp8; empty: the GPU's usual one"},
	{"engine", "", "planc, megatron, megatron-fsdp, fsdp, deepspeed or hai-llm; empty: as source and note say"},
	{"measured_step_s", oneOf, "seconds of a step"},
	{"measured_tokens_per_s_per_gpu", oneOf, "with global_batch it says the seconds of a step"},
	{"measured_mem_gb_per_gpu", oneOf, "memory in use, of the fullest GPU"},
	{"measured_fits", oneOf, "yes or no; a note with OOM says no"},
	{"note", "", "free text; some words count, such as OOM"},
}

// lacks is why a row cannot be priced that has no figure in a cell which every row needs: all of them at once.
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
			wrong = append(wrong, fmt.Sprintf("%s is %q; a whole number above 0 is wanted", c.Name, text))
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

// misnamed says which column of the row was meant to be the one that it lacks, "" if none is near.
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

// are is a list of names as the beginning of a sentence: "gpu is", "gpu and num_gpus are".
func are(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0] + " is"
	}
	return strings.Join(names[:last], ", ") + " and " + names[last] + " are"
}
