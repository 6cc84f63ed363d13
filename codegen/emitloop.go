package codegen

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// emitLoop writes an element-wise op, or a fused chain of them, as a call of the kernels' Chain over the result's
// elements. Dims that the same operands have are one; of what remains the last two are rows and columns of the chain,
// and the others are loops around it.
func emitLoop(e *emitter, n *ir.Node) {
	body := n.Body
	if n.Op != ir.OpFused {
		body = []*ir.Node{n}
	} else {
		for _, m := range body {
			e.body.Comment("\t" + opLine(m))
		}
	}
	l := &loop{e: e, n: n, body: body}
	l.split()
	l.nest(e.body, 0)
}

// loop is one nest: sizes of its loops, and for each operand which loops move it.
type loop struct {
	e     *emitter
	n     *ir.Node
	body  []*ir.Node
	sizes []int
	dims  [][]ir.Dim // of each loop
}

// split cuts the result's dims where the set of operands that have the dim changes.
func (l *loop) split() {
	out := l.n.Outs[0].Type
	last := ""
	for i, d := range out.Dims {
		has := ""
		for _, a := range l.n.Args {
			has += fmt.Sprint(a.Type.Has(d.Dim))
		}
		if i == 0 || has != last {
			l.sizes, l.dims = append(l.sizes, 1), append(l.dims, nil)
		}
		k := len(l.sizes) - 1
		l.sizes[k] *= l.e.count(out.Dims[i : i+1])
		l.dims[k] = append(l.dims[k], d.Dim)
		last = has
	}
	if len(l.sizes) == 0 {
		l.sizes, l.dims = []int{1}, [][]ir.Dim{nil}
	}
}

func loopVar(k int) string { return fmt.Sprintf("i%d", k) }

// nest writes loop k and those inside, or the chain.
func (l *loop) nest(b *jen.Group, k int) {
	if k+2 < len(l.sizes) {
		b.For(jen.Id(loopVar(k)).Op(":=").Range().Lit(l.sizes[k])).BlockFunc(func(b *jen.Group) { l.nest(b, k+1) })
		return
	}
	rows, cols := 1, l.sizes[len(l.sizes)-1]
	if k+1 < len(l.sizes) {
		rows = l.sizes[k]
	}
	spec := l.chain()
	name, narrow := "Chain", slices.ContainsFunc(spec.Operands, func(o chainOperand) bool { return o.Elem != "" })
	if narrow {
		name = "ChainOf"
	}
	args := []jen.Code{jen.Op("&").Id(l.e.chain(spec)), jen.Lit(rows), jen.Lit(cols)}
	for _, v := range l.operands() {
		x := jen.Id(l.e.name(v))
		if at := l.offset(v.Type, k); at != nil {
			x = x.Index(jen.Add(at).Op(":"))
		}
		if narrow {
			how := "Wide"
			if v.Type.Elem.Narrow() {
				how = "Half"
			}
			x = jen.Qual(cpuPath, how).Call(x)
		}
		args = append(args, x)
	}
	b.Id("kern").Dot(name).Call(args...)
}

// operands are what the chain reads or writes in memory: first what comes from outside, then results.
func (l *loop) operands() []*ir.Value { return append(slices.Clone(l.n.Args), l.n.Outs...) }

// offset is where the part of an operand begins that the loops before loop k have come to; nil: at its beginning.
func (l *loop) offset(t ir.Type, k int) jen.Code {
	stride := 1
	var sum *jen.Statement
	for i := len(l.sizes) - 1; i >= 0; i-- {
		if len(l.dims[i]) == 0 || !t.Has(l.dims[i][0]) {
			continue
		}
		if i < k {
			term := jen.Id(loopVar(i)).Op("*").Lit(stride)
			if sum != nil {
				term = term.Op("+").Add(sum)
			}
			sum = term
		}
		stride *= l.sizes[i]
	}
	if sum == nil {
		return nil
	}
	return sum
}

// A chainSpec is a cpu.Chain as it will be printed.
type chainSpec struct {
	Operands []chainOperand
	Links    []chainLink
}

type chainOperand struct{ At, Elem string }

type chainLink struct {
	Do       string
	To, A, B int
	C        float64
	Round    string
}

