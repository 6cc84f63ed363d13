package codegen

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen/cu"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
)

// fusedModels have every kind of group between them: both norms, with and without biases, gated and plain activations,
// capped logits, dropout's neighbours, scaled embeddings.
func fusedModels() (models []spec.Config) {
	add := func(family, activation string, change func(*spec.Config)) {
		c := small
		c.Family, c.Activation = family, activation
		change(&c)
		models = append(models, c)
	}
	add(spec.Llama, "silu", func(*spec.Config) {})
	add(spec.GPT2, "gelu_new", func(c *spec.Config) {
		c.KVHeads, c.HeadDim, c.AttentionBias, c.QKVBias, c.MLPBias, c.RopeTheta = 4, 2, true, true, true, 0
	})
	add(spec.OPT, "relu", func(c *spec.Config) {
		c.KVHeads, c.HeadDim, c.AttentionBias, c.QKVBias, c.MLPBias, c.PositionOffset, c.RopeTheta = 4, 2, true,
			true, true, 2, 0
	})
	add(spec.Gemma2, "gelu_new", func(c *spec.Config) {
		c.UnitNorm, c.SandwichNorm, c.EmbedScale, c.QueryScale, c.Window = true, true, 4, 0.7, 3
		c.AttentionSoftcap, c.LogitSoftcap, c.Local = 2, 3, "1l1f"
	})
	add(spec.GPTNeoX, "gelu", func(c *spec.Config) {
		c.KVHeads, c.HeadDim, c.RotaryDim, c.ParallelResidual, c.AttentionBias, c.QKVBias, c.MLPBias = 4, 4, 2, true,
			true, true, true
	})
	return models
}

// fusedChains are the groups of models whose plan computes in types, as GPUs have them.
func fusedChains(t *testing.T, precision ir.Precision) (all []cu.Chain) {
	for _, c := range fusedModels() {
		for _, tp := range []int{1, 2} {
			plan := ir.SerialPlan(c.Layers, 2, precision)
			plan.TP = tp
			m := zoo.Build("small", c, zoo.Options{SeqLen: 8, Batch: 1, Elem: precision.Compute})
			p, err := passes.Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, passes.Options{Check: true})
			if err != nil {
				t.Fatal(err)
			}
			_, used := functions(p, GPU)
			for _, chain := range used.cuChains() {
				chain.Name = ""
				if !slices.ContainsFunc(all, func(o cu.Chain) bool { return reflect.DeepEqual(o, chain) }) {
					all = append(all, chain)
				}
			}
		}
	}
	return all
}

// singles are chains of one link, or of an op on rows between two others, for every link that there is.
func singles(elem string) (all []cu.Chain) {
	whole, row, temp := cu.Operand{At: "Whole", Elem: elem}, cu.Operand{At: "PerRow"}, cu.Operand{At: "Temp"}
	col := cu.Operand{At: "PerCol", Elem: elem}
	add := func(operands []cu.Operand, links ...cu.Link) {
		for i := range links {
			links[i].Round = elem
		}
		all = append(all, cu.Chain{Operands: operands, Links: links})
	}
	for _, do := range []string{"Copy", "Scale", "Gelu", "GeluErf", "Silu", "Sigmoid", "Relu", "Softcap"} {
		add([]cu.Operand{whole, whole}, cu.Link{Do: do, A: 0, To: 1, C: 1.5})
	}
	for _, do := range []string{"Add", "Sub", "Mul", "GeluGrad", "GeluErfGrad", "SiluGrad", "SigmoidGrad", "ReluGrad",
		"SoftcapGrad"} {
		add([]cu.Operand{whole, whole, whole}, cu.Link{Do: do, A: 0, B: 1, To: 2, C: 1.5})
		add([]cu.Operand{col, row, whole}, cu.Link{Do: do, A: 0, B: 1, To: 2, C: 1.5})
	}
	for _, base := range []float64{0, 1} {
		add([]cu.Operand{whole, whole, col, col, whole, whole, temp},
			cu.Link{Do: "Add", A: 0, B: 1, To: 4},
			cu.Link{Do: "LayerNorm", A: 4, B: 2, More: []int{3}, C: 1e-5, To: 6},
			cu.Link{Do: "RMSNorm", A: 6, B: 2, C: 1e-5, Base: base, To: 5})
		for _, do := range []string{"LayerNormDX", "RMSNormDX"} {
			add([]cu.Operand{whole, whole, col, whole, whole, temp, temp},
				cu.Link{Do: "Mul", A: 0, B: 2, To: 5},
				cu.Link{Do: do, A: 5, B: 1, More: []int{2}, C: 1e-5, Base: base, To: 6},
				cu.Link{Do: "Add", A: 6, B: 3, To: 4})
		}
	}
	side := cu.Operand{At: "Whole", Elem: elem, Sides: 2}
	add([]cu.Operand{side, side, whole, temp}, // gate, up
		cu.Link{Do: "Silu", A: 0, To: 3}, cu.Link{Do: "Mul", A: 3, B: 1, To: 2})
	add([]cu.Operand{whole, side, side, side, side, temp, temp}, // dy, up, gate, their gradients
		cu.Link{Do: "Mul", A: 0, B: 1, To: 5}, cu.Link{Do: "Silu", A: 2, To: 6}, cu.Link{Do: "Mul", A: 0, B: 6, To: 3},
		cu.Link{Do: "SiluGrad", A: 5, B: 2, To: 4})
	one := cu.Operand{At: "One"}
	add([]cu.Operand{whole, row, row, row, row, one, temp, whole}, // logits, dl, l, dy, ids, limit
		cu.Link{Do: "ExpGrad", A: 1, B: 0, More: []int{2, 5}, To: 6},
		cu.Link{Do: "AddPick", A: 6, B: 3, More: []int{4}, To: 7})
	add([]cu.Operand{row, row, whole}, cu.Link{Do: "PickGrad", A: 0, B: 0, More: []int{1}, To: 2})
	return all
}

