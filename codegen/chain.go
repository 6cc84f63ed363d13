package codegen

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// chainSpec is a cpu.Chain in a form for printing.
type chainSpec struct {
	Operands []chainOperand
	Links    []chainLink
}

type chainOperand struct {
	At, Elem string
	Sides    int
}

type chainLink struct {
	Do       string
	To, A, B int
	More     []int
	C, Base  float64
	Round    string
}

// chain describes the body. Its operands are numbered: first values, then indices and limits, then temporaries.
func (l *loop) chain() (c chainSpec) {
	number := map[*ir.Value]int{}
	for i, v := range l.operands() {
		number[v] = i
		o := chainOperand{At: l.where(v.Type), Elem: storage[v.Type.Elem]}
		if l.e.gpu() {
			o.Sides = l.sidesOf(v)
		}
		c.Operands = append(c.Operands, o)
	}
	limit := l.extras(number, &c)
	picks := l.picks()
	l.inPlace(picks, number)
	gates := l.gates()
	for _, n := range l.body {
		o := n.Outs[0]
		if picks[o] != nil || within(gates, n) { // the op that adds it does both; the last one does all
			continue
		}
		if _, ok := number[o]; !ok {
			number[o] = len(c.Operands)
			c.Operands = append(c.Operands, chainOperand{At: "Temp"})
		}
		link := chainLink{To: number[o], Round: storage[o.Type.Elem]}
		args := n.Args
		switch pick, other := l.picked(n, picks); {
		case gates[n] != nil:
			link.Do, args = gates[n].do, gates[n].args
		case pick != nil:
			link.Do, args = "AddPick", []*ir.Value{other, pick.Args[0], pick.Args[1]}
		case rowLinks[n.Op] != nil:
			rowLinks[n.Op](n, &link)
			if n.Op == ir.OpPickGrad {
				args = []*ir.Value{n.Args[0], n.Args[0], n.Args[1]}
			}
		default:
			link.Do, link.C = links[n.Op](n)
		}
		link.operands(args, number)
		if n.Op == ir.OpLogSumExpGrad {
			link.More = append(link.More, limit)
		}
		c.Links = append(c.Links, link)
	}
	return c
}

// operands sets a link's, by number.
func (k *chainLink) operands(args []*ir.Value, number map[*ir.Value]int) {
	for i, v := range args {
		n, known := number[v]
		if !known {
			panic(fmt.Sprintf("codegen: link %s takes %s, which no link before it makes", k.Do, v.Name))
		}
		switch i {
		case 0:
			k.A = n
		case 1:
			k.B = n
		default:
			k.More = append(k.More, n)
		}
	}
}

// extras adds operands that are not numbers: indices, with the part of the dim that is here, and how much of a row is
// here. It returns the latter's number.
func (l *loop) extras(number map[*ir.Value]int, c *chainSpec) (limit int) {
	float := func(name string) *jen.Statement {
		if l.e.gpu() {
			return jen.Qual(gpuPath, name)
		}
		return jen.Qual(cpuPath, name).Index(jen.Id("float"))
	}
	for _, n := range l.body {
		switch n.Op {
		case ir.OpPickGrad:
			_, _, lo, size := l.e.lastDim(n.Outs[0].Type)
			number[n.Args[1]] = len(c.Operands)
			l.more = append(l.more, float("IDs").Call(jen.Id(l.e.name(n.Args[1])), lo, size))
			c.Operands = append(c.Operands, chainOperand{At: "PerRow"})
		case ir.OpLogSumExpGrad:
			_, _, _, size := l.e.lastDim(n.Args[1].Type)
			limit = len(c.Operands)
			l.more = append(l.more, float("Limit").Call(size))
			c.Operands = append(c.Operands, chainOperand{At: "One"})
		}
	}
	return limit
}

// picks returns the gradients of picks that only one addition of the body uses.
func (l *loop) picks() map[*ir.Value]*ir.Node {
	found := map[*ir.Value]*ir.Node{}
	for _, n := range l.body {
		if n.Op == ir.OpPickGrad && !slices.Contains(l.n.Outs, n.Outs[0]) {
			found[n.Outs[0]] = n
		}
	}
	for v := range found {
		users := 0
		for _, n := range l.body {
			if slices.Contains(n.Args, v) {
				users++
				if n.Op != ir.OpAdd || n.Args[0] == n.Args[1] {
					users = 2
				}
			}
		}
		if users != 1 {
			delete(found, v)
		}
	}
	return found
}

// picked returns the gradient of a pick that an addition adds to another value.
func (l *loop) picked(n *ir.Node, picks map[*ir.Value]*ir.Node) (pick *ir.Node, other *ir.Value) {
	if n.Op != ir.OpAdd {
		return nil, nil
	}
	for i, a := range n.Args {
		if p := picks[a]; p != nil && picks[n.Args[1-i]] == nil {
			return p, n.Args[1-i]
		}
	}
	return nil, nil
}

