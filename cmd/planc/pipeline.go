package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/planc-dev/planc/cmd/planc/internal/binary"
	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/zoo/weights"
	"github.com/planc-dev/planc/passes"
	"github.com/planc-dev/planc/runtime"
)

// compileProgram runs the passes on the job's plan, with checks between them. dump, if any, gets the model and the
// compileProgram after each pass.
func compileProgram(ui *console.Console, j *loaded, plan ir.Plan, dump func(stage, text string)) (*ir.Program, error) {
	m := j.Model()
	o := passes.Options{Check: true}
	if dump != nil {
		last := m.String()
		dump(modelStage, last)
		o.Dump = func(pass, text string) {
			if text != "(unchanged)\n" {
				last = text
			}
			dump(pass, last)
		}
	}
	var p *ir.Program
	err := ui.Timed("passes", func() (result string, err error) {
		p, err = passes.Compile(m, plan, j.Recipe(), o)
		if err != nil { // the search's rules of legality should have named it
			panic(fmt.Sprintf("the plan %v was chosen and cannot be compiled: %v", plan, err))
		}
		return plan.String(), nil
	})
	return p, err
}

// form is the shape that generated code takes.
type form struct {
	pkg  string
	main bool   // with func main
	from string // path of the job's file from the code's folder
	dir  string // where relative paths of the job's data start; "" is the program's working directory
	on   codegen.Target
}

// generateSource is the generated Go of a decision. In code for a CPU, which gains nothing by it, weights do not lie
// side by side.
func generateSource(ui *console.Console, d *decision, p *ir.Program, f form) (src []byte, err error) {
	err = ui.Timed("generate", func() (string, error) {
		in := input(d, p, f)
		if f.on == codegen.CPU && p.Recipe.Sides {
			apart := p.Recipe
			apart.Sides = false
			in.Program, err = passes.Compile(d.job.Model(), d.Best.Plan, apart, passes.Options{Check: true})
			if err != nil {
				return "", err
			}
		}
		src, err = codegen.Go(in)
		return fmt.Sprintf("%d bytes of Go", len(src)), err
	})
	return src, err
}

// input is what generated code is made of.
func input(d *decision, p *ir.Program, f form) codegen.Input {
	j := d.job
	return codegen.Input{
		Program: p, Package: f.pkg, Main: f.main, Target: f.on, Job: j.Name, From: f.from, Hash: programHash(p),
		Settings: binary.SettingsOf(j.Question, f.dir), Model: binary.ModelOf(j.Question, d.Best.Predict),
		Plan: binary.PlanOf(j.Question, d.Best),
		Predict: runtime.Predict{
			StepSeconds: float64(d.expect.StepS), StepError: d.expect.StepError, Measured: j.Hardware.Measured.By != "",
			TokensPerSecond: d.expect.TokensPerS, MemoryBytes: d.expect.MemoryBytes,
			PeakFlops: float64(d.expect.PeakFlops)},
		Weights: weights.Locate(p.Model, j.Config),
	}
}

// generated is what compiling makes before Go does.
type generated struct {
	*decision
	program string // its hash
	files   map[string][]byte
}

// programHash names a program by its text form. What the program and its model are called is no part of it: a job's
// name decides nothing.
func programHash(p *ir.Program) string {
	unnamed, m := *p, *p.Model
	unnamed.Name, m.Name, unnamed.Model = "", "", &m
	sum := sha256.Sum256([]byte(unnamed.String()))
	return hex.EncodeToString(sum[:])
}