// bf16 is the preset's.
var bf16 = ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
	Moments: ir.F32}

// chainsIn are the chains to try where the arithmetic is that of a type; with a fault in the source, only some.
func chainsIn(t *testing.T, double bool) (all []cu.Chain) {
	if os.Getenv("PLANC_MUTATION") != "" {
		all = slices.Concat(singles("BF16"), singles("F16"), singles(""))
	} else if double {
		all = append(singles(""), fusedChains(t, ir.FullPrecision(ir.F64))...)
	} else {
		all = slices.Concat(singles(""), singles("BF16"), singles("F16"), fusedChains(t, ir.FullPrecision(ir.F32)),
			fusedChains(t, bf16))
	}
	for i := range all {
		all[i].Name = fmt.Sprintf("chain%d", i+1)
	}
	return all
}

// printed are sources together with chains.cu.
func printed(t *testing.T, double bool, chains []cu.Chain) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{"base.cuh", "power.cuh", "element.cuh"} {
		text, err := kernels.Sources.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
	}
	var b bytes.Buffer
	if err := cu.Print(&b, double, chains); err != nil {
		t.Fatal(err)
	}
	files["chains.cu"] = b.Bytes()
	mutateChains(t, files)
	return files
}

// The kernels of fused groups compute what the CPU's chains do.
func TestChainsOnEmulatedGPU(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	for _, double := range []bool{false, true} {
		if double && os.Getenv("PLANC_MUTATION") != "" {
			return // a fault is in both
		}
		chains := chainsIn(t, double)
		var names []string
		for _, c := range chains {
			names = append(names, c.Name)
		}
		m, err := emulate.Build(t.TempDir(), "chains.cu", printed(t, double, chains), names)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		t.Logf("%d chains, double: %v", len(chains), double)
		for i := range chains {
			for _, size := range [][2]int{{3, 33}, {5, 64}, {2, 1032}, {1, 1}} {
				if double {
					runChain[float64](t, m, &chains[i], size[0], size[1])
				} else {
					runChain[float32](t, m, &chains[i], size[0], size[1])
				}
			}
		}
	}
}

// They compile for the oldest and the newest GPUs.
func TestChainsCompile(t *testing.T) {
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		t.Skip("no nvcc: kernels of fused groups are not compiled for GPUs; put it on PATH")
	}
	for _, double := range []bool{false, true} {
		dir := t.TempDir()
		for name, text := range printed(t, double, chainsIn(t, double)) {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(nvcc, "-std=c++17", "--Werror", "all-warnings", "-fatbin", "-gencode",
			"arch=compute_80,code=sm_80",
			"-gencode", "arch=compute_90a,code=sm_90a", "-o", "chains.fatbin", "chains.cu")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("double %v: %v\n%s", double, err, out)
		}
	}
}

// A program's groups are printed under the names that its Go has.
func TestCUDANamesGroupsAsGoDoes(t *testing.T) {
	plan := ir.SerialPlan(small.Layers, 2, ir.FullPrecision(ir.F32))
	half(&plan)
	m := zoo.Build("small", small, zoo.Options{SeqLen: 8, Batch: 1, Elem: ir.BF16})
	p, err := passes.Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, passes.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := CUDA(&b, Input{Program: p}); err != nil {
		t.Fatal(err)
	}
	text := string(generateFor(t, GPU, half))
	n := strings.Count(b.String(), "KERNEL chain")
	if n == 0 || !strings.Contains(text, fmt.Sprintf("chain%d ", n)) || strings.Contains(text,
		fmt.Sprintf("chain%d ", n+1)) {
		t.Errorf("%d kernels in\n%s\nGo has other chains", n, b.String())
	}
	first, _, _ := strings.Cut(b.String(), "\n")
	if first != "// Code generated by planc. DO NOT EDIT." {
		t.Errorf("the first line is %q", first)
	}
}

// Every link that a group can have is printed, and tried above.
func TestEveryLinkIsPrinted(t *testing.T) {
	var all []string
	for _, c := range singles("") {
		for _, l := range c.Links {
			all = append(all, l.Do)
		}
	}
	for op, link := range links {
		if do, _ := link(&ir.Node{Op: op}); !slices.Contains(all, do) {
			t.Errorf("%v is a %s, which no chain of singles has", op, do)
		}
	}
	for op, link := range rowLinks {
		var k chainLink
		link(&ir.Node{Op: op}, &k)
		if !slices.Contains(all, k.Do) {
			t.Errorf("%v is a %s, which no chain of singles has", op, k.Do)
		}
	}
	for _, c := range slices.Concat(singles("BF16"), fusedChains(t, ir.FullPrecision(ir.F32))) {
		if err := cu.Print(io.Discard, false, []cu.Chain{c}); err != nil {
			t.Error(err)
		}
	}
}

// An error of the writer ends the printing and is what is returned.
func TestPrintReportsErrors(t *testing.T) {
	w := &failing{left: 3}
	if err := cu.Print(w, false, singles("")[:1:1]); err == nil || w.after > 0 {
		t.Errorf("error %v, %d writes after it", err, w.after)
	}
}

// failing takes some writes, then fails.
type failing struct{ left, after int }

func (f *failing) Write(p []byte) (int, error) {
	f.left--
	if f.left >= 0 {
		return len(p), nil
	}
	f.after = -1 - f.left
	return 0, os.ErrClosed
}
