package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// machine writes kernels for one instruction set. A kernel is written once, over vectors of lanes float32s.
// The two sets differ in the width, in how the last, partial vector is masked, and in how 2^k is computed.
type machine struct {
	*build.Context
	suffix string // suffix of the functions' names
	lanes  int
	zmm    bool // AVX-512: 32 registers and mask registers

	loops int                       // number so far
	at    map[[8]uint64]int         // offsets of 64-byte constants in their table
	held  map[uint32]reg.VecVirtual // constants that the present function keeps in registers
}

func newMachine(zmm bool) *machine {
	m := &machine{Context: build.NewContext(), suffix: "AVX2", lanes: 8, zmm: zmm, at: map[[8]uint64]int{}}
	if zmm {
		m.suffix, m.lanes = "AVX512", 16
	}
	return m
}

// vec returns a new vector register.
func (m *machine) vec() reg.VecVirtual {
	if m.zmm {
		return m.ZMM()
	}
	return m.YMM()
}

// both returns the number of vectors that are processed together: unroll with AVX-512's registers, half of
// it with 16 registers.
func (m *machine) both(unroll int) int {
	if m.zmm {
		return unroll
	}
	return unroll / 2
}

// function begins a function. args is its Go parameter list and result, doc its loop.
func (m *machine) function(name, args, doc string) {
	m.Function(name + m.suffix)
	m.Attributes(nosplit)
	m.SignatureExpr("func" + args)
	m.Pragma("noescape")
	m.Doc(strings.Split(name+m.suffix+" computes"+doc, "\n")...)
	m.held = map[uint32]reg.VecVirtual{}
}

// hold keeps constants in registers for the rest of the function, if enough registers are free.
func (m *machine) hold(cs ...[]float32) {
	if !m.zmm {
		return
	}
	for _, list := range cs {
		for _, c := range list {
			b := math.Float32bits(c)
			if _, ok := m.held[b]; ok {
				continue
			}
			v := m.vec()
			m.VMOVUPS(m.word(b), v)
			m.held[b] = v
		}
	}
}

// c returns a constant as an operand: a register if it is held, else memory.
func (m *machine) c(x float32) operand.Op { return m.w(math.Float32bits(x)) }

// w returns a 32-bit constant in the same way.
func (m *machine) w(b uint32) operand.Op {
	if v, ok := m.held[b]; ok {
		return v
	}
	return m.word(b)
}

// word returns a vector of equal 32-bit words in memory.
func (m *machine) word(b uint32) operand.Mem { return m.quad(uint64(b)<<32 | uint64(b)) }

// quad returns a vector of equal 64-bit words in memory.
func (m *machine) quad(q uint64) operand.Mem { return m.quads([8]uint64{q, q, q, q, q, q, q, q}) }

// quads returns 64 bytes of memory, of which AVX2 uses the first half.
func (m *machine) quads(q [8]uint64) operand.Mem {
	at, ok := m.at[q]
	if !ok {
		at = 64 * len(m.at)
		m.at[q] = at
	}
	return operand.Mem{Symbol: operand.Symbol{Name: "vectorConstants", Static: true}, Base: reg.StaticBase, Disp: at}
}

// cv returns a constant in a register.
func (m *machine) cv(x float32) reg.VecVirtual {
	op := m.c(x)
	if v, ok := op.(reg.VecVirtual); ok {
		return v
	}
	v := m.vec()
	m.VMOVUPS(op, v)
	return v
}

// finish writes the table of constants.
func (m *machine) finish() {
	if len(m.at) > 0 {
		m.StaticGlobal("vectorConstants")
		m.DataAttributes(rodata)
		for _, block := range slices.SortedFunc(maps.Keys(m.at), func(a, b [8]uint64) int {
			return m.at[a] - m.at[b]
		}) {
			for i, q := range block {
				m.AddDatum(m.at[block]+8*i, operand.U64(q))
			}
		}
	}
	if !m.zmm {
		m.StaticGlobal("vectorMasks")
		m.DataAttributes(rodata)
		for i := range 16 {
			m.AddDatum(4*i, operand.U32(uint32(0)-uint32((15-i)/8)))
		}
	}
}

// zero returns a register of zeros.
func (m *machine) zero() reg.VecVirtual {
	v := m.vec()
	m.clear(v)
	return v
}

// clear zeroes a register.
func (m *machine) clear(v reg.VecVirtual) {
	if m.zmm {
		m.VPXORD(v, v, v)
	} else {
		m.VPXOR(v, v, v)
	}
}

// tail is the mask of the last vector's elements.
type tail struct {
	k reg.Register   // AVX-512: a mask register
	v reg.VecVirtual // AVX2: a vector
}

