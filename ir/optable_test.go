package ir

import (
	"slices"
	"testing"
)

// Every op's row is whole.
func TestOpTable(t *testing.T) {
	names := map[string]Op{}
	for _, o := range Ops() {
		row := o.Info()
		if row.name == "" || row.doc == "" || row.text == "" {
			t.Errorf("op %d %q: doc %q, rule %q: a row wants all three", o, row.name, row.doc, row.text)
			continue
		}
		if old, twice := names[row.name]; twice {
			t.Errorf("ops %d and %d are both called %s", old, o, row.name)
		}
		names[row.name] = o
		if got, ok := ParseOp(row.name); !ok || got != o {
			t.Errorf("%s reads back as %v", row.name, got)
		}
		checkRow(t, row)
	}
	if _, ok := ParseOp("nosuch"); ok {
		t.Error("there is an op nosuch")
	}
}

func checkRow(t *testing.T, row *opInfo) {
	t.Helper()
	for _, a := range row.attrs {
		if !slices.ContainsFunc(attrFields, func(f struct {
			name string
			get  func(*Attr) string
			set  func(*Attr, string) error
		}) bool {
			return f.name == a
		}) {
			t.Errorf("%s reads attribute %s, which attr.go does not have", row.name, a)
		}
	}
	for _, mask := range row.linear {
		if mask == 0 || mask >= 1<<row.rule.nIn {
			t.Errorf("%s is linear in operands %b, but has %d", row.name, mask, row.rule.nIn)
		}
	}
	if row.optional > row.rule.nIn || len(row.monoids) > 0 && len(row.monoids) != row.rule.nOut {
		t.Errorf("%s: %d operands may be left out, %d monoids; its rule is %s", row.name, row.optional,
			len(row.monoids), row.rule)
	}
	if row.view && (row.rule.nIn != 1 || row.rule.nOut != 1) {
		t.Errorf("%s is a view and has the rule %s", row.name, row.rule)
	}
	if row.effect && row.rule.nOut != 0 {
		t.Errorf("%s is an effect and has results", row.name)
	}
	if row.comm && (row.grad || len(row.linear) > 0) {
		t.Errorf("%s is a collective: passes insert it after gradients, and it takes partials in its own way", row.name)
	}
	for _, v := range row.rule.vars {
		if v.merges != 0 && !slices.ContainsFunc(row.rule.vars, func(o variable) bool { return o.name == v.merges }) {
			t.Errorf("%s: %c merges %c, which its rule lacks", row.name, v.name, v.merges)
		}
		if v.in == 0 && v.out == 0 {
			t.Errorf("%s: nothing has %c", row.name, v.name)
		}
	}
}

// No two attributes share a name, and each is read by some op.
func TestAttrFields(t *testing.T) {
	used := map[string]bool{}
	for _, o := range Ops() {
		for _, a := range o.Attrs() {
			used[a] = true
		}
	}
	seen := map[string]bool{}
	for _, f := range attrFields {
		if seen[f.name] || !used[f.name] {
			t.Errorf("attribute %s: twice %v, read %v", f.name, seen[f.name], used[f.name])
		}
		seen[f.name] = true
	}
}

func TestAttrRoundTrip(t *testing.T) {
	a := Attr{Dim: Seq, To: KSeq, Axes: []Axis{"dp", "tp"}, Monoid: LSE, Into: "loss", Eps: 1e-5, Scale: 0.125,
		Theta: 1e4, Rope: "llama3,8,1,4,8192",
		Drop: 0.1, Key: 3, AttentionMask: AttentionMask{Window: 4096, Causal: true}, Bucket: 2, Inverse: true}
	const want = "dim=seq to=k_seq axes=dp@tp monoid=lse into=loss eps=1e-05 scale=0.125 theta=10000 " +
		"rope=llama3,8,1,4,8192 drop=0.1 key=3 window=4096 bucket=2 causal inverse"
	if a.String() != want {
		t.Errorf("prints as %s, want %s", &a, want)
	}
	if got, err := parseAttr(want); err != nil || got.String() != want {
		t.Errorf("reads back as %v, %v", &got, err)
	}
	for s, want := range map[string]string{
		"nosuch=1":        `unknown attribute "nosuch"`,
		"eps=1 eps=2":     `attribute eps is given twice`,
		"eps=0":           `attribute eps=0 is the default; leave it out`,
		"eps=1e-5":        `attribute eps: "1e-5" is not a number in the form that planc prints`,
		"key=+1":          `attribute key: "+1" must be a whole number`,
		"monoid=product":  `attribute monoid: unknown monoid "product"`,
		"causal=yes":      `attribute causal=yes is the default; leave it out`,
		"dim=7":           `attribute dim: "7" is not a name`,
		"axes=dp@dp":      `attribute axes: axis dp occurs twice`,
		"dim=":            `attribute dim: a name must not be empty`,
		"window=4 causal": "",
	} {
		if _, err := parseAttr(s); want == "" != (err == nil) || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", s, err, want)
		}
	}
}

// A row's numbers: work of one rank is the logical work over the ranks, in total not less.
func TestWork(t *testing.T) {
	m, err := ParseMesh("tp=2 dp=2")
	if err != nil {
		t.Fatal(err)
	}
	f := mustFunc(t, `func f
  input x : f32[batch=4@dp,seq=8,hidden=6]
  input i : i32[batch=4@dp,seq=8]
  input e : f32[vocab=10,hidden=6]
  input w : f32[hidden=6,ffn=10@tp]
  input q : f32[batch=4@dp,seq=8,head=2@tp,head_dim=4]
  input k : f32[batch=4@dp,k_seq=8,head=2@tp,head_dim=4]
  y = matmul x, w : f32[batch=4@dp,seq=8,ffn=10@tp]
  r = rename y {dim=seq to=k_seq} : f32[batch=4@dp,k_seq=8,ffn=10@tp]
  z = embed e, i : f32[batch=4@dp,seq=8,hidden=6]
  o, l = attention q, k, k {scale=1 causal} : f32[batch=4@dp,seq=8,head=2@tp,head_dim=4], f32[batch=4@dp,seq=8,head=2@tp]
  g = all_gather y {dim=ffn axes=tp} : f32[batch=4@dp,seq=8,ffn=10]
  accumulate x {into=x}
  d = embed_grad z, i : f32[vocab=10,hidden=6]
  return`)
	want := []struct{ flops, bytes float64 }{
		{2 * 2 * 8 * 6 * 5, 4 * (2*8*6 + 6*5 + 2*8*5)},
		{0, 0},
		{0, 4 * (2*8 + 2*2*8*6)},
		{2 * 2 * 1 * (8 * 9 / 2) * (4 + 0), 4 * (4*2*8*4 + 2*8)},
		{0, 0},
		{2 * 8 * 6, 4 * 3 * 2 * 8 * 6},
		{2 * 8 * 6, 4 * (3*2*8*6 + 2*8)}, // of the table only the rows that are added to
	}
	for i, n := range f.Nodes {
		if n.Op == OpAttention { // its rule wants v_dim apart from head_dim; here only the count matters
			continue
		}
		if fl, b := n.Flops(m), n.Bytes(m); fl != want[i].flops || b != want[i].bytes {
			t.Errorf("%v: %g flops and %g bytes, want %g and %g", n, fl, b, want[i].flops, want[i].bytes)
		}
	}
}

func mustFunc(t *testing.T, text string) *Func {
	t.Helper()
	f, err := ParseFunc(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
