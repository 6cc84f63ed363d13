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

// BLAS is the open cuBLASLt library.
type BLAS struct {
	Path    string
	Version string // such as 13.10.0
}

var openBLAS = sync.OnceValues(func() (*BLAS, error) { return loadBLAS(nil) })

// OpenBLAS opens cuBLASLt from the system's library path. It fails with a [*MissingError] or an
// [*OldError].
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

// blasError returns the error of a call of cuBLASLt, and nil if the call succeeded.
func blasError(r C.cublasStatus_t, call, what string, args ...any) error {
	if r == 0 {
		return nil
	}
	return &Error{Call: call, What: fmt.Sprintf(what, args...), Code: int(r), Name: C.GoString(C.planc_lt_name(r)),
		Text: C.GoString(C.planc_lt_text(r))}
}

// GEMMs prepares GEMMs on the device that was bound when it was created. Only one goroutine may use it.
type GEMMs struct {
	h      C.cublasLtHandle_t
	chosen map[gemmKey]choice
}

// gemmKey is the input of the heuristic: a GEMM without the addresses of Bias, Aux and scales, and the
// bytes of workspace.
type gemmKey struct {
	GEMM
	workspace int64
}

// choice is the heuristic's result: an algorithm, or why there is none.
type choice struct {
	algo C.cublasLtMatmulAlgo_t
	err  error
}

// GEMMWorkspace is the memory limit of a GEMM algorithm, in bytes. cuBLASLt's documentation recommends this size for
// GPUs of 2022 and later.
const GEMMWorkspace = 32 << 20

// NewGEMMs creates GEMMs for the bound device.
func (b *BLAS) NewGEMMs() (*GEMMs, error) {
	p := &GEMMs{chosen: map[gemmKey]choice{}}
	if err := blasError(C.planc_cublasLtCreate(&p.h), "cublasLtCreate", ""); err != nil {
		return nil, err
	}
	return p, nil
}

// Close releases the library's handle. No GEMM may run afterwards.
func (p *GEMMs) Close() error {
	return blasError(C.planc_cublasLtDestroy(p.h), "cublasLtDestroy", "")
}

// Value is the type of a matrix's elements, with cuBLASLt's number.
type Value int

// The supported types of matrices. GEMMs of ValueFloat64 accumulate in f64, the others in f32.
const (
	ValueFloat32  Value = 0
	ValueFloat64  Value = 1
	ValueFloat16  Value = 2
	ValueBFloat16 Value = 14
	ValueE4M3     Value = 28
	ValueE5M2     Value = 29
)

// isFP8 reports whether the type is an FP8 format.
func (v Value) isFP8() bool { return v == ValueE4M3 || v == ValueE5M2 }

// Bytes returns the size of an element.
func (v Value) Bytes() int {
	switch v {
	case ValueFloat64:
		return 8
	case ValueFloat16, ValueBFloat16:
		return 2
	case ValueE4M3, ValueE5M2:
		return 1
	}
	return 4
}

// Epilogue is an operation on a GEMM's result before it is written, with cuBLASLt's number.
type Epilogue int

// The epilogues that transformers use. Bias is a vector over the columns of D. Aux is a matrix with the
// shape of D: the input of GELU.
const (
	Plain        Epilogue = 1
	AddBias      Epilogue = 4
	GELU         Epilogue = 32 // x/2 * (1 + tanh(sqrt(2/π) * (x + 0.044715 x^3)))
	GELUBias     Epilogue = 36
	GELUAux      Epilogue = 160 // writes Aux
	GELUAuxBias  Epilogue = 164 // adds the bias, writes Aux
	GELUGrad     Epilogue = 192 // multiplies by GELU's derivative at Aux
	GELUGradBias Epilogue = 208 // also sums the rows into Bias
	BiasGrad     Epilogue = 256 // sums the rows of B into Bias
)

// GEMM describes a multiplication of row-major matrices:
//
//	D[b,i,j] = alpha * sum over k of op(A)[b,i,k] * op(B)[b,k,j] + beta * C[b,i,j]
//
// followed by the epilogue. op(A) is [M, K] and stored as such, or as [K, M] if TransposeA. op(B) is [K,
// N], or stored as [N, K] if TransposeB.
type GEMM struct {
	Batch, M, N, K         int // Batch 0 means 1; the matrices of a batch are consecutive
	TransposeA, TransposeB bool
	In, Out                Value // types of A and B; of D, Aux and Bias
	TF32                   bool  // In is f32, and may be rounded to 10 bits of mantissa
	Epilogue               Epilogue
	// For FP8, In is the type of A and InB that of B, and ScaleA and ScaleB are the addresses of their f32
	// scale factors. Hopper requires that K is the contiguous dim of both (A as it is, B transposed), that K is
	// a multiple of 16 and N of 8.
	InB            Value
	ScaleA, ScaleB Pointer
	// addresses of the epilogue's operands; Aux has one matrix for each of a batch, Bias is shared
	Bias, Aux Pointer
}

