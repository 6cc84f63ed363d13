package price

import (
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
)

// Attention counts the pairs that attend to each other, and the formula says which.
func TestFormula(t *testing.T) {
	per := map[string]float64{}
	for want, cfg := range map[string]spec.Config{
		"6N + causal attention":   {},
		"6N + windowed attention": {Window: 8},
		"6N + attention":          {Bidirectional: true},
	} {
		base := llamaConfig(2, 16, 4, 2, 24, 61, 64)
		base.Window, base.Bidirectional = cfg.Window, cfg.Bidirectional
		m := zoo.Build("m", base, zoo.Options{SeqLen: 64, Batch: 1, Elem: ir.F32})
		if got := flopsFormula(m); got != want {
			t.Errorf("%+v: %q, want %q", cfg, got, want)
		}
		per[want] = modelFlops(m)
	}
	// 3 times forward, 2 layers, 2 contractions of 2 flops, 4 heads of 4 elements: 384 flops per pair.
	pairs := func(a, b string) float64 { return (per[a] - per[b]) / 384 }
	if got, want := pairs("6N + attention", "6N + causal attention"), 64.*63/2; got != want {
		t.Errorf("a mask saves %v pairs, want %v", got, want)
	}
	if got, want := pairs("6N + causal attention", "6N + windowed attention"), 56.*57/2; got != want {
		t.Errorf("a window saves %v pairs, want %v", got, want)
	}
}