// tail computes the mask of the first n lanes. n is a register and is preserved.
func (m *machine) tail(n reg.Register) *tail {
	t := &tail{}
	if m.zmm {
		one, k := m.GP64(), m.K()
		m.MOVQ(operand.I64(-1), one)
		m.BZHIQ(n, one, one)
		m.KMOVW(one.As32(), k)
		t.k = k
		return t
	}
	base, at := m.GP64(), m.GP64()
	m.LEAQ(operand.Mem{Symbol: operand.Symbol{Name: "vectorMasks", Static: true}, Base: reg.StaticBase}, base)
	m.MOVQ(operand.I32(8), at)
	m.SUBQ(n, at)
	t.v = m.vec()
	m.VMOVUPS(operand.Mem{Base: base, Index: at, Scale: 4}, t.v)
	return t
}

// load reads a vector, or with a tail its first lanes and zeros.
func (m *machine) load(at operand.Mem, t *tail) reg.VecVirtual {
	v := m.vec()
	switch {
	case t == nil:
		m.VMOVUPS(at, v)
	case m.zmm:
		m.VMOVUPS_Z(at, t.k, v)
	default:
		m.VMASKMOVPS(at, t.v, v)
	}
	return v
}

// store writes a vector, or with a tail its first lanes.
func (m *machine) store(v reg.VecVirtual, at operand.Mem, t *tail) {
	switch {
	case t == nil:
		m.VMOVUPS(v, at)
	case m.zmm:
		m.VMOVUPS(v, t.k, at)
	default:
		m.VMASKMOVPS(v, t.v, at)
	}
}

// keep zeroes the lanes of v that a tail leaves out.
func (m *machine) keep(v reg.VecVirtual, t *tail) {
	switch {
	case t == nil:
	case m.zmm:
		m.VMOVAPS_Z(v, t.k, v)
	default:
		m.VANDPS(t.v, v, v)
	}
}

// pointer loads the address of a slice parameter.
func (m *machine) pointer(name string) reg.Register { return m.Load(m.Param(name).Base(), m.GP64()) }

// length loads the length of a slice parameter.
func (m *machine) length(name string) reg.Register { return m.Load(m.Param(name).Len(), m.GP64()) }

// scalar loads a float32 parameter into all lanes.
func (m *machine) scalar(name string) reg.VecVirtual {
	p, err := m.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	v := m.vec()
	m.VBROADCASTSS(p.Addr, v)
	return v
}

// labels returns a function that makes names of labels that no other loop of the function has.
func (m *machine) labels(what string) func(string) string {
	m.loops++
	id := m.loops
	return func(part string) string { return fmt.Sprintf("%s%d%s", what, id, part) }
}

// each runs body over n elements in vectors: unroll of them at once while there are as many, then single
// ones, then the masked rest. n is preserved.
func (m *machine) each(n reg.Register, unroll int, body func(at func(base reg.Register) operand.Mem, u int, t *tail)) {
	l := m.labels("each")
	i, left := m.GP64(), m.GP64()
	m.XORQ(i, i)
	m.MOVQ(n, left)
	step := func(k int, label string) {
		m.Label(l(label))
		m.CMPQ(left, operand.I32(k*m.lanes))
		m.JLT(operand.LabelRef(l(label + "end")))
		m.woven(k, func(u int) { body(m.place(i, u), u, nil) })
		m.ADDQ(operand.I32(k*m.lanes), i)
		m.SUBQ(operand.I32(k*m.lanes), left)
		m.JMP(operand.LabelRef(l(label)))
		m.Label(l(label + "end"))
	}
	if unroll > 1 {
		step(unroll, "many")
	}
	step(1, "one")
	m.TESTQ(left, left)
	m.JE(operand.LabelRef(l("done")))
	body(m.place(i, 0), 0, m.tail(left))
	m.Label(l("done"))
}

// woven interleaves the instructions that body writes for each u < k: all first instructions, all second
// ones, and so on. One after the other, waiting instructions would fill the processor's queues and hide the
// next vector's work.
func (m *machine) woven(k int, body func(u int)) {
	file, err := m.Result()
	if err != nil {
		panic(err)
	}
	all := file.Functions()
	f := all[len(all)-1]
	from := len(f.Nodes)
	var parts [][]ir.Node
	for u := range k {
		at := len(f.Nodes)
		body(u)
		parts = append(parts, slices.Clone(f.Nodes[at:]))
	}
	f.Nodes = f.Nodes[:from]
	for i := range parts[0] {
		for _, p := range parts {
			if _, ok := p[i].(*ir.Instruction); !ok {
				panic("vector: only instructions are woven")
			}
			f.AddNode(p[i])
		}
	}
}

// place returns the address of vector u after element i of a slice of float32s.
func (m *machine) place(i reg.Register, u int) func(reg.Register) operand.Mem {
	return func(base reg.Register) operand.Mem {
		return operand.Mem{Base: base, Index: i, Scale: 4, Disp: 4 * u * m.lanes}
	}
}
