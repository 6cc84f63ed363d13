package codegen

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// alternating is a model whose local layers have a window and a rotary base of their own, with all that rope can carry.
const alternating = `model m
segment embed x1
func embed.forward
  input tokens : i32[batch=2,seq=8]
  param wte : f32[vocab=10,hidden=8] init=zeros
  y = embed wte, tokens : f32[batch=2,seq=8,hidden=8] !vocab
  return y
segment block x6
func block.forward
  input x : f32[batch=2,seq=8,hidden=8]
  param wq : f32[hidden=8,head=2,head_dim=4] init=zeros
  param gain : f32[head_dim=4] init=zeros
  param wo : f32[head=2,v_dim=4,hidden=8] init=zeros
  q0 = matmul x, wq : f32[batch=2,seq=8,head=2,head_dim=4] !attention
  qn = rms_norm q0, gain {eps=1e-06 unit} : f32[batch=2,seq=8,head=2,head_dim=4] !attention
  q = rope qn {dim=head_dim theta=10000 rope=longrope,1.25,1;2 layers=2l1f local=100} : f32[batch=2,seq=8,head=2,head_dim=4] !attention
  k0 = rope q0 {dim=head_dim theta=10000 rope=yarn,4,32,1,4096,1.25,exact turn=2} : f32[batch=2,seq=8,head=2,head_dim=4] !attention
  k = rename k0 {dim=seq to=k_seq} : f32[batch=2,k_seq=8,head=2,head_dim=4] !attention
  v1 = rope q0 {dim=head_dim theta=10000 rope=dynamic,2,4} : f32[batch=2,seq=8,head=2,head_dim=4] !attention
  v0 = rename v1 {dim=seq to=k_seq} : f32[batch=2,k_seq=8,head=2,head_dim=4] !attention
  v = rename v0 {dim=head_dim to=v_dim} : f32[batch=2,k_seq=8,head=2,v_dim=4] !attention
  a, l = attention q, k, v {scale=0.5 window=3 softcap=50 layers=2l1f causal alibi} : f32[batch=2,seq=8,head=2,v_dim=4], f32[batch=2,seq=8,head=2] !attention
  o = matmul a, wo : f32[batch=2,seq=8,hidden=8] !attention
  c = softcap o {softcap=30} : f32[batch=2,seq=8,hidden=8] !norm
  y = add x, c : f32[batch=2,seq=8,hidden=8] !norm
  return y
segment head x1
func head.forward
  input x : f32[batch=2,seq=8,hidden=8]
  input labels : i32[batch=2,seq=8]
  p = pick x, labels : f32[batch=2,seq=8] !norm
  s = reduce_sum p : f32[] !norm
  accumulate s {into=loss} !norm
  return
`

func generateModel(t *testing.T, text string) []byte {
	t.Helper()
	m, err := ir.ParseModel(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	plan := ir.SerialPlan(m.Segments[1].Count, 2, ir.FullPrecision(ir.F32))
	p, err := passes.Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, passes.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	src, err := Go(Input{Program: p, Package: "train", Job: "m", Hash: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// What differs between the layers of a segment is chosen at run time by the layer, forward and backward.
func TestLocalLayers(t *testing.T) {
	src := generateModel(t, alternating)
	if n := strings.Count(string(src), "var layers2l1f = rt.Layers{true, true, false}"); n != 1 {
		t.Errorf("the pattern is declared %d times", n)
	}
	for _, link := range []string{"C: 30.0}", "{Do: cpu.DoSoftcapGrad, ", "{Do: cpu.DoRMSNormDX, "} {
		if !strings.Contains(string(src), link) {
			t.Errorf("no chain has %s", link)
		}
	}
	for name, wants := range map[string][]string{
		"blockForward": {
			"rt.Pick(layers2l1f, b.Layer, 100.0, 10000.0), rt.Pick(layers2l1f, b.Layer, cpu.RopeScale{}, " +
				"cpu.RopeScale{",
			"kern.RMSNorm(qn, q0, gain, 32, 4, 1e-06, true)",
			"rt.Pick(layers2l1f, b.Layer, 3, 0),", "Softcap: 50.0,", "Alibi:    true,",
			"4, 2, cpu.Where{}, 10000.0, cpu.RopeScale{", "Exact:       true,", `Kind:        "yarn",`,
			"SeqLen:      8,",
			"Factors:   []float64{1.0, 2.0},", "= softcap o {",
		},
		"blockBackward": {
			"rt.Pick(layers2l1f, b.Layer, 100.0, 10000.0), rt.Pick(layers2l1f, b.Layer, cpu.RopeScale{}, " +
				"cpu.RopeScale{",
			"rt.Pick(layers2l1f, b.Layer, 3, 0),", "= softcap_grad ",
		},
	} {
		text := textOf(t, src, name)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s:\n%s", name, want, text)
			}
		}
	}
	few := textOf(t, generateModel(t, alternating), "blockForward")
	many := textOf(t, generateModel(t, strings.Replace(alternating, "block x6", "block x60", 1)), "blockForward")
	if strings.Count(few, "\n") != strings.Count(many, "\n") {
		t.Error("a block's function grows with the layers")
	}
}

// A model that no text can be sampled from has no entry for it.
func TestNoLogits(t *testing.T) {
	if strings.Contains(string(generateModel(t, alternating)), "headLogits") {
		t.Error("there is an entry for logits")
	}
	if !strings.Contains(string(generate(t, parallel)), "headLogits") {
		t.Error("there is no entry for logits")
	}
}
