package codegen

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
)

// An element-wise op over more elements than a 32-bit integer counts has several rows on a GPU.
func TestLargeFlatGroups(t *testing.T) {
	c := small
	c.FFN = 1 << 20
	src := generateConfig(t, GPU, c, ir.SerialPlan(c.Layers, 512, bf16)) // 512 × 8 tokens of 2^20 numbers are 2^32
	large := 0
	for _, m := range regexp.MustCompile(`gpu\.Chain\(r, chain\d+, (\d+), (\d+)`).FindAllStringSubmatch(string(src), -1) {
		rows, _ := strconv.Atoi(m[1])
		cols, _ := strconv.Atoi(m[2])
		if rows > maxKernelSize || cols > maxKernelSize {
			t.Errorf("%s has a size that exceeds 32 bits", m[0])
		}
		if rows*cols == 1<<32 {
			large++
		}
	}
	if large == 0 {
		t.Error("no group has 2^32 elements")
	}
}

// An all-gather of more elements than a 32-bit integer counts is accepted if no kernel rearranges its parts: Llama 3.1
// 405B with sequences of 131,072 tokens gathers 2^31. With two sequences, a kernel interleaves the parts.
func TestLargeContiguousAllGather(t *testing.T) {
	c, err := spec.LoadModel("llama3.1-405b", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Layers = 2
	for batch, want := range map[int]string{1: "<nil>", 2: "codegen: gpu.AllGather has a size of 2147483648, but"} {
		plan := ir.SerialPlan(c.Layers, batch, bf16)
		plan.TP, plan.SP = 8, true
		m := zoo.Build("llama", *c, zoo.Options{SeqLen: 131072, Batch: 1, Elem: ir.BF16})
		p, err := passes.Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, passes.Options{})
		if err != nil {
			t.Fatal(err)
		}
		src, err := Go(Input{Program: p, Target: GPU, Package: "train", Job: "llama", Hash: "abc"})
		if !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("micro_batch %d: %v, want %s", batch, err, want)
		}
		if batch > 1 {
			continue
		}
		if !regexp.MustCompile(`gpu\.AllGather\(r, groupTp, \w+, \w+, 1, 268435456, 2147483648\)`).Match(src) {
			t.Error("no all-gather has 2^31 elements")
		}
		const advice = "use shorter sequences than 131072 tokens (`--set train.seq_len=65536`)"
		if got := smallerSize(p, 1<<31); got != advice {
			t.Errorf("with micro_batch 1: %s, want %s", got, advice)
		}
	}
}

// A GPU's program with a size of a row or column that exceeds 32 bits is refused by the name of the kernel. A CPU's is
// not.
func TestRefusesLargeKernels(t *testing.T) {
	m := zoo.Build("small", small, zoo.Options{SeqLen: 8, Batch: 1, Elem: ir.BF16})
	plan := ir.SerialPlan(small.Layers, 1<<28, bf16) // 2^31 tokens
	p, err := passes.Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, passes.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[Target]string{CPU: "<nil>",
		GPU: "codegen: gpu.RMSNorm has a size of 2147483648, but a GPU kernel has at most 2147483647 rows or " +
			"columns: use a smaller micro_batch than 268435456 or shorter sequences than 8 tokens " +
			"(`--set plan.micro_batch=1`)"} {
		in := Input{Program: p, Target: target, Package: "train", Job: "small", Hash: "abc"}
		_, err := Go(in)
		if !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%v: %v, want %s", target, err, want)
		}
		if err := CUDA(io.Discard, in); err == nil {
			t.Error("the kernels are printed")
		}
	}
}
