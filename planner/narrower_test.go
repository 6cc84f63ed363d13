package planner

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// If nothing fits, narrower presets are tried and then state in bf16, whatever the job says about its precision. What
// the job has already, or what no program can be compiled with, is not tried.
func TestNarrowerState(t *testing.T) {
	whole := func(state string) string { return "--set train.precision=bf16 " + state }
	const grads, moments, both = "--set train.precision.grads=bf16 --set train.precision.reduce=bf16",
		"--set train.precision.moments=bf16",
		"--set train.precision.grads=bf16 --set train.precision.moments=bf16 --set train.precision.reduce=bf16"
	for _, c := range []struct {
		precision string
		want      []string
	}{
		{"null", []string{whole(grads), whole(moments), whole(both)}},
		{"bf16", []string{grads, moments, both}},
		{"fp8", []string{grads, moments, both}},
		{"fp16", nil},
		{"f32", []string{"--set train.precision=bf16", whole(grads), whole(moments), whole(both)}},
		{"{compute: bf16, grads: bf16, reduce: bf16}", []string{moments}},
		{"{compute: bf16, moments: bf16}", []string{grads}},
		{"{compute: bf16, grads: bf16, reduce: bf16, moments: bf16}", nil},
		{"{compute: bf16, params: f32}", nil},
	} {
		q := tinyQuestion(t, "1xh100", "train.precision="+c.precision)
		var got []string
		for _, trial := range q.narrowerState() {
			got = append(got, search.Change{Set: trial.Set}.Args())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.precision, got, c.want)
		}
	}
}

// tinyQuestion returns a small job on a cluster, with further fields set.
func tinyQuestion(t *testing.T, cluster string, sets ...string) *Question {
	t.Helper()
	overrides := []spec.Override{spec.SetFlag("cluster=" + cluster)}
	for _, s := range sets {
		overrides = append(overrides, spec.SetFlag(s))
	}
	text := "model: {model_type: gpt2, vocab_size: 256, n_positions: 64, n_embd: 32, n_layer: 2, n_head: 4}\n" +
		"train: {seq_len: 32, global_batch: 8, precision: f32}\n"
	q, err := Load("tiny.yaml", func(string) ([]byte, error) { return []byte(text), nil }, overrides...)
	if err != nil {
		t.Fatal(err)
	}
	return q
}
