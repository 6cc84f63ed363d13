package codegen

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
)

// llama405 generates Llama 3.1 405B, or so many layers of it, on 16 stages of 8 ranks with 8 chunks each, or fewer
// stages where there are fewer layers: a chunk has one block, the first and the last one the embedding and the head
// alone.
func llama405(t *testing.T, layers, micro int, schedule string) (program, source string, took time.Duration) {
	t.Helper()
	c, err := spec.LoadModel("llama3.1-405b", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Layers = layers
	p := ir.SerialPlan(layers, 1, ir.FullPrecision(ir.F32))
	p.TP, p.SP, p.PP, p.VPP, p.MicroBatches, p.Schedule, p.AxisOrder = 8, true, (layers+2)/8, 8, micro,
		schedule, "tp,dp,pp"
	p.StageLayers = "0," + strings.Repeat("1,", layers) + "0"
	if schedule == "zb-v" {
		chunks, each := 2*p.PP, layers/(2*p.PP)
		p.VPP, p.StageLayers = 2, strings.Repeat(fmt.Sprintf("%d,", each), chunks-1)+fmt.Sprint(layers-each*(chunks-1))
	}
	m := zoo.Build("llama", *c, zoo.Options{SeqLen: 8192, Batch: 1, Elem: ir.F32})
	start := time.Now()
	prog, err := passes.Compile(m, p, ir.Recipe{Optimizer: "adamw"}, passes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	src, err := Go(Input{Program: prog, Package: "train", Job: "m", Hash: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	took = time.Since(start)
	if err := prog.Check(passes.Names()); err != nil {
		t.Fatal(err)
	}
	return prog.String(), string(src), took
}

// code is the functions of a source, without how many blocks run each.
func code(src string) string {
	at := strings.Index(src, "// embedForward is")
	return regexp.MustCompile(`of which the model has \d+`).ReplaceAllString(src[at:], "")
}

// A model of 126 layers on 128 chunks has the functions of one of 14 layers on 16; what grows is a line a layer in the
// tables. Micro-batches add nothing: they are numbers in the schedules.
func TestLlama405B(t *testing.T) {
	program, src, took := llama405(t, 126, 64, "interleaved")
	smallProgram, small, smallTook := llama405(t, 14, 64, "interleaved")
	t.Logf("126 layers: program %d bytes, source %d, of that functions %d, in %v; 14 layers: %d, %d, %d, %v",
		len(program), len(src), len(code(src)), took, len(smallProgram), len(small), len(code(small)), smallTook)
	if a, b := code(src), code(small); a != b {
		t.Errorf("functions of 126 layers have %d bytes, of 14 layers %d", len(a), len(b))
	}
	if perChunk := (len(src) - len(small)) / 112; perChunk > 1500 {
		t.Errorf("a chunk adds %d bytes to the tables", perChunk)
	}
	for _, schedule := range []string{"interleaved", "zb-v"} {
		_, few, _ := llama405(t, 126, 64, schedule)
		_, many, _ := llama405(t, 126, 1024, schedule)
		t.Logf("%s: %d bytes with 64 micro-batches, %d with 1024", schedule, len(few), len(many))
		if len(many) > len(few)+200 { // digits
			t.Errorf("%s: the source grows with the micro-batches", schedule)
		}
	}
}
