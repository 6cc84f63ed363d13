package laws_test

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// lawEight is the preset fp8.
var lawEight = ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
	Moments: ir.F32, FP8: true}

// eightPlans are keys of plans by hand, as expertPlan reads them: of each way of sharding one, and some together.
var eightPlans = []string{"dp 2", "tp 2", "dp 2 tp 2 sp zero 1", "tp 4 full", "dp 2 zero 3", "dp 2 pp 2 zero 2 zb-h1",
	"cp 2 ring tp 2 sp"}

// Law 1 in 8 bits. What rounds is judged as in 16 bits: the one-rank program whose sums are split is the yardstick, and
// where it is another number in bf16 it may be another one in 8 bits too, as it may in a plan. Only the scales are of
// the plan alone, since a tensor's largest magnitude is that of a rank's part. As they are powers of two, a number is
// rounded to the same under each, unless it is so small that it has fewer digits: then it is off by 2^-10 units of
// scale at most where the largest has more than 224, 2^-17 of it, beneath what bf16 keeps (2^-9). So the bound is that
// of 16 bits, and nothing is added to it.
func TestLawEight(t *testing.T) {
	var cases []lawCase
	dense := lawModels()
	for i, m := range []lawModel{dense[0], dense[1], expertModels()[0], expertModels()[3]} {
		m.Layers = 3
		c := lawCase{group: m.name + "-f8", model: m, optimizer: []string{"sgd", "adamw"}[i%2], elem: ir.BF16}
		ref := c
		ref.id, ref.plan = fmt.Sprintf("ref%d", i), ir.SerialPlan(m.Layers, lawBatch, lawEight)
		cases = append(append(cases, ref), yardsticks(ref)...)
		plans := eightPlans
		if m.Experts > 0 {
			plans = []string{"dp 2 ep 2 zero 1", "dp 2 tp 2 sp etp 2 ep 2", "dp 2 tp 2 ep 4 slack 1.25"}
		}
		for j, text := range plans {
			c.id, c.plan = fmt.Sprintf("plan%d_%d", i, j), expertPlan(text, m.Layers)
			c.plan.Precision = lawEight
			cases = append(cases, c)
		}
	}
	runLawCases(t, "eights", cases)
}

// lawEightExact makes the law in 8 bits one of f64: numbers have as many digits as the formats have, but no least
// exponent, so that they are rounded to the same whatever the scale is. Products round copies, since numbers of f64 are
// not widened into some.
const lawEightExact = `package main

import (
	"context"
	"slices"

	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

func init() {
	num.E4M3.Least, num.E5M2.Least = -900, -900
	table := cpu.Table[float64]()
	for i, p := range programs {
		programs[i].run = func(ctx context.Context, o ...rt.Option) (rt.Result, error) { // main has filled the table
			inPlace := table.MatMul8
			defer func() { table.MatMul8 = inPlace }()
			table.MatMul8 = func(c, a, b []float64, groups, m, n, k int, ta, tb, acc bool, as, bs num.Eight) {
				inPlace(c, slices.Clone(a), slices.Clone(b), groups, m, n, k, ta, tb, acc, as, bs)
			}
			return p.run(ctx, o...)
		}
	}
}
`

// The bound of TestLawEight is wide, since rounding to 4 digits is. This one is narrow: in f64, with formats without a
// least exponent, plans round the same numbers to the same, and differ by 1e-10 at most. Not so plans whose ranks hold
// parts of a gradient that is then multiplied, as those of tp above the heads of keys do, and those of tp without sp
// where attention is latent: each rounds its part. A bias's gradient that is left out is seen, and so is a product that
// rounds to the other format.
func TestLawEightExact(t *testing.T) {
	prec := ir.FullPrecision(ir.F64)
	prec.FP8 = true
	var cases []lawCase
	add := func(i int, m lawModel, plans []string, spoil ...func([]byte) []byte) {
		c := lawCase{group: m.name + "-f8exact", model: m, optimizer: []string{"sgd", "adamw"}[i%2], elem: ir.F64}
		ref := c
		ref.id, ref.plan = fmt.Sprintf("ref%d", i), ir.SerialPlan(m.Layers, lawBatch, prec)
		cases = append(cases, ref)
		for j, text := range plans {
			for k, s := range append([]func([]byte) []byte{nil}, spoil...) {
				c.id, c.plan, c.spoil = fmt.Sprintf("plan%d_%d_%d", i, j, k), expertPlan(text, m.Layers), s
				c.plan.Precision = prec
				cases = append(cases, c)
			}
		}
	}
	dense := lawModels()
	dense[0].Layers = 3
	add(0, dense[0], []string{"dp 2 tp 2 zero 1"}, replaced(t, `kern\.SumRows\((\w+), (\w+),[^\n]*, true\)`,
		"_, _ = $1, $2"), replaced(t, `num\.E5M2, num\.E4M3`, "num.E4M3, num.E4M3"))
	add(1, dense[1], []string{"dp 2", "tp 2", "dp 2 tp 2 sp zero 1", "tp 2 full", "dp 2 zero 3",
		"dp 2 pp 2 zero 2 zb-h1", "cp 2 ring tp 2 sp", "dp 2 cp 2 gather"})
	for i, m := range expertModels() {
		add(2+i, m, []string{"dp 2 ep 2 zero 1", "dp 2 tp 2 sp etp 2 ep 2", "dp 2 tp 2 sp ep 4 slack 1.25"})
	}
	files := lawFiles()
	files["eight.go"] = []byte(lawEightExact)
	for i, v := range lawVerdictsOf(t, "eightexact", cases, files, runModule) {
		off := max(v.Losses, v.Norms, v.Valid, v.Grad, v.Param)
		if v.Err != "" || v.Steps != 3 || (off <= lawBound) != (cases[i].spoil == nil) {
			t.Errorf("%s %v (%s): losses %.3g, norms %.3g, gradients %.3g, parameters %.3g off, a fault is in it: "+
				"%v; worst %s %s", cases[i].group, cases[i].plan, cases[i].id, v.Losses, v.Norms, v.Grad, v.Param,
				cases[i].spoil != nil, v.Worst, v.Err)
		}
	}
}
