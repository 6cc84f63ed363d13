//go:build cuda && linux

package measure

// gemmShapes are GEMMs of transformer layers of several widths: forward, and backward for inputs (b) and
// weights (a). Each other type has one shape in several sizes. Sizes increase, so that a slow device leaves
// out the largest.
var gemmShapes = []Point{
	{Type: "bf16", M: 64, N: 64, K: 64}, {Type: "bf16", M: 512, N: 512, K: 512}, {Type: "bf16", M: 4096,
		N: 768, K: 768},
	{Type: "bf16", M: 8192, N: 3072, K: 768}, {Type: "bf16", M: 8192, N: 768, K: 3072, Transposed: "b"},
	{Type: "bf16", M: 3072, N: 768, K: 8192, Transposed: "a"},
	{Type: "bf16", M: 8192, N: 4096, K: 4096}, {Type: "bf16", M: 8192, N: 4096, K: 4096, Transposed: "b"},
	{Type: "bf16", M: 4096, N: 4096, K: 8192, Transposed: "a"},
	{Type: "bf16", M: 8192, N: 14336, K: 4096},
	{Type: "fp16", M: 64, N: 64, K: 64}, {Type: "fp16", M: 512, N: 512, K: 512}, {Type: "fp16", M: 4096,
		N: 4096, K: 4096},
	{Type: "tf32", M: 64, N: 64, K: 64}, {Type: "tf32", M: 512, N: 512, K: 512}, {Type: "tf32", M: 4096,
		N: 4096, K: 4096},
	{Type: "f32", M: 64, N: 64, K: 64}, {Type: "f32", M: 512, N: 512, K: 512}, {Type: "f32", M: 4096, N: 4096, K: 4096},
}

// fp8Shapes are such GEMMs in FP8. The gradients (b, a) multiply E5M2 by E4M3.
var fp8Shapes = []Point{
	{M: 64, N: 64, K: 64}, {M: 512, N: 512, K: 512}, {M: 8192, N: 3072, K: 768}, {M: 8192, N: 768, K: 3072,
		Transposed: "b"},
	{M: 3072, N: 768, K: 8192, Transposed: "a"},
	{M: 8192, N: 4096, K: 4096}, {M: 8192, N: 4096, K: 4096, Transposed: "b"}, {M: 4096, N: 4096, K: 8192,
		Transposed: "a"},
	{M: 8192, N: 14336, K: 4096},
}

// Sizes of copies and messages, in bytes.
var (
	copySizes       = []int64{1 << 20, 16 << 20, 256 << 20}
	hostSizes       = []int64{1 << 20, 64 << 20}
	collectiveSizes = []int64{4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20}
)
