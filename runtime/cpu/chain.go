package cpu

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/num"
)

// Chain is a sequence of element-wise operations on rows × cols elements. All links are applied to a strip
// of each row at a time, so that intermediate results stay in the first-level cache. Generated code has one
// for each fused group.
type Chain struct {
	Operands []Operand
	Links    []Link
}

// Operand describes an operand of a chain.
type Operand struct {
	At   At
	Elem num.Elem // storage type; zero is the type of the kernels
}

// At says which elements an operand has.
type At uint8

const (
	Whole  At = iota // one for each of rows × cols
	PerCol           // cols, the same for every row
	PerRow           // one for each row
	One              // one for all
	Temp             // none: an intermediate result of the chain
)

// Link sets operand To, element by element or row by row, to Do of operands A, B and More and of numbers C
// and Base, rounded to Round.
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

// DoSiluMulGrad computes both gradients of DoSiluMul of b and More[0], times a. The gradient with respect
// to b goes to To, that with respect to More[0] to operand More[1]. All five operands are Whole, and
// More[1] is stored in the type of the kernels. The bits equal those of DoMul, DoSiluGrad and DoSilu.
const DoSiluMulGrad = numDos

// two reports whether an operation on elements reads b.
func (do Do) two() bool { return do >= DoGeluGrad || do >= DoAdd && do <= DoMul }

// Operations on whole rows. More are the operands after A and B.
const (
	DoLayerNorm   = numDos + 1 + iota // LayerNorm of a with gain b, eps c, and bias More[0] if there is one
	DoRMSNorm                         // RMSNorm of a with gain base+b, eps c
	DoLayerNormDX                     // LayerNormDX of dy a, x b and gain More[0], eps c
	DoRMSNormDX                       // RMSNormDX of dy a, x b and gain base+More[0], eps c
	// LogSumExpGrad of dl a, x b and l More[0]; More[1] limits the valid columns
	DoExpGrad
	DoPickGrad // PickGrad of dy a with the ids More[0]
	DoAddPick  // a, with dy b added at the ids More[0]
)

// stripLen is the number of elements of a row that the links process at a time. If links need whole rows,
// they process at most tallRows rows of together tallElems elements, but at least one row. maxOperands is
// the maximum number of operands of a chain.
const (
	stripLen    = 256
	tallRows    = 16
	tallElems   = 8 * stripLen
	maxOperands = 32
)

// Span is an operand in a call of a chain: elements in the type of the kernels, or the bit patterns of
// 16-bit numbers.
type Span[F Float] struct {
	wide  []F
	half  []uint16
	ids   []int32
	lo, n int // for a dim that is split over ranks: the start of this rank's part, and the number of valid elements
}

// Wide is an operand stored in the type of the kernels.
func Wide[F Float](x []F) Span[F] { return Span[F]{wide: x} }

// Half is an operand stored in 16 bits.
func Half[H num.Half](x []H) Span[float32] {
	return Span[float32]{half: unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x))}
}

// IDs is an operand of indices, one for each row, into a dim of which this rank has the ids lo to lo+n-1.
func IDs[F Float](ids []int32, lo, n int) Span[F] { return Span[F]{ids: ids, lo: lo, n: n} }

// Limit is an operand that holds the number of valid elements of each row; the others are padding.
func Limit[F Float](n int) Span[F] { return Span[F]{n: n} }

// Chain computes
//
//	for i, j := range [rows, cols] { for each link { to[i,j] = round(do(a[i,j], b[i,j], c)) } }
//
// over operands xs: those that are not Temp, in the chain's order.
func (k *Kernels[F]) Chain(c *Chain, rows, cols int, xs ...[]F) {
	r := newChainRun[F](c, rows, cols)
	for i, x := range xs {
		r.x[i].wide = x
	}
	r.call()
}

// ChainOf computes Chain with operands of which some are stored in 16 bits.
func (k *Kernels[F]) ChainOf(c *Chain, rows, cols int, xs ...Span[F]) {
	r := newChainRun[F](c, rows, cols)
	copy(r.x[:], xs)
	r.call()
}
