package spec

import (
	"strings"
	"testing"
)

// The row that looking up does not train: transformers' where weights come from a folder, else none, and what the job
// says wins.
func TestPaddingRow(t *testing.T) {
	const job = "model: {model_type: opt, vocab_size: 64}\ntrain: {seq_len: 64, global_batch: 8}\ncluster: 4xcpu\n"
	for _, c := range []struct {
		sets string
		want int
	}{
		{"", 0},
		{"train.init=./opt", 2},
		{"train.init=./opt train.padding_row=trained", 0},
		{"train.padding_row=frozen", 2},
		{"train.init=./opt model.pad_token_id=0", 1},
		{"train.init=./opt model.pad_token_id=-1", 64}, // counted from the end, as PyTorch does
		{"train.init=./opt model.pad_token_id=64", 0},
		{"train.init=./opt model.pad_token_id=null", 0},
		{"train.init=./phi model.model_type=phi3", 0}, // 32000 is no row
		{"train.init=./gpt2 model.model_type=gpt2 model.pad_token_id=3", 0},
	} {
		j, err := tryLoad(job, strings.Fields(c.sets)...)
		if err != nil {
			t.Errorf("%s: %v", c.sets, err)
			continue
		}
		if j.Config.PaddingRow != c.want {
			t.Errorf("%s: row %d, want %d", c.sets, j.Config.PaddingRow, c.want)
		}
		if strings.Contains(string(j.Decides()), "padding") {
			t.Errorf("%s: the padding row is said to decide the plan", c.sets)
		}
	}
	for sets, want := range map[string]string{
		"model=gpt2-124m train.padding_row=frozen": "train.padding_row is frozen, but gpt2-124m has no padding row: " +
			"its pad_token_id is null or outside the vocabulary, or its family gpt2 has none; remove " +
			"train.padding_row, or set model.pad_token_id",
		"train.padding_row=no": `train.padding_row is "no"; use one of trained, frozen`,
	} {
		if _, err := tryLoad(job, strings.Fields(sets)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", sets, err, want)
		}
	}
}
