//go:build cuda && linux

package gpu

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/gemmchoice"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/program"
)

// runLibraryKernels computes each kind of GEMM and attention of the rank's stage once. cuBLASLt and cuDNN load a kernel
// at its first launch, and may then wait for running work, which in a step may wait for another rank. The operands
// are in the arena, which holds nothing yet.
func (d *device) runLibraryKernels(m *machine) error {
	done := map[rt.GEMM]bool{}
	for _, chunk := range d.rank.Stage.Chunks {
		for _, run := range chunk.Runs {
			for _, g := range d.rank.Program.Segments[run.Segment].GEMMs {
				if done[g] {
					continue
				}
				done[g] = true
				if err := d.runGEMM(g, &m.epilogues); err != nil {
					return err
				}
			}
		}
	}
	for _, p := range d.dnnAttention.plans {
		at, o := cuda.AttentionOperands{}, operands{arena: d.arena}
		for i, bytes := range p.OperandBytes() {
			at[i] = o.place(p.Parts * bytes)
		}
		if o.tooLarge { // only other stages compute it
			continue
		}
		if err := d.stream().AttendParts(p, at, d.dnnAttention.workspace); err != nil {
			return err
		}
	}
	return d.compute.stream.Synchronize()
}

// runGEMM computes a kind of GEMM once, and without its epilogue if cuBLASLt refuses that.
func (d *device) runGEMM(g rt.GEMM, report *epilogueReport) error {
	p, o := gemmOf(g), operands{arena: d.arena}
	if g.FP8A != "" {
		q := fp8GEMM(p, fp8Formats[g.FP8A], fp8Formats[g.FP8B], [2]cuda.Pointer{o.place(4), o.place(4)})
		if d.supportsFP8(q) {
			p = q
		}
	}
	batch, result := max(p.Batch, 1), p.Out.Bytes()
	if p.Epilogue.HasBias() {
		p.Bias = o.place(p.N * result)
	}
	if p.Epilogue.HasAux() {
		p.Aux = o.place(batch * p.M * p.N * result)
	}
	a, b := o.place(batch*p.M*p.K*p.In.Bytes()), o.place(batch*p.K*p.N*p.In.Bytes())
	var c cuda.Pointer
	if p.Out == valueType(shortName(g.Out)) {
		c = o.place(batch * p.M * p.N * result)
	} else {
		c = d.wideResult(batch * p.M * p.N * result)
	}
	if o.tooLarge {
		return nil // the stage's functions do not compute it
	}
	if p.Epilogue != 0 {
		done := !isOwnEpilogue(&p) && d.tryEpilogue(p, c, null, a, b)
		if done || d.refused[gemmKind(p)] || !fitsAux(&p) {
			report.count(p, done)
		}
		if done && (p.Epilogue != cuda.BiasGrad || !gemmchoice.Times()) { // otherwise both ways are timed
			return nil
		}
	}
	p.Epilogue, p.Bias, p.Aux = 0, 0, 0
	return d.tryGEMM(p, c, null, a, b)
}

// gemmOf returns the GEMM of a kind without its addresses, as the functions that generated code calls prepare it.
func gemmOf(g rt.GEMM) cuda.GEMM {
	p := cuda.GEMM{Batch: g.Groups, M: g.M, N: g.N, K: g.K, TransposeA: g.TransposeA, TransposeB: g.TransposeB,
		In: valueType(shortName(g.In)), Out: valueType(shortName(g.Out))}
	if p.In != p.Out && p.In != cuda.ValueFloat64 {
		p.Out = cuda.ValueFloat32
	}
	switch {
	case g.Epilogue == program.GELU:
		p.Epilogue = geluEpilogue(g.Bias, g.KeepsInput)
	case g.Epilogue == program.GELUGrad:
		p.Epilogue = cuda.GELUGrad
	case g.Epilogue == program.RowSum:
		p.Epilogue = cuda.BiasGrad
	case g.Bias:
		p.Epilogue = cuda.AddBias
	}
	return p
}

var fp8Formats = map[string]num.FP8Format{"e4m3": num.E4M3, "e5m2": num.E5M2}

// operands places operands in an arena that holds nothing else. They overlap if they do not fit side by side.
type operands struct {
	arena    cuda.Memory
	used     int64
	tooLarge bool // an operand exceeds the arena
}

// place returns the address of an operand.
func (o *operands) place(bytes int) cuda.Pointer {
	n := int64(bytes)
	if o.used+n > o.arena.Bytes {
		o.used = 0
	}
	o.tooLarge = o.tooLarge || n > o.arena.Bytes
	at := o.arena.Pointer + cuda.Pointer(o.used)
	o.used += (n + partAlign - 1) &^ (partAlign - 1)
	return at
}

// epilogueReport collects what the run's first lines say about the epilogues of GEMMs.
type epilogueReport struct {
	mutex   sync.Mutex
	known   map[cuda.GEMM]bool // kinds of all ranks
	refused []string           // kinds that cuBLASLt refuses, as text
}

// count records whether cuBLASLt computes a GEMM with its epilogue. All ranks report, each kind counts once.
func (t *epilogueReport) count(p cuda.GEMM, done bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	kind := gemmKind(p)
	if t.known[kind] {
		return
	}
	if t.known == nil {
		t.known = map[cuda.GEMM]bool{}
	}
	t.known[kind] = true
	if !done {
		t.refused = append(t.refused, fmt.Sprintf("%s of %d × %d × %d", epilogueNames[p.Epilogue], p.M, p.N, p.K))
	}
}

var epilogueNames = map[cuda.Epilogue]string{cuda.AddBias: "bias", cuda.GELU: "GELU", cuda.GELUBias: "bias and GELU",
	cuda.GELUAux: "GELU", cuda.GELUAuxBias: "bias and GELU", cuda.GELUGrad: "GELU's gradient",
	cuda.BiasGrad: "the bias's gradient"}

// maxRefused is the number of refused GEMMs that the run names.
const maxRefused = 4

// text says which epilogues cuBLASLt refuses, and what that costs. It is empty if it refuses none.
func (t *epilogueReport) text(version string) string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	n := len(t.refused)
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("cuBLASLt %s refuses %d of %d epilogues of GEMMs (M × N × K): ", version, n, len(t.known)) +
		strings.Join(slices.Sorted(slices.Values(t.refused))[:min(n, maxRefused)], ", ")
	if n > maxRefused {
		text += fmt.Sprintf(" and %d more", n-maxRefused)
	}
	return text + "; there, planc's own kernel reads and writes the result once more"
}
