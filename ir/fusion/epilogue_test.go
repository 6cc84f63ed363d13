package fusion

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// A matmul takes no op as its epilogue if an op between them needs the matmul's sums or overwrites its operands. Ops
// between them include the ones of the matmul's own C operand and epilogue.
func TestProductsThatMayNotWait(t *testing.T) {
	const head = `model m
segment s x1
func s.forward
  input x : f32[batch=2,seq=4,hidden=8] at x+0
  input w : f32[hidden=8,ffn=8] at params+0
  input u : f32[hidden=8,ffn=8] at params+256
  a = add x, x : f32[batch=2,seq=4,hidden=8] !norm at workspace+0
`
	for _, c := range []struct{ name, ops, want string }{
		{"another begins from its sums", `  v = matmul a, w : f32[batch=2,seq=4,ffn=8] !norm at workspace+256
  p = matmul a, u : f32[batch=2,seq=4,ffn=8] !norm at workspace+512
  s = add p, v : f32[batch=2,seq=4,ffn=8] !norm at workspace+768
  g = gelu v : f32[batch=2,seq=4,ffn=8] !norm at workspace+1024
  return s, g
`, "v, s from v, gelu"},
		{"another begins from its sums, behind both",
			`  v = matmul a, w : f32[batch=2,seq=4,ffn=8] !norm at workspace+256
  g = gelu v : f32[batch=2,seq=4,ffn=8] !norm at workspace+1024
  p = matmul a, u : f32[batch=2,seq=4,ffn=8] !norm at workspace+512
  s = add p, v : f32[batch=2,seq=4,ffn=8] !norm at workspace+768
  return s, g
`, "v kept then g, s from v"},
		{"another ends where an operand lies", `  v = matmul a, w : f32[batch=2,seq=4,ffn=8] !norm at workspace+256
  p = matmul x, u : f32[batch=2,seq=4,ffn=8] !norm at workspace+512
  h = gelu p : f32[batch=2,seq=4,ffn=8] !norm at workspace+0
  g = gelu v : f32[batch=2,seq=4,ffn=8] !norm at workspace+1024
  return h, g
`, "v, p then h, gelu"},
		{"another ends elsewhere", `  v = matmul a, w : f32[batch=2,seq=4,ffn=8] !norm at workspace+256
  p = matmul x, u : f32[batch=2,seq=4,ffn=8] !norm at workspace+512
  h = gelu p : f32[batch=2,seq=4,ffn=8] !norm at workspace+768
  g = gelu v : f32[batch=2,seq=4,ffn=8] !norm at workspace+1024
  return h, g
`, "p then h, v then g"},
	} {
		m, err := ir.ParseModel(head + c.ops)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if got := endsText(m); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// endsText describes the C operand and the epilogue of each matmul of a model's first function on a CPU, and the ops
// after the first.
func endsText(m *ir.Model) string {
	f := m.Segments[0].Forward
	calls := Of(f, false, ir.Mesh{})
	var out []string
	for _, n := range calls.Nodes[1:] {
		text := n.Op.String()
		if n.Op == ir.OpMatMul {
			text = n.Outs[0].Name
		}
		c := calls.Call(n)
		if c.C != nil {
			text += " from " + c.C.Name
		}
		if c.KeepsResult {
			text += " kept"
		}
		if c.Epilogue != nil {
			text += " then " + c.Epilogue.Outs[0].Name
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
