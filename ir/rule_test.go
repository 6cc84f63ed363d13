package ir

import (
	"fmt"
	"strings"
	"testing"
)

// uses prints what the rule says of a node: dim operands>results, with ! for whole, to NAME, = for what it merges.
func uses(n *Node) string {
	us, err := n.Uses()
	if err != nil {
		return err.Error()
	}
	var parts []string
	for _, u := range us {
		s := fmt.Sprintf("%s %s>%s", u.Dim, bitList(u.In), bitList(u.Out))
		if u.Whole {
			s += "!"
		}
		if u.To != "" {
			s += " to " + string(u.To)
		}
		if u.Merged != nil {
			s += fmt.Sprintf(" merges %v", u.Merged)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// typed makes values of types without sizes: "batch seq hidden".
func typed(ts ...string) []*Value {
	var vs []*Value
	for _, t := range ts {
		v := &Value{}
		for _, d := range strings.Fields(t) {
			v.Type.Dims = append(v.Type.Dims, Extent{Dim: Dim(d), Size: 2})
		}
		vs = append(vs, v)
	}
	return vs
}

func TestUses(t *testing.T) {
	for _, c := range []struct {
		op   Op
		attr Attr
		args []string
		outs []string
		want string
	}{
		{OpMatMul, Attr{}, []string{"batch seq hidden", "hidden ffn"}, []string{"batch seq ffn"},
			"batch 0>0; seq 0>0; hidden 0,1>none; ffn 1>0"},
		{OpMatMul, Attr{}, []string{"batch seq hidden", "batch seq ffn"}, []string{"hidden ffn"},
			"batch 0,1>none; seq 0,1>none; hidden 0>0; ffn 1>0"},
		{OpMatMul, Attr{}, []string{"expert slot hidden", "expert hidden ffn"}, []string{"expert slot ffn"},
			"expert 0,1>0; slot 0>0; hidden 0,1>none; ffn 1>0"},
		{OpMatMul, Attr{}, []string{"batch seq hidden", "ffn"}, []string{"batch seq ffn"},
			"matmul: dim hidden occurs in operands 0 and results none, which its rule b* m* k*, b* k* n* -> b* m* n* " +
				"does not allow"},
		{OpMatMul, Attr{}, []string{"batch"}, []string{"batch"},
			"matmul has 1 operands and 1 results, which do not fit its rule b* m* k*, b* k* n* -> b* m* n*"},
		{OpAdd, Attr{}, []string{"batch seq hidden", "hidden"}, []string{"batch seq hidden"},
			"batch 0>0; seq 0>0; hidden 0,1>0"},
		{OpReduceSum, Attr{}, []string{"batch seq"}, []string{""}, "batch 0>none; seq 0>none"},
		{OpBroadcast, Attr{}, []string{"batch"}, []string{"batch seq"}, "batch 0>0; seq none>0"},
		{OpRename, Attr{Dim: Seq, To: KSeq}, []string{"batch seq head"}, []string{"batch k_seq head"},
			"batch 0>0; seq 0>0 to k_seq; head 0>0"},
		{OpRename, Attr{}, []string{"batch seq"}, []string{"batch k_seq"},
			"rename: dim seq occurs in operands 0 and results none, which its rule m* a -> m* a' does not allow"},
		{OpRename, Attr{Dim: Seq, To: KSeq}, []string{"batch"}, []string{"batch"},
			"rename: 0 dims are a in its rule m* a -> m* a', which must be 1"},
		{OpSelect, Attr{Dim: Seq}, []string{"batch seq hidden"}, []string{"batch hidden"},
			"batch 0>0; seq 0>none!; hidden 0>0"},
		{OpLayerNorm, Attr{}, []string{"batch seq hidden", "hidden", "hidden"}, []string{"batch seq hidden"},
			"batch 0>0; seq 0>0; hidden 0,1,2>0!"},
		{OpLayerNorm, Attr{}, []string{"batch seq hidden", "hidden"}, []string{"batch seq hidden"},
			"batch 0>0; seq 0>0; hidden 0,1>0!"},
		{OpLayerNorm, Attr{}, []string{"batch seq hidden", "seq hidden"}, []string{"batch seq hidden"},
			"layer_norm: 2 dims are d in its rule m* !d, d, d -> m* d, which must be 1"},
		{OpRope, Attr{Dim: HeadDim}, []string{"batch seq head head_dim"}, []string{"batch seq head head_dim"},
			"batch 0>0; seq 0>0; head 0>0; head_dim 0>0!"},
		{OpEmbed, Attr{}, []string{"vocab hidden", "batch seq"}, []string{"batch seq hidden"},
			"vocab 0>none; hidden 0>0; batch 1>0; seq 1>0"},
		{OpEmbedGrad, Attr{}, []string{"batch seq hidden", "batch seq"}, []string{"vocab hidden"},
			"batch 0,1>none; seq 0,1>none; hidden 0>0; vocab none>0"},
		{OpPick, Attr{}, []string{"batch seq vocab", "batch seq"}, []string{"batch seq"},
			"batch 0,1>0; seq 0,1>0; vocab 0>none"},
		{OpAttention, Attr{}, []string{"batch seq head group head_dim", "batch k_seq head head_dim",
			"batch k_seq head v_dim"},
			[]string{"batch seq head group v_dim", "batch seq head group"},
			"batch 0,1,2>0,1; seq 0>0,1; head 0,1,2>0,1; group 0>0,1; head_dim 0,1>none!; k_seq 1,2>none; v_dim 2>0"},
		{OpDispatch, Attr{}, []string{"batch seq hidden", "batch seq"}, []string{"expert slot hidden"},
			// which is the merged one?
			"dispatch: 2 dims are x in its rule s* h*, s* k* -> x c(s) h*, which must be 1"},
		{OpDispatch, Attr{Dim: SlotDim}, []string{"batch seq hidden", "batch seq"}, []string{"expert slot hidden"},
			"batch 0,1>none; seq 0,1>none; hidden 0>0; expert none>0; slot none>0 merges [batch seq]"},
		{OpCombine, Attr{Dim: SlotDim}, []string{"expert slot hidden", "batch seq"}, []string{"batch seq hidden"},
			"expert 0>none; slot 0>none merges [batch seq]; hidden 0>0; batch 1>0; seq 1>0"},
	} {
		n := &Node{Op: c.op, Attr: c.attr, Args: typed(c.args...), Outs: typed(c.outs...)}
		if got := uses(n); got != c.want {
			t.Errorf("%s %q -> %q:\n got %s\nwant %s", c.op, c.args, c.outs, got, c.want)
		}
	}
}

// A dim that a result has is split for free, one that it lacks leaves a partial of the row's monoid.
func TestMonoids(t *testing.T) {
	for _, c := range []struct {
		op   Op
		i    int
		want Monoid
	}{{OpMatMul, 0, Sum}, {OpLogSumExp, 0, LSE}, {OpAttention, 0, WeightedLSE}, {OpAttention, 1, LSE},
		{OpPick, 0, Sum}} {
		if got := c.op.Monoid(c.i); got != c.want {
			t.Errorf("result %d of %s combines by %v, want %v", c.i, c.op, got, c.want)
		}
	}
}
