package spec

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// What a model cannot follow is said where the job says it.
func TestSuits(t *testing.T) {
	const job = "model: gpt2-124m\ncluster: 1xcpu\ndata: {valid: [x.txt]}\ntrain:\n  seq_len: 64\n  global_batch: " +
		"8\n  steps: 1\n  eval: {sample: Once}\n"
	for _, tt := range []struct {
		config Config
		want   string
	}{
		{Config{Family: Llama, MaxPositions: 32}, ""},
		{Config{Name: "m", Family: GPT2, MaxPositions: 32},
			"job.yaml:5:12: train.seq_len is 64; m has 32 positions (n_positions): use at most that [BadBatch]"},
		{Config{Name: "m", Family: BERT, MaxPositions: 64, Bidirectional: true},
			"job.yaml:3:8: data.valid is given, but m, of family bert, is not trained by next-token prediction on " +
				"files: feed data through rt.Data, in a program of planc gen [Conflict]\n" +
				"job.yaml:8:18: train.eval.sample is given, but m, of family bert, does not predict the next token " +
				"and cannot continue a text: remove it [Conflict]"},
		{Config{Name: "m", Family: ViT, MaxPositions: 197},
			`job.yaml:5:12: train.seq_len is 64; an image of m has 197 positions: the class token and 196 patches; ` +
				`did you mean 197? [BadBatch]`},
	} {
		j, err := Load("job.yaml", files{"job.yaml": job}.read)
		if err != nil {
			t.Fatal(err)
		}
		j.Config = &tt.config
		var diags ir.Diags
		j.checkRecipe(&diags)
		got := ""
		if err := diags.Err(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.config.Family, got, tt.want)
		}
	}
}

// A prompt needs the tokenizer of the data.
func TestSampleOfTokensNeedsTheirTokenizer(t *testing.T) {
	const head = "model: {model_type: gpt2, vocab_size: %d, n_positions: 64, n_embd: 16, n_layer: 1, n_head: " +
		"2}\ncluster: 1xcpu\n" +
		"train:\n  seq_len: 64\n  global_batch: 8\n  steps: 1\n  eval: {sample: Once}\n"
	const want = "job.yaml:7:18: train.eval.sample is given, but train.BIN holds tokens of a vocabulary of 50257: " +
		"name their tokenizer in data.tokenizer (gpt2, cl100k, o200k, or the path of a tokenizer.json), or remove " +
		"train.eval.sample [Conflict]"
	for _, tt := range []struct {
		data  string
		vocab int
		want  string
	}{
		{"data: {train: train.BIN}\n", 50257, want},
		{"data: {train: [x.txt, train.BIN]}\n", 50257, want},
		{"data: {train: x.txt, valid: [train.BIN]}\n", 50257, want},
		{"data: {train: train.BIN}\n", 256, ""},
		{"data: {train: train.BIN, tokenizer: gpt2}\n", 50257, ""},
		{"data: {train: x.txt}\n", 50257, ""},
		{"", 50257, ""},
	} {
		_, err := Load("job.yaml", files{"job.yaml": fmt.Sprintf(head, tt.vocab) + tt.data}.read)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q with %d:\n got %s\nwant %s", tt.data, tt.vocab, got, tt.want)
		}
	}
}
