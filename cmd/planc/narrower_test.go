package main

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// What is offered where nothing fits: narrower presets, then state in bf16, whatever the job says of its precision; and
// nothing that a program is not made with, or that the job has already.
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
		j := tinyJob(t, "1xh100", "train.precision="+c.precision)
		if j.Train.Precision.IsZero() {
			j.Train.Precision = spec.Presets[spec.DefaultPrecision(j.cluster.GPU.Arch)]
		}
		var got []string
		for _, trial := range j.narrowerState() {
			got = append(got, search.Change{Set: trial.Set}.Args())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.precision, got, c.want)
		}
	}
}