// HasBias and HasAux report whether the epilogue has these operands.
func (e Epilogue) HasBias() bool { return e&AddBias != 0 || e.sumsBias() }
func (e Epilogue) HasAux() bool  { return e&(GELUAux&^GELU) != 0 }

// sumsBias reports whether the epilogue sums rows into Bias. This is not supported with a batch.
func (e Epilogue) sumsBias() bool { return e == GELUGradBias || e == BiasGrad }

// Alignment is the alignment in bytes of the addresses of A, B, D, Bias and Aux. The heuristic assumes 256
// unless it is set.
const Alignment = 16

// GEMMPlan is a GEMM with a chosen algorithm. It can run any number of times.
type GEMMPlan struct {
	gemm  GEMM
	gemms *GEMMs
	c     C.struct_planc_product
}

// Prepare chooses the first algorithm that cuBLASLt's heuristic suggests for the given bytes of workspace.
// The heuristic is queried once for all GEMMs that differ only in the addresses of Bias, Aux and scales.
func (p *GEMMs) Prepare(x GEMM, workspace int64) (*GEMMPlan, error) {
	if x.M < 1 || x.N < 1 || x.K < 1 || x.Batch < 0 || x.Batch > 1 && x.Epilogue.sumsBias() ||
		(x.Bias|x.Aux|x.ScaleA|x.ScaleB)%Alignment != 0 ||
		x.In.isFP8() != (x.InB.isFP8() && x.ScaleA != 0 && x.ScaleB != 0) {
		panic(fmt.Sprintf("cuda: invalid GEMM %+v", x))
	}
	m := &GEMMPlan{gemm: x, gemms: p}
	err := m.describe()
	if err == nil {
		m.c.algo, err = p.choice(m, workspace)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("GEMM %+v: %w", x, err), m.Close())
	}
	return m, nil
}

// describe sets types, sizes and the epilogue. cuBLASLt is column-major and therefore sees each matrix
// transposed: it computes D' = op(B)' op(A)', so that A and B swap places.
func (m *GEMMPlan) describe() error {
	x, inB := &m.gemm, m.gemm.In
	if x.In.isFP8() {
		inB = x.InB
	}
	compute, scale := C.cublasComputeType_t(C.planc_lt_compute_32f), C.cudaDataType_t(C.planc_lt_f32)
	switch {
	case x.In == ValueFloat64:
		compute, scale = C.planc_lt_compute_64f, C.planc_lt_f64
	case x.TF32:
		compute = C.planc_lt_compute_tf32
	}
	if err := blasError(C.planc_cublasLtMatmulDescCreate(&m.c.desc, compute, scale), "cublasLtMatmulDescCreate",
		""); err != nil {
		return err
	}
	return errors.Join(
		m.layout(&m.c.a, inB, x.K, x.N, x.TransposeB), m.layout(&m.c.b, x.In, x.M, x.K, x.TransposeA),
		m.layout(&m.c.d, x.Out, x.M, x.N, false),
		m.setAttribute(C.planc_lt_trans_a, flag(x.TransposeB)), m.setAttribute(C.planc_lt_trans_b,
			flag(x.TransposeA)), m.scales(),
		m.epilogue())
}

func flag(b bool) int32 {
	if b {
		return 1 // CUBLAS_OP_T
	}
	return 0
}

// layout describes a row-major matrix that has rows × columns after the transposition.
func (m *GEMMPlan) layout(l *C.cublasLtMatrixLayout_t, v Value, rows, columns int, transposed bool) error {
	if transposed {
		rows, columns = columns, rows
	}
	var made C.cublasLtMatrixLayout_t // cgo does not allow passing the address of a struct that holds Go pointers
	r := C.planc_cublasLtMatrixLayoutCreate(&made, C.cudaDataType(v), C.uint64_t(columns), C.uint64_t(rows),
		C.int64_t(columns))
	*l = made
	if err := blasError(r, "cublasLtMatrixLayoutCreate", "%d × %d", rows, columns); err != nil || m.gemm.Batch <= 1 {
		return err
	}
	batch, stride := int32(m.gemm.Batch), int64(rows)*int64(columns)
	return errors.Join(
		blasError(C.planc_cublasLtMatrixLayoutSetAttribute(*l, C.planc_lt_batch, unsafe.Pointer(&batch), 4),
			"cublasLtMatrixLayoutSetAttribute", "batch %d", batch),
		blasError(C.planc_cublasLtMatrixLayoutSetAttribute(*l, C.planc_lt_stride, unsafe.Pointer(&stride), 8),
			"cublasLtMatrixLayoutSetAttribute", "stride %d", stride))
}

