package ir_test

import (
	"fmt"
	"strings"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
)

func FuzzTypeRoundTrip(f *testing.F) {
	for _, s := range []string{"f32[]", "f64[batch=8@dp,seq=64,hidden=32] sum@tp", "bf16[batch=8@dp@cp] lse@tp@ep",
		"i32[seq=16@zigzag:cp]", "f16[flat(b3)=64@dp]", "f32[a=1] wlse@x.0", "f32[seq=8@zigzag:]", "f32[a=+1]",
		"f32[a=1] @x", "]["} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ir.ParseType(s)
		if err != nil {
			return
		}
		b, err := ir.ParseType(a.String())
		if err != nil || !a.Equal(b) || a.String() != s {
			t.Errorf("%q printed as %q, which reads back as %q, %v", s, a, b, err)
		}
	})
}

func FuzzMesh(f *testing.F) {
	for _, s := range []string{"1", "dp=2", "tp.0=2 tp.1=2 dp=4 : tp=tp.0*tp.1 ep=tp.1*dp", "", "a=1", "a=2 :",
		"a=2 : b=a*a",
		"a=4611686018427387904 b=4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ir.ParseMesh(s)
		if err != nil {
			return
		}
		second, err := ir.ParseMesh(m.String())
		if err != nil || second.String() != m.String() {
			t.Errorf("%q printed as %q, which reads back as %q, %v", s, m, second, err)
		}
		if m.Size() < 1 {
			t.Errorf("%q has %d ranks", s, m.Size())
		}
	})
}

// smallGPT and smallLlama are models whose dumps have every kind of line.
var (
	smallGPT = spec.Config{Family: "gpt2", Vocab: 61, Hidden: 16, Layers: 2, Heads: 4, KVHeads: 4, HeadDim: 4, FFN: 32,
		MaxPositions: 10,
		Activation:   "gelu_new", NormEps: 1e-5, InitStd: 0.2, Tied: true, AttentionBias: true, MLPBias: true,
		DropAttn: 0.1, DropResid: 0.1}
	smallLlama = spec.Config{Family: "llama", Vocab: 59, Hidden: 16, Layers: 3, Heads: 8, KVHeads: 2, HeadDim: 4,
		FFN: 24, MaxPositions: 32,
		Activation: "silu", NormEps: 1e-5, InitStd: 0.2, RopeTheta: 10000}
)

func build(c spec.Config) *ir.Model {
	return zoo.Build("small "+c.Family, c, zoo.Options{SeqLen: 8, Batch: 1, Elem: ir.F32})
}

// stageConfigs are the models of stages: each with another kind of recompute; the last one's backward passes are split.
var stageConfigs = []spec.Config{smallGPT, smallLlama, smallLlama, smallLlama}

// stages are the texts of small programs after every pass.
func stages(tb testing.TB) (programs []string) {
	tb.Helper()
	for i, c := range stageConfigs {
		plan := ir.SerialPlan(c.Layers, 2, ir.FullPrecision(ir.F32))
		plan.DP, plan.TP, plan.SP, plan.Zero, plan.MicroBatches = 2, 4, i%2 == 1, i%2, 2
		plan.Recompute, plan.RecomputeLayers = []string{"full", "selective", "full", "none"}[i],
			[]int{1, c.Layers, c.Layers, 0}[i]
		plan.RecomputeEvery, plan.RecomputeSplit = []int{1, 1, 2, 1}[i], i == 0
		if i == 3 {
			plan.PP, plan.VPP, plan.Schedule, plan.AxisOrder, plan.StageLayers = 2, 2, "zb-v", "tp,dp,pp",
				fmt.Sprintf("0,%d,1,0", c.Layers-1)
		}
		dump := func(pass, text string) {
			if text == "(unchanged)\n" {
				text = programs[len(programs)-1]
			}
			programs = append(programs, text)
		}
		recipe := ir.Recipe{Optimizer: "adamw", Sides: i < 2, VocabMultiple: 8 * (i % 2), PrepostReceives: i == 3}
		if _, err := passes.Compile(build(c), plan, recipe, passes.Options{Dump: dump}); err != nil {
			tb.Fatal(err)
		}
	}
	return programs
}

