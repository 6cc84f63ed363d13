package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo/weights"
	"github.com/planc-dev/planc/passes"
	"github.com/planc-dev/planc/runtime"
)

// program runs the passes on the job's plan, with checks between them. dump, if any, gets the model and the
// program after each pass.
func (a *app) program(j *loaded, plan ir.Plan, dump func(stage, text string)) (*ir.Program, error) {
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
	err := a.timed("passes", func() (result string, err error) {
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

// source is the generated Go of a decision.
func (a *app) source(j *loaded, d *decision, p *ir.Program, f form) (src []byte, err error) {
	err = a.timed("generate", func() (string, error) {
		src, err = codegen.Go(input(j, d, p, f))
		return fmt.Sprintf("%d bytes of Go", len(src)), err
	})
	return src, err
}

// input is what generated code is made of.
func input(j *loaded, d *decision, p *ir.Program, f form) codegen.Input {
	return codegen.Input{
		Program: p, Package: f.pkg, Main: f.main, Target: f.on, Job: j.Name, From: f.from, Hash: programHash(p),
		Settings: settings(j, f.dir), Model: trained(j, d.Best.Predict), Plan: planTable(j, d.Best),
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

// generate makes the sources of the job's binary, and what of its kernels is compiled before Go is. Only the code of
// planc run, whose job has measured rates, depends on this machine, by what it expects of a step.
func (a *app) generate(j *loaded, f lockFlags, on codegen.Target) (*generated, error) {
	if err := spec.CheckCompile(j.Job); err != nil {
		return nil, err
	}
	d, err := a.decide(j.atCatalogueRates(), f)
	if err != nil {
		return nil, err
	}
	p, err := a.program(j, d.Best.Plan, nil)
	if err != nil {
		return nil, err
	}
	g := &generated{decision: d, program: programHash(p)}
	if err := a.checkProgram(d.lock, g.program, f); err != nil {
		return nil, err
	}
	j, err = j.withLocalExpectation(d)
	if err != nil {
		return nil, err
	}
	shape := form{pkg: "main", main: true, dir: dataFolder(j), on: on}
	src, err := a.source(j, d, p, shape)
	g.files = map[string][]byte{"main.go": src}
	if err == nil && on == codegen.GPU {
		err = a.addKernels(j, g.files, input(j, d, p, shape))
	}
	return g, err
}

// programHash names a program by its text form. What the program and its model are called is no part of it: a job's
// name decides nothing.
func programHash(p *ir.Program) string {
	unnamed, m := *p, *p.Model
	unnamed.Name, m.Name, unnamed.Model = "", "", &m
	sum := sha256.Sum256([]byte(unnamed.String()))
	return hex.EncodeToString(sum[:])
}