// setAttribute sets an attribute of the GEMM.
func (m *GEMMPlan) setAttribute(what C.cublasLtMatmulDescAttributes_t, value any) error {
	var r C.cublasStatus_t
	switch v := value.(type) {
	case int32:
		r = C.planc_cublasLtMatmulDescSetAttribute(m.c.desc, what, unsafe.Pointer(&v), 4)
	case int64:
		r = C.planc_cublasLtMatmulDescSetAttribute(m.c.desc, what, unsafe.Pointer(&v), 8)
	case Pointer:
		r = C.planc_cublasLtMatmulDescSetAttribute(m.c.desc, what, unsafe.Pointer(&v), 8)
	}
	return blasError(r, "cublasLtMatmulDescSetAttribute", "attribute %d", int(what))
}

// scales sets the addresses of FP8 scale factors. cuBLASLt's first operand is B.
func (m *GEMMPlan) scales() error {
	if !m.gemm.In.isFP8() {
		return nil
	}
	return errors.Join(m.setAttribute(C.planc_lt_scale_a, m.gemm.ScaleB), m.setAttribute(C.planc_lt_scale_b,
		m.gemm.ScaleA))
}

// epilogue sets the epilogue and the addresses of its operands.
func (m *GEMMPlan) epilogue() error {
	x := &m.gemm
	errs := []error{m.setAttribute(C.planc_lt_epilogue, int32(max(x.Epilogue, Plain)))}
	if x.Bias != 0 {
		errs = append(errs, m.setAttribute(C.planc_lt_bias, x.Bias), m.setAttribute(C.planc_lt_bias_type, int32(x.Out)))
	}
	if x.Aux != 0 {
		errs = append(errs, m.setAttribute(C.planc_lt_aux, x.Aux), m.setAttribute(C.planc_lt_aux_ld, int64(x.N)))
		if x.Batch > 1 {
			errs = append(errs, m.setAttribute(C.planc_lt_aux_stride, int64(x.M)*int64(x.N)))
		}
	}
	return errors.Join(errs...)
}

// choice returns the heuristic's result, which is cached by kind. If the query itself fails, the next call
// repeats it.
func (p *GEMMs) choice(m *GEMMPlan, workspace int64) (C.cublasLtMatmulAlgo_t, error) {
	k := kindOf(m.gemm, workspace)
	c, ok := p.chosen[k]
	if !ok {
		var algos []C.cublasLtMatmulAlgo_t
		algos, c.err = m.algorithms(workspace, 1)
		if c.err == nil {
			c.algo = algos[0]
		}
		if c.err == nil || IsUnsupported(c.err) {
			p.chosen[k] = c
		}
	}
	return c.algo, c.err
}

// Algorithm is an algorithm of cuBLASLt, in the form in which it may be stored. It is valid for the version of cuBLASLt
// that has chosen it.
type Algorithm [C.sizeof_cublasLtMatmulAlgo_t]byte

// Use makes all GEMMs of a kind that are prepared later use an algorithm. They differ from x only in the addresses of
// Bias, Aux and scales.
func (p *GEMMs) Use(x GEMM, workspace int64, a Algorithm) {
	var c choice
	copy((*Algorithm)(unsafe.Pointer(&c.algo))[:], a[:])
	p.chosen[kindOf(x, workspace)] = c
}

// Algorithm returns the algorithm of the GEMM.
func (m *GEMMPlan) Algorithm() Algorithm { return *(*Algorithm)(unsafe.Pointer(&m.c.algo)) }

func kindOf(x GEMM, workspace int64) gemmKey {
	k := gemmKey{x, workspace}
	k.Bias, k.Aux, k.ScaleA, k.ScaleB = min(k.Bias, 1), min(k.Aux, 1), min(k.ScaleA, 1), min(k.ScaleB, 1)
	return k
}

// errNoAlgorithm is the error of a GEMM for which the heuristic finds no algorithm.
var errNoAlgorithm = errors.New("cuBLASLt has no algorithm for it")

// IsUnsupported reports whether an error says that cuBLASLt has no algorithm for a GEMM.
func IsUnsupported(err error) bool {
	var e *Error
	return errors.Is(err, errNoAlgorithm) || errors.As(err, &e) && e.Code == C.planc_lt_not_supported
}

