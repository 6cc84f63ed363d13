//go:build cuda && linux

package cuda

/*
#include "blaslt.h"
#include "open.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// BLAS is cuBLASLt, open.
type BLAS struct {
	Path    string
	Version string // 13.10.0
}

var openBLAS = sync.OnceValues(func() (*BLAS, error) { return loadBLAS(nil) })

// OpenBLAS opens cuBLASLt where the system finds it. It fails with a [*MissingError] or an [*OldError].
func OpenBLAS() (*BLAS, error) { return openBLAS() }

func loadBLAS(folders []string) (*BLAS, error) {
	path, err := load(LibraryNamed("cuBLASLt"), folders, "cublasLtCreate", func(l unsafe.Pointer) *C.char {
		return C.planc_bind_lt(l)
	})
	if err != nil {
		return nil, err
	}
	v := int(C.planc_cublasLtGetVersion())
	return &BLAS{Path: path, Version: fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)}, nil
}

// declined is the error of a call of cuBLASLt, nil if it succeeded.
func declined(r C.cublasStatus_t, call, what string, args ...any) error {
	if r == 0 {
		return nil
	}
	return &Error{Call: call, What: fmt.Sprintf(what, args...), Code: int(r), Name: C.GoString(C.planc_lt_name(r)),
		Text: C.GoString(C.planc_lt_text(r))}
}

// GEMMs makes products of matrices on the device that was bound when it was made. It is of one goroutine.
type GEMMs struct {
	h      C.cublasLtHandle_t
	chosen map[kind]choice
}

// kind is what the heuristic is asked: a product, wherever Bias, Aux and scales lie, with so many bytes of workspace.
type kind struct {
	GEMM
	workspace int64
}

// choice is what the heuristic said: a way of computing, or why there is none.
type choice struct {
	algo C.cublasLtMatmulAlgo_t
	err  error
}

// NewGEMMs begins on the bound device.
func (b *BLAS) NewGEMMs() (*GEMMs, error) {
	p := &GEMMs{chosen: map[kind]choice{}}
	if err := declined(C.planc_cublasLtCreate(&p.h), "cublasLtCreate", ""); err != nil {
		return nil, err
	}
	return p, nil
}

// Close ends it, after its last product.
func (p *GEMMs) Close() error {
	return declined(C.planc_cublasLtDestroy(p.h), "cublasLtDestroy", "")
}

// Value is the type of a matrix's elements, by cuBLASLt's number.
type Value int

// The types of matrices that are multiplied; sums are in f64 for ValueFloat64 and in f32 for the others.
const (
	ValueFloat32  Value = 0
	ValueFloat64  Value = 1
	ValueFloat16  Value = 2
	ValueBFloat16 Value = 14
	ValueE4M3     Value = 28
	ValueE5M2     Value = 29
)

// eight tells whether numbers of the type have 8 bits.
func (v Value) eight() bool { return v == ValueE4M3 || v == ValueE5M2 }

// Epilogue is what is done to a product before it is written, by cuBLASLt's number.
type Epilogue int

// The epilogues that transformers use. Bias is a vector over columns of D; Aux a matrix shaped as D: what GELU was
// applied to.
const (
	Plain        Epilogue = 1
	AddBias      Epilogue = 4
	GELU         Epilogue = 32 // x/2 * (1 + tanh(sqrt(2/π) * (x + 0.044715 x^3)))
	GELUBias     Epilogue = 36
	GELUAux      Epilogue = 160 // writes Aux
	GELUAuxBias  Epilogue = 164 // adds the bias, writes Aux
	GELUGrad     Epilogue = 192 // times GELU's derivative at Aux
	GELUGradBias Epilogue = 208 // and sums the rows into Bias
	BiasGrad     Epilogue = 256 // sums the rows of B into Bias
)

// GEMM is a kind of product of row-major matrices:
//
//	D[b,i,j] = alpha * sum over k of op(A)[b,i,k] * op(B)[b,k,j] + beta * D[b,i,j]
//
// then the epilogue. op(A) is [M, K] and stored so, or as [K, M] if TransposeA; op(B) is [K, N], or stored as [N, K].
type GEMM struct {
	Batch, M, N, K         int // Batch of 0 is 1; the matrices of a batch lie one behind the other
	TransposeA, TransposeB bool
	In, Out                Value // of A and B; of D, Aux and Bias
	TF32                   bool  // In is f32, and may be rounded to 10 bits of mantissa
	Epilogue               Epilogue
	// InB is the type of B where In, of A, has 8 bits, and ScaleA and ScaleB are where the number lies, in f32, that
	// each is multiplied with. Hopper wants such matrices with K the dim that lies together: A as it is, B transposed,
	// K a multiple of 16 and N of 8.
	InB            Value
	ScaleA, ScaleB Pointer
	// where the epilogue reads and writes; Aux has a matrix for each of a batch, Bias is one for all
	Bias, Aux Pointer
}

// sumsBias tells whether the epilogue sums rows into Bias, which is then of a product alone, not of a batch.
func (e Epilogue) sumsBias() bool { return e == GELUGradBias || e == BiasGrad }

// Alignment is how many bytes the addresses of A, B, D, Bias and Aux are multiples of. The heuristic expects 256 unless
// told.
const Alignment = 16

// GEMMPlan is a product for which a way of computing was chosen. It can run any number of times.
type GEMMPlan struct {
	product GEMM
	of      *GEMMs
	c       C.struct_planc_product
}

// Prepare chooses the way that cuBLASLt's heuristic puts first among those that get by with so many bytes of workspace.
// It is asked once for all products that differ in Bias, Aux and scales alone.
func (p *GEMMs) Prepare(x GEMM, workspace int64) (*GEMMPlan, error) {
	if x.M < 1 || x.N < 1 || x.K < 1 || x.Batch < 0 || x.Batch > 1 && x.Epilogue.sumsBias() ||
		(x.Bias|x.Aux|x.ScaleA|x.ScaleB)%Alignment != 0 ||
		x.In.eight() != (x.InB.eight() && x.ScaleA != 0 && x.ScaleB != 0) {
		panic(fmt.Sprintf("cuda: a product of %+v", x))
	}
	m := &GEMMPlan{product: x, of: p}
	err := m.describe()
	if err == nil {
		m.c.algo, err = p.choice(m, workspace)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the product %+v: %w", x, err), m.Close())
	}
	return m, nil
}

// describe fills in types, sizes and epilogue. cuBLASLt counts by columns, and so sees each matrix transposed: it
// computes D' = op(B)' op(A)', hence A and B trade places.
func (m *GEMMPlan) describe() error {
	x, inB := &m.product, m.product.In
	if x.In.eight() {
		inB = x.InB
	}
	compute, scale := C.cublasComputeType_t(C.planc_lt_compute_32f), C.cudaDataType_t(C.planc_lt_f32)
	switch {
	case x.In == ValueFloat64:
		compute, scale = C.planc_lt_compute_64f, C.planc_lt_f64
	case x.TF32:
		compute = C.planc_lt_compute_tf32
	}
	if err := declined(C.planc_cublasLtMatmulDescCreate(&m.c.desc, compute, scale), "cublasLtMatmulDescCreate",
		""); err != nil {
		return err
	}
	return errors.Join(
		m.layout(&m.c.a, inB, x.K, x.N, x.TransposeB), m.layout(&m.c.b, x.In, x.M, x.K, x.TransposeA),
		m.layout(&m.c.d, x.Out, x.M, x.N, false),
		m.say(C.planc_lt_trans_a, flag(x.TransposeB)), m.say(C.planc_lt_trans_b, flag(x.TransposeA)), m.scales(),
		m.epilogue())
}

func flag(b bool) int32 {
	if b {
		return 1 // CUBLAS_OP_T
	}
	return 0
}

// layout describes a row-major matrix that is rows × columns once transposed as said.
func (m *GEMMPlan) layout(l *C.cublasLtMatrixLayout_t, v Value, rows, columns int, transposed bool) error {
	if transposed {
		rows, columns = columns, rows
	}
	var made C.cublasLtMatrixLayout_t // C may not be given a place beside pointers of Go
	r := C.planc_cublasLtMatrixLayoutCreate(&made, C.cudaDataType(v), C.uint64_t(columns), C.uint64_t(rows),
		C.int64_t(columns))
	*l = made
	if err := declined(r, "cublasLtMatrixLayoutCreate", "%d × %d", rows, columns); err != nil || m.product.Batch <= 1 {
		return err
	}
	batch, stride := int32(m.product.Batch), int64(rows)*int64(columns)
	return errors.Join(
		declined(C.planc_cublasLtMatrixLayoutSetAttribute(*l, C.planc_lt_batch, unsafe.Pointer(&batch), 4),
			"cublasLtMatrixLayoutSetAttribute", "batch %d", batch),
		declined(C.planc_cublasLtMatrixLayoutSetAttribute(*l, C.planc_lt_stride, unsafe.Pointer(&stride), 8),
			"cublasLtMatrixLayoutSetAttribute", "stride %d", stride))
}

// say sets an attribute of the product.
func (m *GEMMPlan) say(what C.cublasLtMatmulDescAttributes_t, value any) error {
	var r C.cublasStatus_t
	switch v := value.(type) {
	case int32:
		r = C.planc_cublasLtMatmulDescSetAttribute(m.c.desc, what, unsafe.Pointer(&v), 4)
	case int64:
		r = C.planc_cublasLtMatmulDescSetAttribute(m.c.desc, what, unsafe.Pointer(&v), 8)
	case Pointer:
		r = C.planc_cublasLtMatmulDescSetAttribute(m.c.desc, what, unsafe.Pointer(&v), 8)
	}
	return declined(r, "cublasLtMatmulDescSetAttribute", "attribute %d", int(what))
}

// scales says where the scales of operands of 8 bits lie, of which cuBLASLt's first is B.
func (m *GEMMPlan) scales() error {
	if !m.product.In.eight() {
		return nil
	}
	return errors.Join(m.say(C.planc_lt_scale_a, m.product.ScaleB), m.say(C.planc_lt_scale_b, m.product.ScaleA))
}

// epilogue says the epilogue and where its operands lie.
func (m *GEMMPlan) epilogue() error {
	x := &m.product
	errs := []error{m.say(C.planc_lt_epilogue, int32(max(x.Epilogue, Plain)))}
	if x.Bias != 0 {
		errs = append(errs, m.say(C.planc_lt_bias, x.Bias), m.say(C.planc_lt_bias_type, int32(x.Out)))
	}
	if x.Aux != 0 {
		errs = append(errs, m.say(C.planc_lt_aux, x.Aux), m.say(C.planc_lt_aux_ld, int64(x.N)))
		if x.Batch > 1 {
			errs = append(errs, m.say(C.planc_lt_aux_stride, int64(x.M)*int64(x.N)))
		}
	}
	return errors.Join(errs...)
}

// choice is what the heuristic says, asked for the first product of its kind. What it could not be asked is asked
// again.
func (p *GEMMs) choice(m *GEMMPlan, workspace int64) (C.cublasLtMatmulAlgo_t, error) {
	k := m.kind(workspace)
	c, ok := p.chosen[k]
	if !ok {
		var algos []C.cublasLtMatmulAlgo_t
		algos, c.err = m.ways(workspace, 1)
		if c.err == nil {
			c.algo = algos[0]
		}
		if c.err == nil || none(c.err) {
			p.chosen[k] = c
		}
	}
	return c.algo, c.err
}

func (m *GEMMPlan) kind(workspace int64) kind {
	k := kind{m.product, workspace}
	k.Bias, k.Aux, k.ScaleA, k.ScaleB = min(k.Bias, 1), min(k.Aux, 1), min(k.ScaleA, 1), min(k.ScaleB, 1)
	return k
}

// errNoWay is the error of a product that the heuristic has no way to compute.
var errNoWay = errors.New("cuBLASLt has no way to compute it")

// none tells whether an error says that there is no way to compute a product.
func none(err error) bool {
	var e *Error
	return errors.Is(err, errNoWay) || errors.As(err, &e) && e.Code == C.planc_lt_not_supported
}

// mostWays is how many ways of computing the heuristic is asked for at most.
const mostWays = 8

// ways asks the heuristic for so many ways, the best first.
func (m *GEMMPlan) ways(workspace int64, n int) ([]C.cublasLtMatmulAlgo_t, error) {
	var pref C.cublasLtMatmulPreference_t
	if err := declined(C.planc_cublasLtMatmulPreferenceCreate(&pref), "cublasLtMatmulPreferenceCreate",
		""); err != nil {
		return nil, err
	}
	defer C.planc_cublasLtMatmulPreferenceDestroy(pref)
	if err := prefer(pref, workspace); err != nil {
		return nil, err
	}
	var results [mostWays]C.cublasLtMatmulHeuristicResult_t
	var got C.int
	r := C.planc_cublasLtMatmulAlgoGetHeuristic(m.of.h, m.c.desc, m.c.a, m.c.b, m.c.d, m.c.d, pref, C.int(n),
		&results[0], &got)
	if err := declined(r, "cublasLtMatmulAlgoGetHeuristic", ""); err != nil {
		return nil, err
	}
	var algos []C.cublasLtMatmulAlgo_t
	for i := range results[:got] {
		if results[i].state == 0 {
			algos = append(algos, results[i].algo)
		}
	}
	if got == 0 {
		return nil, fmt.Errorf("%w with %d bytes of workspace", errNoWay, workspace)
	}
	if len(algos) == 0 {
		return nil, declined(results[0].state, "cublasLtMatmulAlgoGetHeuristic", "")
	}
	return algos, nil
}

// prefer limits the choice to ways that get by with the workspace and with our alignment.
func prefer(pref C.cublasLtMatmulPreference_t, workspace int64) error {
	size := C.size_t(workspace)
	r := C.planc_cublasLtMatmulPreferenceSetAttribute(pref, C.planc_lt_workspace, unsafe.Pointer(&size), 8)
	errs := []error{declined(r, "cublasLtMatmulPreferenceSetAttribute", "%d bytes", workspace)}
	for what := C.cublasLtMatmulPreferenceAttributes_t(C.planc_lt_align_a); what <= C.planc_lt_align_d; what++ {
		align := C.uint32_t(Alignment)
		r := C.planc_cublasLtMatmulPreferenceSetAttribute(pref, what, unsafe.Pointer(&align), 4)
		errs = append(errs, declined(r, "cublasLtMatmulPreferenceSetAttribute", "alignment %d", Alignment))
	}
	return errors.Join(errs...)
}

// GEMM puts the product on the stream. The workspace is at least as large as the one it was prepared with; the
// matrices' addresses are multiples of [Alignment].
func (s *Stream) GEMM(m *GEMMPlan, alpha, beta float64, d, a, b Pointer, workspace Memory) error {
	return s.GEMMOn(m, alpha, beta, d, d, a, b, workspace)
}

// GEMMOn is Multiply with another matrix of D's shape and type in place of the D that is added to.
func (s *Stream) GEMMOn(m *GEMMPlan, alpha, beta float64, d, c, a, b Pointer, workspace Memory) error {
	if (d|c|a|b)%Alignment != 0 {
		panic(fmt.Sprintf("cuda: matrices at %#x, %#x, %#x and %#x are not aligned to %d bytes", d, c, a, b, Alignment))
	}
	r := C.planc_multiply(m.of.h, &m.c, C.int(flag(m.product.In == ValueFloat64)), C.double(alpha), C.double(beta),
		C.CUdeviceptr(b), C.CUdeviceptr(a), C.CUdeviceptr(c), C.CUdeviceptr(d), C.CUdeviceptr(workspace.Pointer),
		C.size_t(workspace.Bytes), s.s)
	if r == 0 {
		return nil
	}
	return declined(r, "cublasLtMatmul", "%+v", m.product)
}

// Close ends it, after its last run.
func (m *GEMMPlan) Close() error {
	var errs []error
	for _, l := range []C.cublasLtMatrixLayout_t{m.c.a, m.c.b, m.c.d} {
		if l != nil {
			errs = append(errs, declined(C.planc_cublasLtMatrixLayoutDestroy(l), "cublasLtMatrixLayoutDestroy", ""))
		}
	}
	if m.c.desc != nil {
		errs = append(errs, declined(C.planc_cublasLtMatmulDescDestroy(m.c.desc), "cublasLtMatmulDescDestroy", ""))
	}
	return errors.Join(errs...)
}
