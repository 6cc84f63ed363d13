package planner

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

const paramGroupsJob = `
model: {model_type: gpt2, vocab_size: 64, n_positions: 32, n_embd: 32, n_layer: 2, n_head: 4}
train: {seq_len: 32, global_batch: 8, optimizer: {KEY: NAMES}}
cluster: 2xcpu
`

func loadParamGroups(key, names string) (*Question, error) {
	job := strings.NewReplacer("KEY", key, "NAMES", names).Replace(paramGroupsJob)
	read := func(string) ([]byte, error) { return []byte(job), nil }
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
		q, err := loadParamGroups("no_decay", names)
		if err != nil {
			t.Fatal(err)
		}
		var decayed []string
		eachParam(q.Model(), func(name string, w *ir.Param) {
			if w.Decay {
				decayed = append(decayed, name)
			}
		})
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
	_, err := loadParamGroups("no_decay", "[embed.wte, '*.bias', lm_head]")
	const want = `job.yaml:3:51: train.optimizer.no_decay: no parameter with weight decay matches "*.bias"; they are `
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `matches "lm_head"`) ||
		strings.Contains(err.Error(), `matches "embed.wte"`) {
		t.Errorf("%v", err)
	}
}

// The patterns scale the learning rates of the parameters whose names match, in all segments that use them.
func TestLearningRateMultipliers(t *testing.T) {
	q, err := loadParamGroups("lr_multipliers", "{embed.*: 0.25, '*.mlp.*': 2, head.ln.gain: 1}")
	if err != nil {
		t.Fatal(err)
	}
	text := q.Model().String()
	if m, err := ir.ParseModel(text); err != nil || m.String() != text || strings.Count(text, " lr=0.25") != 3 {
		t.Errorf("the model reads back as %v, %v", m, err)
	}
	scaled := map[string]int{}
	eachParam(q.Model(), func(name string, w *ir.Param) {
		want := 0.0
		switch {
		case strings.HasPrefix(name, "embed."):
			want = 0.25
		case strings.Contains(name, ".mlp."):
			want = 2
		}
		if w.LRMultiplier != want {
			t.Errorf("%s: %v, want %v", name, w.LRMultiplier, want)
		}
		if want != 0 {
			scaled[name]++
		}
	})
	if len(scaled) != 6 || scaled["embed.wte"] != 2 { // the head has the tied embedding too
		t.Errorf("scaled: %v", scaled)
	}
}

func TestLearningRateMultipliersNameParameters(t *testing.T) {
	const at = "job.yaml:3:51: train.optimizer.lr_multipliers: "
	for names, want := range map[string]string{
		"{lm_head: 2}": at + `no parameter matches "lm_head"; they are `,
		"{embed.*: 2, '*.wte': 3}": at + `"*.wte" and "embed.*" both match embed.wte; change them so that at most ` +
			"one matches a parameter",
		"{embed.*: 0}":  "train.optimizer.lr_multipliers.embed.* is 0; it must be more than 0",
		"[embed.*]":     "train.optimizer.lr_multipliers is a list; it must be a mapping",
		"{embed.*: ab}": "train.optimizer.lr_multipliers.embed.* is ",
	} {
		if _, err := loadParamGroups("lr_multipliers", names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", names, err)
		}
	}
}
