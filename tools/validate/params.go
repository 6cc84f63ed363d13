package main

import "github.com/planc-dev/planc/costmodel"

// param is a constant that the fit moves: a positive number, in logarithms around what literature says of it.
type param struct {
	name  string
	at    *float64
	prior float64 // where it began
	sigma float64 // how far a fit may take it for little: one deviation of its logarithm
}

// params are all of them: few, each for all models and plans.
func params() []param {
	var ps []param
	add := func(name string, at *float64, sigma float64) { ps = append(ps, param{name, at, *at, sigma}) }
	for i := range costmodel.Generations {
		g := &costmodel.Generations[i]
		switch g.Arch {
		case "sm_103", "sm_", "sm_89":
		default:
			add(g.Arch+" sustained", &g.Sustained, 0.15)
		}
	}
	for _, e := range costmodel.Engines[1:] {
		if e.Name != "megatron" { // whose rates are those of the generations
			add(e.Name+" matrix", &e.Matrix, 0.1)
		}
		add(e.Name+" attention", &e.Attention, 0.3)
		add(e.Name+" elementwise", &e.Elementwise, 0.4)
		add(e.Name+" host", (*float64)(&e.Host), 0.5)
		add(e.Name+" pass", (*float64)(&e.Pass), 0.7)
		add(e.Name+" step", (*float64)(&e.Step), 0.7)
		add(e.Name+" interfere", &e.Interfere, 0.7)
	}
	return ps
}