// chain describes the body: its operands by number, those that only it knows behind the others.
func (l *loop) chain() (c chainSpec) {
	number := map[*ir.Value]int{}
	for i, v := range l.operands() {
		number[v] = i
		c.Operands = append(c.Operands, chainOperand{l.where(v.Type), storage[v.Type.Elem]})
	}
	for _, n := range l.body {
		o := n.Outs[0]
		if _, ok := number[o]; !ok {
			number[o] = len(c.Operands)
			c.Operands = append(c.Operands, chainOperand{At: "Temp"})
		}
		link := chainLink{To: number[o], A: number[n.Args[0]], Round: storage[o.Type.Elem]}
		if len(n.Args) > 1 {
			link.B = number[n.Args[1]]
		}
		link.Do, link.C = links[n.Op](n)
		c.Links = append(c.Links, link)
	}
	return c
}

// where says which of the chain's rows and columns move an operand.
func (l *loop) where(t ir.Type) string {
	has := func(k int) bool { return k >= 0 && len(l.dims[k]) > 0 && t.Has(l.dims[k][0]) }
	last := len(l.sizes) - 1
	switch cols, rows := has(last), has(last-1); {
	case cols && (rows || last == 0):
		return "Whole"
	case cols:
		return "PerCol"
	case rows:
		return "PerRow"
	}
	return "One"
}

// links are the element-wise ops as package cpu names them, with the number that they take.
var links = map[ir.Op]func(n *ir.Node) (do string, c float64){
	ir.OpBroadcast: plain("Copy"), ir.OpCast: plain("Copy"), ir.OpAdd: plain("Add"), ir.OpSub: plain("Sub"), ir.OpMul: plain("Mul"),
	ir.OpScale: func(n *ir.Node) (string, float64) { return "Scale", n.Attr.Scale },
	ir.OpGelu:  plain("Gelu"), ir.OpGeluErf: plain("GeluErf"), ir.OpSilu: plain("Silu"), ir.OpRelu: plain("Relu"),
	ir.OpGeluGrad: plain("GeluGrad"), ir.OpGeluErfGrad: plain("GeluErfGrad"), ir.OpSiluGrad: plain("SiluGrad"), ir.OpReluGrad: plain("ReluGrad"),
	ir.OpSoftcap:     func(n *ir.Node) (string, float64) { return "Softcap", n.Attr.Softcap },
	ir.OpSoftcapGrad: func(n *ir.Node) (string, float64) { return "SoftcapGrad", n.Attr.Softcap },
}

func plain(do string) func(*ir.Node) (string, float64) {
	return func(*ir.Node) (string, float64) { return do, 0 }
}

// chain is the name of the variable that has a chain; equal ones share it.
func (g *generator) chain(c chainSpec) string {
	i := slices.IndexFunc(g.chains, func(o chainSpec) bool { return reflect.DeepEqual(o, c) })
	if i < 0 {
		i = len(g.chains)
		g.chains = append(g.chains, c)
	}
	return fmt.Sprintf("chain%d", i+1)
}

// chainTable declares the chains.
func (g *generator) chainTable(f *jen.File) {
	if len(g.chains) == 0 {
		return
	}
	f.Comment("Element-wise groups, done strip by strip: operands by number, in the order of the calls.")
	f.Var().DefsFunc(func(d *jen.Group) {
		for i, c := range g.chains {
			d.Id(fmt.Sprintf("chain%d", i+1)).Op("=").Qual(cpuPath, "Chain").Values(jen.Dict{
				jen.Id("Operands"): jen.Index().Qual(cpuPath, "Operand").ValuesFunc(func(v *jen.Group) {
					for _, o := range c.Operands {
						v.Add(o.literal())
					}
				}),
				jen.Id("Links"): jen.Index().Qual(cpuPath, "Link").CustomFunc(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, func(v *jen.Group) {
					for _, l := range c.Links {
						v.Add(l.literal())
					}
				}),
			})
		}
	})
}

func (o chainOperand) literal() jen.Code {
	at := jen.Id("At").Op(":").Qual(cpuPath, o.At)
	if o.Elem == "" {
		return jen.Values(at)
	}
	return jen.Values(at, jen.Id("Elem").Op(":").Qual(numPath, "Elem"+o.Elem))
}

func (l chainLink) literal() jen.Code {
	return jen.ValuesFunc(func(v *jen.Group) {
		v.Id("Do").Op(":").Qual(cpuPath, "Do"+l.Do)
		for _, f := range []struct {
			name string
			n    int
		}{{"To", l.To}, {"A", l.A}, {"B", l.B}} {
			if f.n != 0 {
				v.Id(f.name).Op(":").Lit(f.n)
			}
		}
		if l.C != 0 {
			v.Id("C").Op(":").Lit(l.C)
		}
		if l.Round != "" {
			v.Id("Round").Op(":").Qual(numPath, "Elem"+l.Round)
		}
	})
}
