package main

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
)

// param is a constant that the fit moves: a positive number, in logarithms around its prior.
type param struct {
	name  string
	at    *float64
	prior float64 // from literature or by estimate; the fit begins here
	sigma float64 // one standard deviation of the logarithm
}

// engineParams are the constants of each engine that are fitted, with their priors. Megatron's matmuls define the
// rates of GPU generations, so that engine has no parameter for them.
var engineParams = []struct {
	name     string
	of       func(*engines.Engine) *float64
	megatron float64
	others   [2]float64 // deepspeed, fsdp
	sigma    float64
}{
	{"matrix", func(e *engines.Engine) *float64 { return &e.Matrix }, 0, [2]float64{1, 1}, 0.1},
	{"attention", func(e *engines.Engine) *float64 { return &e.Attention }, 1, [2]float64{1, 0.8}, 0.3},
	{"elementwise", func(e *engines.Engine) *float64 { return &e.Elementwise }, 1.2, [2]float64{1.2, 1.8}, 0.4},
	{"host", func(e *engines.Engine) *float64 { return (*float64)(&e.Host) }, 40e-6, [2]float64{40e-6, 25e-6}, 0.5},
	{"looped", func(e *engines.Engine) *float64 { return &e.Looped }, 0.4, [2]float64{0, 0}, 0.5},
	{"pass", func(e *engines.Engine) *float64 { return (*float64)(&e.Pass) }, 2e-3, [2]float64{3e-3, 2e-3}, 0.7},
	{"step", func(e *engines.Engine) *float64 { return (*float64)(&e.Step) }, 5e-3, [2]float64{20e-3, 10e-3}, 0.7},
	{"interfere", func(e *engines.Engine) *float64 { return &e.Interfere }, 0.1, [2]float64{0.1, 0.1}, 0.7},
}

// sustained are the priors of the fraction of the best matmul rate that GPUs sustain.
var sustained = map[string]float64{"sm_70": 0.95, "sm_75": 0.95, "sm_80": 0.95, "sm_86": 0.95, "sm_90": 0.90,
	"sm_100": 0.90, "sm_103": 0.90}

// params returns all parameters: few, and each for all models and plans.
func params() []param {
	var ps []param
	for i := range costmodel.Generations {
		g := &costmodel.Generations[i]
		if prior := sustained[g.Arch]; prior > 0 {
			ps = append(ps, param{g.Arch + " sustained", &g.Sustained, prior, 0.15})
		}
	}
	ps = append(ps, param{"mxfp8 matrix", &costmodel.BlockScaled, 1, 0.1})
	for _, e := range engines.Engines[1:] {
		for _, row := range engineParams {
			prior := map[string]float64{"megatron": row.megatron, "deepspeed": row.others[0],
				"fsdp": row.others[1]}[e.Name]
			if prior > 0 {
				ps = append(ps, param{e.Name + " " + row.name, row.of(e), prior, row.sigma})
			}
		}
	}
	return ps
}
