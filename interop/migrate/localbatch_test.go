package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// An edit of torchtitan's micro-batch raises local_batch_size if the new micro-batch does not divide it, and the edited
// file says the plan of the edit. A local batch that the micro-batch divides stays.
func TestEditsRaiseTheLocalBatch(t *testing.T) {
	const file = `[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = LOCAL
global_batch_size = 256
seq_len = 256
[parallelism]
pipeline_parallel_degree = 2
data_parallel_shard_degree = 4
`
	for local, want := range map[string]string{"2": "64", "4": "4"} {
		given := []interop.File{{Name: "job.toml", Data: []byte(strings.Replace(file, "LOCAL", local, 1))}}
		r := reportOf(t, given, noFiles, onH100(nil))
		i := slices.IndexFunc(r.Edits, func(e Edit) bool { return e.Message == "micro_batch 1 → 4" })
		if i < 0 {
			t.Fatalf("no edit of micro_batch: %v", r.Edits)
		}
		to := r.Edits[i].Plan.Plan
		doc, note := r.Source.edited(r.Question, r.From(), to)
		if note != "" {
			t.Fatal(note)
		}
		edited := []interop.File{{Name: "job.toml", Data: doc.Bytes()}}
		if got, _ := doc.Get("training.local_batch_size"); got != want {
			t.Errorf("local batch %s becomes %s; want %s", local, got, want)
		}
		if checked := reportOf(t, edited, noFiles, onH100(nil)); checked.From() != to {
			t.Errorf("the edited file has %v; want %v", checked.From(), to)
		}
	}
}
