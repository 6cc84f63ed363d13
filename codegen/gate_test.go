package codegen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/cpu"
	"pgregory.net/rapid"
)

// doNames are package cpu's names of the links that drawn bodies have.
var doNames = map[string]cpu.Do{"Silu": cpu.DoSilu, "SiluGrad": cpu.DoSiluGrad, "SiluMul": cpu.DoSiluMul,
	"SiluMulGrad": cpu.DoSiluMulGrad,
	"Mul":         cpu.DoMul, "Add": cpu.DoAdd, "Sub": cpu.DoSub, "Relu": cpu.DoRelu}

// drawBody writes a group of random ops, most of which gates have, on what all tokens have or what only some dims of
// theirs do. All that no op of the body takes is a result, and some of what others take.
func drawBody(t *rapid.T) string {
	const whole, elem = "f32[batch=2,seq=4,ffn=12]", "  input %s : f32[%s]\n"
	head, ins := "", []string{"a", "b", "c", "n"}
	for _, x := range ins {
		dims := "batch=2,seq=4,ffn=12"
		if x == "n" {
			dims = rapid.SampledFrom([]string{"ffn=12", "batch=2,seq=4"}).Draw(t, "narrow")
		}
		head += fmt.Sprintf(elem, x, dims)
	}
	full, used := slices.Clone(ins[:3]), map[string]bool{}
	pick := func(xs []string) string { return rapid.SampledFrom(xs).Draw(t, "operand") }
	var body, outs []string
	add := func(op string, args ...string) string {
		name := fmt.Sprintf("v%d", len(body))
		for _, a := range args {
			used[a] = true
		}
		body = append(body, fmt.Sprintf("    %s = %s %s : %s !mlp\n", name, op, strings.Join(args, ", "), whole))
		full = append(full, name)
		return name
	}
	product := func(x, y string) string {
		if rapid.Bool().Draw(t, "other way") {
			x, y = y, x
		}
		return add("mul", x, y)
	}
	for range rapid.IntRange(1, 7).Draw(t, "ops") {
		switch op := rapid.SampledFrom([]string{"silu", "mul", "silu_grad", "add", "sub", "relu", "gate", "gradient",
			"gradient"}).Draw(t, "op"); op {
		case "mul", "add", "sub":
			add(op, pick(full), pick(append(slices.Clone(full), "n")))
		case "silu_grad":
			add(op, pick(full), pick(full))
		case "gate":
			x := pick(full)
			product(add("silu", x), pick(full))
		case "gradient":
			x, dy, up := pick(full), pick(full), pick(full)
			product(add("silu", x), dy)
			if rapid.Bool().Draw(t, "gated") {
				up = add("silu", up)
			}
			add("silu_grad", product(dy, up), x)
		default:
			add(op, pick(full))
		}
	}
	var taken, types []string
	for _, x := range ins {
		if used[x] {
			taken = append(taken, x)
		}
	}
	for _, v := range full[3:] {
		if !used[v] || rapid.IntRange(0, 2).Draw(t, "result") == 0 {
			outs, types = append(outs, v), append(types, whole)
		}
	}
	return "model m\nsegment s x1\nfunc s.forward\n" + head + "  " + strings.Join(outs, ", ") + " = fused " +
		strings.Join(taken, ", ") +
		" : " + strings.Join(types, ", ") + " !mlp\n" + strings.Join(body, "") + "  return " + strings.Join(outs,
		", ") + "\n"
}

// bodyLoop is the loop of a model's first op.
func bodyLoop(m *ir.Model) *loop {
	n := m.Segments[0].Forward.Nodes[0]
	p := &ir.Program{Model: m, Plan: ir.SerialPlan(1, 2, ir.FullPrecision(ir.F32))}
	l := &loop{e: newEmitter(p, CPU, newDeclarations(p.Mesh)), n: n, body: n.Body}
	l.split()
	return l
}