// inPlace lets what a pick is added to lie where the sum will, if nobody else uses it.
func (l *loop) inPlace(picks map[*ir.Value]*ir.Node, number map[*ir.Value]int) {
	for _, n := range l.body {
		_, other := l.picked(n, picks)
		to, numbered := number[n.Outs[0]]
		if other == nil || !numbered || slices.Contains(l.operands(), other) {
			continue
		}
		if !slices.ContainsFunc(l.body, func(m *ir.Node) bool { return m != n && slices.Contains(m.Args, other) }) {
			number[other] = to
		}
	}
}

// rowLinks are the ops on rows as package cpu names them.
var rowLinks = map[ir.Op]func(n *ir.Node, k *chainLink){
	ir.OpLayerNorm:   func(n *ir.Node, k *chainLink) { k.Do, k.C = "LayerNorm", n.Attr.Eps },
	ir.OpLayerNormDX: func(n *ir.Node, k *chainLink) { k.Do, k.C = "LayerNormDX", n.Attr.Eps },
	ir.OpRMSNorm:     func(n *ir.Node, k *chainLink) { k.Do, k.C, k.Base = "RMSNorm", n.Attr.Eps, one(n.Attr.Unit) },
	ir.OpRMSNormDX: func(n *ir.Node, k *chainLink) {
		k.Do, k.C, k.Base = "RMSNormDX", n.Attr.Eps, one(n.Attr.Unit)
	},
	ir.OpLogSumExpGrad: func(n *ir.Node, k *chainLink) { k.Do = "ExpGrad" },
	ir.OpPickGrad:      func(n *ir.Node, k *chainLink) { k.Do = "PickGrad" },
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// where returns which of the chain's rows and columns an operand has.
func (l *loop) where(t ir.Type) string {
	has := func(k int) bool { return k >= 0 && len(l.dims[k]) > 0 && t.Has(l.dims[k][0]) }
	last := len(l.sizes) - 1
	if !slices.ContainsFunc(l.dims, func(ds []ir.Dim) bool { return len(ds) > 0 }) {
		return "Whole" // all of one number, which has neither; a result is never One
	}
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
	ir.OpBroadcast: plain("Copy"), ir.OpCast: plain("Copy"), ir.OpAdd: plain("Add"), ir.OpSub: plain("Sub"),
	ir.OpMul:     plain("Mul"),
	ir.OpScale:   func(n *ir.Node) (string, float64) { return "Scale", n.Attr.Scale },
	ir.OpSigmoid: plain("Sigmoid"), ir.OpSigmoidGrad: plain("SigmoidGrad"),
	ir.OpGelu: plain("Gelu"), ir.OpGeluErf: plain("GeluErf"), ir.OpSilu: plain("Silu"), ir.OpRelu: plain("Relu"),
	ir.OpGeluGrad: plain("GeluGrad"), ir.OpGeluErfGrad: plain("GeluErfGrad"), ir.OpSiluGrad: plain("SiluGrad"),
	ir.OpReluGrad:    plain("ReluGrad"),
	ir.OpSoftcap:     func(n *ir.Node) (string, float64) { return "Softcap", n.Attr.Softcap },
	ir.OpSoftcapGrad: func(n *ir.Node) (string, float64) { return "SoftcapGrad", n.Attr.Softcap },
}

func plain(do string) func(*ir.Node) (string, float64) {
	return func(*ir.Node) (string, float64) { return do, 0 }
}

// chainTable declares the chains.
func (w *fileWriter) chainTable(f *jen.File) {
	if len(w.used.chains) == 0 {
		return
	}
	if w.Target.gpu() {
		w.groupTableGPU(f)
		return
	}
	f.Comment("Fused element-wise ops, computed strip by strip. Operands are numbered in the order of the calls.")
	f.Var().DefsFunc(func(d *jen.Group) {
		for i, c := range w.used.chains {
			d.Id(fmt.Sprintf("chain%d", i+1)).Op("=").Qual(cpuPath, "Chain").Values(jen.Dict{
				jen.Id("Operands"): jen.Index().Qual(cpuPath, "Operand").ValuesFunc(func(v *jen.Group) {
					for _, o := range c.Operands {
						v.Add(o.literal())
					}
				}),
				jen.Id("Links"): jen.Index().Qual(cpuPath, "Link").CustomFunc(jen.Options{Open: "{", Close: "}",
					Separator: ",", Multi: true}, func(v *jen.Group) {
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
		if len(l.More) > 0 {
			v.Id("More").Op(":").Index().Int().ValuesFunc(func(v *jen.Group) {
				for _, i := range l.More {
					v.Lit(i)
				}
			})
		}
		if l.C != 0 {
			v.Id("C").Op(":").Lit(l.C)
		}
		if l.Base != 0 {
			v.Id("Base").Op(":").Lit(l.Base)
		}
		if l.Round != "" {
			v.Id("Round").Op(":").Qual(numPath, "Elem"+l.Round)
		}
	})
}
