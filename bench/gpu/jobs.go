//go:build cuda && linux

package main

import (
	"fmt"
	"math"

	"github.com/planc-dev/planc/bench/gpu/trial"
	"github.com/planc-dev/planc/cuda"
)

// describeGPU reports the GPU and libraries that planc sees.
func describeGPU(l *lab, r *Result) error {
	r.note("planc sees %s of compute capability %d.%d, cuBLASLt %s", l.gpu.Name, l.gpu.Major, l.gpu.Minor, l.version)
	r.note("%s", l.attentionBackend())
	if n, err := cuda.OpenNCCL(); err == nil {
		r.note("NCCL %s at %s", n.Version, n.Path)
	} else {
		r.note("NCCL: %v", err)
	}
	return nil
}

// measureCeilings measures the best rates of the device: a copy, and a large GEMM of random numbers.
func measureCeilings(l *lab, r *Result) error {
	bytes, took, err := l.copied()
	if err != nil {
		return err
	}
	n := l.size(8192)
	p, err := l.gemm(cuda.GEMM{M: n, N: n, K: n, In: cuda.ValueBFloat16, Out: cuda.ValueBFloat16}, false)
	tabulateKernels(r, []Measured{{Name: "copy", Types: "bytes", Size: fmt.Sprint(bytes), Error: -1,
		Bytes: 2 * float64(bytes), Seconds: took}, p}, rates{})
	return err
}

// copied returns the bytes and seconds of a copy.
func (l *lab) copied() (bytes int64, took float64, err error) {
	bytes = 4 << 30
	if l.tiny {
		bytes = 1 << 12
	}
	defer l.release()
	var at [2]cuda.Memory
	for i := range at {
		at[i], err = cuda.Alloc(bytes)
		if err != nil {
			return bytes, 0, err
		}
		l.allocated = append(l.allocated, at[i])
	}
	to, from := at[0], at[1]
	if err := l.stream.Fill(from, 7); err != nil {
		return bytes, 0, err
	}
	took, err = l.time(func() error { return l.stream.Copy(to, from) })
	return bytes, took, err
}

// size returns a dim of a measurement, or a small one with -tiny.
func (l *lab) size(n int) int {
	if l.tiny {
		return min(n, 48)
	}
	return n
}

// gemmShape is a GEMM of a layer: y = x · w + bias, with rows of k and n numbers. up says that GELU follows it, and
// down that it reads the result of GELU.
type gemmShape struct {
	k, n           int
	bias, up, down bool
}

// layerGEMMs are those of GPT-2 124M and 1558M with their classifiers, whose vocabulary programs pad to a multiple of
// 64, and of a Llama with the shape of TinyLlama. Queries, keys and values are one GEMM, and so are gate and up.
var layerGEMMs = []gemmShape{
	{768, 2304, true, false, false}, {768, 768, true, false, false}, {768, 3072, true, true, false},
	{3072, 768, true, false, true}, {768, 50304, false, false, false},
	{1600, 4800, true, false, false}, {1600, 6400, true, true, false}, {6400, 1600, true, false, true},
	{1600, 50304, false, false, false},
	{2048, 2560, false, false, false}, {2048, 11264, false, false, false}, {5632, 2048, false, false, false},
	{2048, 32000, false, false, false},
}

// gemms returns the GEMMs of a shape on tokens, as programs launch them: forward, and the gradients of inputs and of
// weights, which are stored in f32. Epilogues add the bias, compute GELU and its gradient, and sum bias gradients.
func (s *gemmShape) gemms(l *lab, tokens int) []cuda.GEMM {
	m, k, n := l.size(tokens), l.size(s.k), l.size(s.n)
	forward := cuda.GEMM{M: m, N: n, K: k, Epilogue: cuda.Plain}
	dx := cuda.GEMM{M: m, N: k, K: n, TransposeB: true, Epilogue: cuda.Plain}
	dw := cuda.GEMM{M: k, N: n, K: m, TransposeA: true, Epilogue: cuda.Plain}
	switch {
	case s.up:
		forward.Epilogue = cuda.GELUAuxBias
	case s.bias:
		forward.Epilogue, dw.Epilogue = cuda.AddBias, cuda.BiasGrad
	}
	if s.down {
		dx.Epilogue = cuda.GELUGradBias
	}
	for _, p := range []*cuda.GEMM{&forward, &dx, &dw} {
		p.In, p.Out = cuda.ValueBFloat16, cuda.ValueBFloat16
	}
	dw.Out = cuda.ValueFloat32
	all := []cuda.GEMM{forward, dx, dw}
	for _, p := range all[:3] {
		if p.Epilogue != cuda.Plain { // what the epilogue costs
			p.Epilogue = cuda.Plain
			all = append(all, p)
		}
	}
	return all
}

// gemms measures the GEMMs of layers on 16384 tokens.
func gemms(l *lab, r *Result) error {
	var all []Measured
	const tokens = 16384
	for _, s := range layerGEMMs {
		for _, p := range s.gemms(l, tokens) {
			x, err := l.gemm(p, true)
			if err != nil {
				x.Why = err.Error()
			}
			all = append(all, x)
		}
	}
	tabulateKernels(r, all, l.rates)
	return nil
}

// epilogueNames are the epilogues' names in tables.
var epilogueNames = map[cuda.Epilogue]string{cuda.AddBias: " + bias", cuda.GELUAuxBias: " + bias, GELU",
	cuda.GELUGradBias: ", GELU gradient, bias gradient", cuda.BiasGrad: ", bias gradient"}