// runBody does a chain for the loop's last two dims on drawn numbers, and returns its results.
func runBody[F cpu.Float](l *loop, spec chainSpec) (outs [][]F) {
	c := &cpu.Chain{}
	for _, o := range spec.Operands {
		c.Operands = append(c.Operands, cpu.Operand{At: map[string]cpu.At{"Whole": cpu.Whole, "PerCol": cpu.PerCol,
			"PerRow": cpu.PerRow, "One": cpu.One, "Temp": cpu.Temp}[o.At]})
	}
	for _, k := range spec.Links {
		c.Links = append(c.Links, cpu.Link{Do: doNames[k.Do], To: k.To, A: k.A, B: k.B, More: k.More, C: k.C})
	}
	rows, cols := 1, l.sizes[len(l.sizes)-1]
	if len(l.sizes) > 1 {
		rows = l.sizes[len(l.sizes)-2]
	}
	var xs [][]F
	for i := range l.operands() {
		r, x := rand.New(rand.NewPCG(uint64(i), 5)), make([]F, rows*cols)
		for j := range x {
			x[j] = F(4 * r.NormFloat64())
		}
		xs = append(xs, x)
	}
	cpu.Table[F]().Chain(c, rows, cols, xs...)
	return xs[len(l.n.Args):]
}

// plainChain is the loop's chain without gates.
func plainChain(l *loop) chainSpec {
	l.e.Target = GPU // which has none
	defer func() { l.e.Target = CPU }()
	return l.chain()
}

// Whatever else a group does, and whoever takes what a gate is made of, its gates have the bits of their parts.
func TestGatesAreTheirParts(t *testing.T) {
	defer cpu.Use(cpu.Best())
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		text := drawBody(t)
		m, err := ir.ParseModel(text)
		if err != nil {
			t.Fatal(err)
		}
		l := bodyLoop(m)
		spec, plain := l.chain(), plainChain(l)
		for _, k := range spec.Links {
			seen[k.Do]++
		}
		for isa := cpu.Portable; isa <= cpu.Best(); isa++ {
			cpu.Use(isa)
			sameBits(t, isa.String(), text, runBody[float32](l, spec), runBody[float32](l, plain))
			sameBits(t, isa.String()+" in f64", text, runBody[float64](l, spec), runBody[float64](l, plain))
		}
	})
	t.Log(seen)
	if seen["SiluMul"] == 0 || seen["SiluMulGrad"] == 0 {
		t.Errorf("drawn links %v", seen)
	}
}

func sameBits[F cpu.Float](t *rapid.T, how, text string, got, want [][]F) {
	for i := range want {
		for j, v := range want[i] {
			if math.Float64bits(float64(got[i][j])) != math.Float64bits(float64(v)) &&
				(v == v || got[i][j] == got[i][j]) {
				t.Fatalf("%s: element %d of result %d is %v, without gates %v\n%s", how, j, i, got[i][j], v, text)
			}
		}
	}
}

// Where a gate's product is itself of a gate, one of them is made as it stands.
func TestGateOfAGate(t *testing.T) {
	const body = `    s = silu a : f32[seq=4,ffn=12] !mlp
    db = mul s, dy : f32[seq=4,ffn=12] !mlp
    u = silu z : f32[seq=4,ffn=12] !mlp
    up = mul dy, u : f32[seq=4,ffn=12] !mlp
    da = silu_grad up, a : f32[seq=4,ffn=12] !mlp
`
	m, err := ir.ParseModel("model m\nsegment s x1\nfunc s.forward\n  input a : f32[seq=4,ffn=12]\n  input dy : " +
		"f32[seq=4,ffn=12]\n  input z : f32[seq=4,ffn=12]\n" +
		"  db, da = fused a, dy, z : f32[seq=4,ffn=12], f32[seq=4,ffn=12] !mlp\n" + body + "  return db, da\n")
	if err != nil {
		t.Fatal(err)
	}
	l := bodyLoop(m)
	var do []string
	spec := l.chain()
	for _, k := range spec.Links {
		do = append(do, k.Do)
	}
	if want := []string{"Silu", "SiluMulGrad"}; !slices.Equal(do, want) {
		t.Errorf("links %v, want %v", do, want)
	}
	if got, want := runBody[float64](l, spec), runBody[float64](l, plainChain(l)); !slices.EqualFunc(got, want,
		slices.Equal) {
		t.Errorf("%v, without gates %v", got, want)
	}
}