// maxAlgorithms is the maximum number of algorithms that the heuristic is asked for.
const maxAlgorithms = 8

// algorithms asks the heuristic for up to n algorithms, the best first.
func (m *GEMMPlan) algorithms(workspace int64, n int) ([]C.cublasLtMatmulAlgo_t, error) {
	var pref C.cublasLtMatmulPreference_t
	if err := blasError(C.planc_cublasLtMatmulPreferenceCreate(&pref), "cublasLtMatmulPreferenceCreate",
		""); err != nil {
		return nil, err
	}
	defer C.planc_cublasLtMatmulPreferenceDestroy(pref)
	if err := prefer(pref, workspace); err != nil {
		return nil, err
	}
	var results [maxAlgorithms]C.cublasLtMatmulHeuristicResult_t
	var got C.int
	r := C.planc_cublasLtMatmulAlgoGetHeuristic(m.gemms.h, m.c.desc, m.c.a, m.c.b, m.c.d, m.c.d, pref, C.int(n),
		&results[0], &got)
	if err := blasError(r, "cublasLtMatmulAlgoGetHeuristic", ""); err != nil {
		return nil, err
	}
	var algos []C.cublasLtMatmulAlgo_t
	for i := range results[:got] {
		if results[i].state == 0 {
			algos = append(algos, results[i].algo)
		}
	}
	if got == 0 {
		return nil, fmt.Errorf("%w with %d bytes of workspace", errNoAlgorithm, workspace)
	}
	if len(algos) == 0 {
		return nil, blasError(results[0].state, "cublasLtMatmulAlgoGetHeuristic", "")
	}
	return algos, nil
}

// prefer restricts the heuristic to algorithms that work with the workspace and with our alignment.
func prefer(pref C.cublasLtMatmulPreference_t, workspace int64) error {
	size := C.size_t(workspace)
	r := C.planc_cublasLtMatmulPreferenceSetAttribute(pref, C.planc_lt_workspace, unsafe.Pointer(&size), 8)
	errs := []error{blasError(r, "cublasLtMatmulPreferenceSetAttribute", "%d bytes", workspace)}
	for what := C.cublasLtMatmulPreferenceAttributes_t(C.planc_lt_align_a); what <= C.planc_lt_align_d; what++ {
		align := C.uint32_t(Alignment)
		r := C.planc_cublasLtMatmulPreferenceSetAttribute(pref, what, unsafe.Pointer(&align), 4)
		errs = append(errs, blasError(r, "cublasLtMatmulPreferenceSetAttribute", "alignment %d", Alignment))
	}
	return errors.Join(errs...)
}

// Matrices are the addresses of a GEMM's operands, which are multiples of [Alignment]: D = α A B + β C. C has the shape
// and the type of D, and can be D.
type Matrices struct{ D, C, A, B Pointer }

// InPlace returns the operands of a GEMM whose C is D.
func InPlace(d, a, b Pointer) Matrices { return Matrices{d, d, a, b} }

// GEMM enqueues a GEMM on the stream. The workspace must be at least as large as in Prepare.
func (s *Stream) GEMM(m *GEMMPlan, alpha, beta float64, x Matrices, workspace Memory) error {
	d, c, a, b := x.D, x.C, x.A, x.B
	if (d|c|a|b)%Alignment != 0 {
		panic(fmt.Sprintf("cuda: matrices at %#x, %#x, %#x and %#x are not aligned to %d bytes", d, c, a, b, Alignment))
	}
	r := C.planc_multiply(m.gemms.h, &m.c, C.int(flag(m.gemm.In == ValueFloat64)), C.double(alpha), C.double(beta),
		C.CUdeviceptr(b), C.CUdeviceptr(a), C.CUdeviceptr(c), C.CUdeviceptr(d), C.CUdeviceptr(workspace.Pointer),
		C.size_t(workspace.Bytes), s.handle())
	if r == 0 {
		return nil
	}
	return blasError(r, "cublasLtMatmul", "%+v", m.gemm)
}

// Close releases the plan. It must not run afterwards.
func (m *GEMMPlan) Close() error {
	var errs []error
	for _, l := range []C.cublasLtMatrixLayout_t{m.c.a, m.c.b, m.c.d} {
		if l != nil {
			errs = append(errs, blasError(C.planc_cublasLtMatrixLayoutDestroy(l), "cublasLtMatrixLayoutDestroy", ""))
		}
	}
	if m.c.desc != nil {
		errs = append(errs, blasError(C.planc_cublasLtMatmulDescDestroy(m.c.desc), "cublasLtMatmulDescDestroy", ""))
	}
	return errors.Join(errs...)
}