func FuzzModel(f *testing.F) {
	for _, c := range []spec.Config{smallGPT, smallLlama} {
		f.Add(build(c).String())
	}
	f.Add("model m\nsegment s x1\nfunc s.forward\n  y = fused : f32[]\n    z = iota : f32[]\n  return y\n")
	f.Add("model m\nsegment s x1\nfunc s.forward\n  input : f32[]\n  return\n")
	f.Add("model m\nsegment s x1\nfunc s.forward\n  y, z = attention : f32[]\n  return\n")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ir.ParseModel(s)
		if err != nil {
			return
		}
		second, err := ir.ParseModel(m.String())
		if err != nil || second.String() != m.String() {
			t.Errorf("%q printed as %q: %v", s, m, err)
		}
		_ = m.Check()
		if c := m.Clone(); c.String() != m.String() {
			t.Errorf("the clone of %q prints as %q", m, c)
		}
	})
}

func FuzzProgram(f *testing.F) {
	for _, s := range stages(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ir.ParseProgram(s)
		if err != nil {
			return
		}
		if got := strings.TrimSuffix(p.String(), "\n"); got != strings.TrimSuffix(s, "\n") {
			t.Errorf("%q printed as %q", s, got)
		}
		_ = p.Check(passes.Names())
	})
}

// A program without stages has no place of any size; the checker says so of its values.
func TestPlacesWithoutStages(t *testing.T) {
	for _, place := range []string{ir.PlaceX, ir.PlaceSlot, ir.PlaceWork, ir.PlaceHead, ir.PlaceGrad, "other"} {
		if n := new(ir.Program).PlaceSize("block", place); n != 0 {
			t.Errorf("%s has %d bytes", place, n)
		}
	}
}

// The text form loses nothing of a program at any stage: the program read back passes the checker's every demand.
func TestProgramRoundTrip(t *testing.T) {
	texts := stages(t)
	names := passes.Names()
	if len(texts) != len(stageConfigs)*len(names) {
		t.Fatalf("%d dumps", len(texts))
	}
	for i, s := range texts {
		p, err := ir.ParseProgram(s)
		if err != nil {
			t.Errorf("after %s: %v", names[i%len(names)], err)
			continue
		}
		if p.String() != s {
			t.Errorf("after %s: reads back as\n%s, want\n%s", names[i%len(names)], p, s)
		}
		if err := p.Check(names[:i%len(names)+1]); err != nil {
			t.Errorf("after %s: %v", names[i%len(names)], err)
		}
	}
}

// Each line of a program can be damaged without a panic, and is reported by its number or as a whole.
func TestDamagedLines(t *testing.T) {
	texts := stages(t)
	lines := strings.Split(strings.TrimSuffix(texts[len(texts)-1], "\n"), "\n")
	for i, line := range lines[:len(lines)-1] {
		if i%4 > 0 && strings.HasPrefix(line, "  ") {
			continue // many lines are alike
		}
		for _, bad := range []string{"", "  ", line + " x", line + ",", line + "}", " " + line, line[:len(line)/2],
			strings.Replace(line, "=", " ", 1),
			strings.Replace(line, " : ", " ", 1), strings.ReplaceAll(line, "1", "-1")} {
			damaged := append(append(append([]string{}, lines[:i]...), bad), lines[i+1:]...)
			p, err := ir.ParseProgram(strings.Join(damaged, "\n"))
			if err == nil {
				_ = p.Check(passes.Names())
			}
			if err == nil && bad != line && p.String() != strings.Join(damaged, "\n")+"\n" {
				t.Errorf("line %d as %q reads as something else", i+1, bad)
			}
		}
	}
}
