package cpu

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/num"
)

// A Chain is element-wise operations on rows × cols elements, done link by link on a strip of each row at a time, so
// that what only the chain uses stays in the first cache. Generated code has one for each group of the compiler's.
type Chain struct {
	Operands []Operand
	Links    []Link
}

// An Operand says where the elements of a chain's operand are.
type Operand struct {
	At   At
	Elem num.Elem // how it is stored; zero is as the kernels compute
}

// At is which elements an operand has.
type At uint8

const (
	Whole  At = iota // one for each of rows × cols
	PerCol           // cols, for every row the same
	PerRow           // one for each row
	One              // one for all
	Temp             // none: the chain's own
)

// A Link sets operand To, element by element or row by row, to Do of operands A, B and More and of numbers C and Base,
// rounded to Round.
type Link struct {
	Do       Do
	To, A, B int
	More     []int
	C, Base  float64
	Round    num.Elem
}

// Do is an operation on elements a and b and a number c.
type Do uint8

const (
	DoCopy        Do = iota // a
	DoAdd                   // a + b
	DoSub                   // a - b
	DoMul                   // a * b
	DoScale                 // c * a
	DoGelu                  // Gelu(a)
	DoGeluErf               // GeluErf(a)
	DoSilu                  // Silu(a)
	DoSigmoid               // Sigmoid(a)
	DoRelu                  // Relu(a)
	DoSoftcap               // Softcap(a, c)
	DoGeluGrad              // a * GeluGrad(b)
	DoGeluErfGrad           // a * GeluErfGrad(b)
	DoSiluGrad              // a * SiluGrad(b)
	DoSigmoidGrad           // a * SigmoidGrad(b)
	DoReluGrad              // a * ReluGrad(b)
	DoSoftcapGrad           // a * SoftcapGrad(b, c)
	DoSiluMul               // Silu(a) * b
	numDos
)

// DoSiluMulGrad is the gradient of DoSiluMul of b and More[0] by both, which is a times theirs: To is that by b,
// operand More[1] that by More[0]. All five are whole, and More[1] is stored as the kernels compute. The bits are those
// of DoMul, DoSiluGrad and DoSilu.
const DoSiluMulGrad = numDos

// two tells whether an operation on elements reads b.
func (do Do) two() bool { return do >= DoGeluGrad || do >= DoAdd && do <= DoMul }

// Operations on rows, which a chain then does whole. More are the operands behind A and B.
const (
	DoLayerNorm   = numDos + 1 + iota // LayerNorm of a by gain b, eps c, and bias More[0] if there is one
	DoRMSNorm                         // RMSNorm of a by gain base+b, eps c
	DoLayerNormDX                     // LayerNormDX of dy a, x b and gain More[0], eps c
	DoRMSNormDX                       // RMSNormDX of dy a, x b and gain base+More[0], eps c
	// LogSumExpGrad of dl a, x b and l More[0], of which More[1] says how much is there
	DoExpGrad
	DoPickGrad // PickGrad of dy a by the ids More[0]
	DoAddPick  // a, with dy b added at the ids More[0]
)

// stripLen is how many elements of a row the links do at a time; where they need whole rows, they do at most tallRows
// of together tallElems, which is a row at least. maxOperands is how many operands a chain has at most.
const (
	stripLen    = 256
	tallRows    = 16
	tallElems   = 8 * stripLen
	maxOperands = 32
)

// Span is a chain's operand: elements as the kernels compute, or the patterns of numbers of 16 bits.
type Span[F Float] struct {
	wide  []F
	half  []uint16
	ids   []int32
	lo, n int // of what is split over ranks: where this rank's part begins, and how much is there
}

// Wide is an operand that is stored as the kernels compute.
func Wide[F Float](x []F) Span[F] { return Span[F]{wide: x} }

// Half is an operand of 16 bits.
func Half[H num.Half](x []H) Span[float32] {
	return Span[float32]{half: unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x))}
}

// IDs are indices, one a row, into a dim of which the ids lo to lo+n-1 are here.
func IDs[F Float](ids []int32, lo, n int) Span[F] { return Span[F]{ids: ids, lo: lo, n: n} }

// Limit is a number of elements of each row that are there; what lies behind is padding.
func Limit[F Float](n int) Span[F] { return Span[F]{n: n} }

// Chain is
//
//	for i, j := range [rows, cols] { for each link { to[i,j] = round(do(a[i,j], b[i,j], c)) } }
//
// over operands xs, those that are not the chain's own, in its order.
func (k *Kernels[F]) Chain(c *Chain, rows, cols int, xs ...[]F) {
	r := newChainRun[F](c, rows, cols)
	for i, x := range xs {
		r.x[i].wide = x
	}
	r.call()
}

// ChainOf is Chain, where some operands are stored in 16 bits.
func (k *Kernels[F]) ChainOf(c *Chain, rows, cols int, xs ...Span[F]) {
	r := newChainRun[F](c, rows, cols)
	copy(r.x[:], xs)
	r.call()
}