// gemm measures a GEMM, and compares one with as many terms with the f64 GEMM of the same numbers. The bound of
// f32 sums is half a unit in the last place for each truncation by a tensor core, which happens after 16 terms.
func (l *lab) gemm(p cuda.GEMM, compare bool) (x Measured, err error) {
	defer l.release()
	x = Measured{Name: "GEMM" + epilogueNames[p.Epilogue], Types: "bf16", Size: fmt.Sprintf("%d×%d×%d%s%s", p.M, p.N,
		p.K, flagged(p.TransposeA, " aᵀ"), flagged(p.TransposeB, " bᵀ")), Error: -1, Bound: 6e-3}
	out := "bf16"
	if p.Out == cuda.ValueFloat32 {
		out, x.Types, x.Bound = "f32", "bf16 to f32", max(1e-5, float64(p.K)/16*0x1p-24)
	}
	x.Flops = 2 * float64(p.M) * float64(p.N) * float64(p.K)
	x.Bytes = 2*float64(p.K)*float64(p.M+p.N) + float64(p.M*p.N*trial.ElemBytes(out))
	if p.Epilogue.HasAux() {
		x.Bytes += float64(p.M * p.N * trial.ElemBytes(out))
	}
	run, _, err := l.multiplier(p, "bf16", out)
	if err != nil {
		return x, err
	}
	x.Seconds, err = l.time(run)
	if err != nil || !compare {
		return x, err
	}
	l.release()
	p.M, p.N = min(p.M, 1024), min(p.N, 1024)
	got, err := l.multiplied(p, "bf16", out)
	if err != nil {
		return x, err
	}
	want, err := l.exact(p, out)
	if err != nil {
		return x, fmt.Errorf("in f64: %w", err)
	}
	x.Error = trial.RelativeError(got, want)
	return x, nil
}

// exact returns a GEMM's result from f64, with its epilogue computed here.
func (l *lab) exact(p cuda.GEMM, out string) ([]float64, error) {
	x := p
	x.In, x.Out, x.Epilogue = cuda.ValueFloat64, cuda.ValueFloat64, cuda.Plain
	d, err := l.multiplied(x, "f64", "f64")
	if err != nil {
		return nil, err
	}
	bias, aux := trial.Read(out, trial.Random(out, p.N, biasSeed)), trial.Read(out, trial.Random(out, p.M*p.N, auxSeed))
	for i := range d {
		switch p.Epilogue {
		case cuda.AddBias:
			d[i] += bias[i%p.N]
		case cuda.GELUAuxBias:
			d[i] = gelu(d[i] + bias[i%p.N])
		case cuda.GELUGradBias:
			d[i] *= geluGrad(aux[i])
		}
	}
	return d, nil
}

// gelu is the approximation of GELU by tanh, and geluGrad its derivative.
func gelu(x float64) float64 { return x / 2 * (1 + math.Tanh(geluInner(x))) }

func geluGrad(x float64) float64 {
	t := math.Tanh(geluInner(x))
	return (1+t)/2 + x/2*(1-t*t)*math.Sqrt(2/math.Pi)*(1+3*0.044715*x*x)
}

func geluInner(x float64) float64 { return math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x) }

// Seeds of the epilogues' operands. Those of A and B are 0 and 1.
const (
	biasSeed = 2
	auxSeed  = 3
)

// multiplied returns a GEMM's result.
func (l *lab) multiplied(p cuda.GEMM, in, out string) ([]float64, error) {
	run, d, err := l.multiplier(p, in, out)
	if err == nil {
		err = run()
	}
	if err != nil {
		return nil, err
	}
	b, err := l.get(d, p.M*p.N*trial.ElemBytes(out))
	return trial.Read(out, b), err
}

// multiplier copies operands to the device; run launches the GEMM.
func (l *lab) multiplier(p cuda.GEMM, in, out string) (run func() error, d cuda.Memory, err error) {
	return l.multiplierOf(p, [2][]byte{trial.Random(in, p.M*p.K, 0), trial.Random(in, p.K*p.N, 1)}, out)
}

// multiplierOf is multiplier for given operands.
func (l *lab) multiplierOf(p cuda.GEMM, operands [2][]byte, out string) (run func() error, d cuda.Memory,
	err error) {
	var at [2]cuda.Memory
	for i := range at {
		at[i], err = l.put(operands[i])
		if err != nil {
			return nil, d, err
		}
	}
	d, err = cuda.Alloc(int64(p.M * p.N * trial.ElemBytes(out)))
	if err != nil {
		return nil, d, err
	}
	l.allocated = append(l.allocated, d)
	err = l.stream.Fill(d, 0xff)
	if err != nil { // NaN
		return nil, d, err
	}
	if p.Epilogue.HasBias() {
		bias, err := l.put(trial.Random(out, max(p.N, p.K), biasSeed))
		if err != nil {
			return nil, d, err
		}
		p.Bias = bias.Pointer
	}
	if p.Epilogue.HasAux() {
		aux, err := l.put(trial.Random(out, p.M*p.N, auxSeed))
		if err != nil {
			return nil, d, err
		}
		p.Aux = aux.Pointer
	}
	m, err := l.blas.Prepare(p, workspace)
	if err != nil {
		return nil, d, err
	}
	return func() error {
		return l.stream.GEMM(m, 1, 0, cuda.InPlace(d.Pointer, at[0].Pointer, at[1].Pointer), l.scratch)
	}, d, nil
}

func flagged(is bool, text string) string {
	if is {
		return text
	}
	return ""
}
