package planner

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

const noDecayJob = `
model: {model_type: gpt2, vocab_size: 64, n_positions: 32, n_embd: 32, n_layer: 2, n_head: 4}
train: {seq_len: 32, global_batch: 8, optimizer: {no_decay: NAMES}}
cluster: 2xcpu
`

func loadNoDecay(names string) (*Question, error) {
	read := func(string) ([]byte, error) { return []byte(strings.Replace(noDecayJob, "NAMES", names, 1)), nil }
	return Load("job.yaml", read, []spec.Override{}...)
}

// The patterns exempt the parameters whose names match, in all segments that use them.
func TestNoDecay(t *testing.T) {
	const all = "block.*.attn.k block.*.attn.o block.*.attn.q block.*.attn.v block.*.mlp.down block.*.mlp.up " +
		"embed.wpe embed.wte"
	for names, exempted := range map[string]string{
		"null":                       "",
		"[embed.wte]":                "embed.wte",
		"[embed.*]":                  "embed.wpe embed.wte",
		"[block.*.attn.*, '*.down']": "block.*.attn.k block.*.attn.o block.*.attn.q block.*.attn.v block.*.mlp.down",
		"['*']":                      all,
	} {
		q, err := loadNoDecay(names)
		if err != nil {
			t.Fatal(err)
		}
		var decayed []string
		eachDecayed(q.Model(), func(name string, _ *ir.Param) { decayed = append(decayed, name) })
		want := strings.Fields(all)
		want = slices.DeleteFunc(want, func(name string) bool {
			return slices.Contains(strings.Fields(exempted), name)
		})
		slices.Sort(decayed)
		decayed = slices.Compact(decayed)
		if !slices.Equal(decayed, want) {
			t.Errorf("%s: decay of %v, want %v", names, decayed, want)
		}
	}
}

func TestNoDecayNamesParameters(t *testing.T) {
	_, err := loadNoDecay("[embed.wte, '*.bias', lm_head]")
	const want = `job.yaml:3:51: train.optimizer.no_decay: no parameter with weight decay matches "*.bias"; they are `
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `matches "lm_head"`) ||
		strings.Contains(err.Error(), `matches "embed.wte"`) {
		t.Errorf("%v", err)
	}
}
