package ir

import (
	"fmt"
	"strings"
	"testing"
)

// Each wrong attribute is refused with what would be right, and its right neighbour is not.
func TestAttributesMeanSomething(t *testing.T) {
	const attention = `
  input k : f32[batch=2,k_seq=8,head=2,head_dim=6]
  input v : f32[batch=2,k_seq=8,head=2,v_dim=4]
  o, l = attention q, k, v {scale=1%s} : f32[batch=2,seq=8,head=2,v_dim=4], f32[batch=2,seq=8,head=2]`
	const rope = `
  o = rope q {dim=head_dim theta=10000%s} : f32[batch=2,seq=8,head=2,head_dim=6]`
	const softcap = `
  o = softcap q%s : f32[batch=2,seq=8,head=2,head_dim=6]`
	const matmul = `
  input w : f32[head=2,head_dim=6,hidden=3]
  o = matmul q, w%s : f32[batch=2,seq=8,hidden=3]`
	for _, c := range []struct{ op, attrs, want string }{
		{matmul, " {in=e5m2,e4m3}", ""},
		{matmul, " {in=e4m3}", "in=e4m3; it must be two of e4m3 and e5m2, separated by a comma"},
		{matmul, " {in=e5m2,e5m2}", "no hardware multiplies e5m2 by e5m2"},
		{attention, " window=4 causal", ""},
		{attention, " window=4 layers=5l1f causal", ""},
		{attention, " window=4", "a window needs causal: bidirectional attention has no window"},
		{attention, " window=-4 causal", "window is -4; it must be a number of keys, or absent"},
		{attention, " layers=5l1f causal", "layers=5l1f has no effect without a window"},
		{attention, " softcap=50 alibi", ""},
		{attention, " softcap=-50", "softcap is -50; it must be positive, or absent"},
		{softcap, " {softcap=30}", ""},
		{softcap, "", "softcap is 0; it must be positive"},
		{rope, " turn=4", ""},
		{rope, " turn=3", "3 of the 6 elements of head_dim cannot be rotated in pairs"},
		{rope, " turn=8", "8 of the 6 elements of head_dim cannot be rotated in pairs"},
		{rope, " layers=1l1f local=100", ""},
		{rope, " layers=1l1f", "layers=1l1f has no effect without a local base"},
		{rope, " rope=longrope,1,1;2;3", ""},
		{rope, " rope=longrope,1,1;2 turn=4", ""},
		{rope, " rope=longrope,1,1;2", "longrope has 2 factors for 3 pairs"},
		{rope, " rope=ntk,2", `unknown kind "ntk"; use one of dynamic, linear, llama3, longrope, yarn`},
	} {
		f := mustFunc(t, "func f\n  input q : f32[batch=2,seq=8,head=2,head_dim=6]"+fmt.Sprintf(c.op, c.attrs)+
			"\n  return o")
		err := attrsMean(nil, f)
		if got := fmt.Sprint(err); err == nil != (c.want == "") || !strings.Contains(got, c.want) && err != nil {
			t.Errorf("%s: %v, want %q", c.attrs, err, c.want)
		}
	}
}

// Pairs of positions under each mask, counted one by one.
func TestMeanKeys(t *testing.T) {
	const n = 7
	inLayers := causalAttr(2)
	inLayers.Layers = "2l1f"
	for _, a := range []Attr{{}, causalAttr(0), causalAttr(3), causalAttr(1), causalAttr(n), causalAttr(100),
		inLayers} {
		layers, pairs := 1, 0
		if a.Layers != "" {
			layers = 3
		}
		for layer := range layers {
			for q := range n {
				for k := range n {
					hidden := a.Causal && k > q || a.Window > 0 && a.Layers.Local(layer) && q-k >= a.Window
					if !hidden {
						pairs++
					}
				}
			}
		}
		if got := meanKeys(&a, n) * n * float64(layers); got < float64(pairs)-1e-9 || got > float64(pairs)+1e-9 {
			t.Errorf("%v: %v pairs, want %d", &a, got, pairs)
		}
	}
}
