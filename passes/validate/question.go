package validate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes/search"
)

// Question is a row in the form of a question for the planner.
type Question struct {
	Engine  string
	Problem *search.Problem
	Plan    ir.Plan
}

// loRA matches a note about LoRA training.
var loRA = regexp.MustCompile(`(?i)\blora\b`)

// offloaded matches a note about state on the host.
var offloaded = regexp.MustCompile(`(?i)full cpu offload|(optimizer|param) offload=y|activations of \d+ layers ` +
	`on the host`)

// eitherZero matches a cell that names two stages of ZeRO.
var eitherZero = regexp.MustCompile(`(?i)[0-3]\s+or\s+[0-3]`)

// blockScaled matches a note that names the kind of FP8.
var blockScaled = regexp.MustCompile(`\bFP8-MX\b|\bMXFP8\b`)

// muon matches a note that names the optimizer Muon.
var muon = regexp.MustCompile(`\bby Muon\b`)

// narrowState matches a note about 16-bit moments and accumulated gradients.
var narrowState = regexp.MustCompile(`(?i)\bbf16 moments and gradients\b`)

// presetOf returns the precision preset with the state for a compute type of matmuls.
func presetOf(gemm string) string {
	if gemm == costmodel.MXFP8 {
		return "fp8"
	}
	return gemm
}

// precisions maps the names of GEMM compute types in rows.
var precisions = map[string]string{"bf16": "bf16", "fp16": "fp16", "f16": "fp16", "fp32": "f32", "f32": "f32",
	"tf32": "f32", "fp8": "fp8", "mxfp8": costmodel.MXFP8}

// modelKey identifies a model that rows share.
type modelKey struct {
	name string
	seq  int
	elem ir.Elem
}

// Asker turns rows into questions, and shares models and analyses between them.
type Asker struct {
	models  map[modelKey]*ir.Model
	series  map[seriesKey]*search.Series
	engines map[engineKey]*engines.Engine
}

// seriesKey identifies questions of one series.
type seriesKey struct {
	model  *ir.Model
	engine *engines.Engine
	prec   ir.Precision
}

// engineKey is an engine with the options with which a row ran it.
type engineKey struct {
	name string
	ways
}

// NewAsker returns an Asker without models.
func NewAsker() *Asker {
	return &Asker{models: map[modelKey]*ir.Model{}, series: map[seriesKey]*search.Series{},
		engines: map[engineKey]*engines.Engine{}}
}

// Question returns the question of a row, or why the row cannot be priced.
func (a *Asker) Question(r *Row) (*Question, error) {
	if loRA.MatchString(r.Text("note") + " " + r.Text("recompute")) {
		return nil, errors.New("it trains a low-rank part of the parameters (LoRA), which is not priced")
	}
	if offloaded.MatchString(r.Text("note")) {
		return nil, errors.New("its parameters, optimizer or activations are offloaded to the host, which is " +
			"not priced")
	}
	if muon.MatchString(r.Text("note")) {
		return nil, errors.New("it is trained with Muon, which planc does not support")
	}
	if err := r.lacks(); err != nil {
		return nil, err
	}
	c, err := r.config()
	if err != nil {
		return nil, err
	}
	cluster, err := r.cluster()
	if err != nil {
		return nil, err
	}
	if eitherZero.MatchString(r.Text("zero_or_fsdp")) {
		return nil, fmt.Errorf("zero_or_fsdp is %q, which leaves open which plan ran", r.Text("zero_or_fsdp"))
	}
	engine := r.engine()
	if _, ok := defaultsOf[engine]; !ok {
		return nil, fmt.Errorf("engine %q is none of planc, megatron, megatron-fsdp, fsdp, deepspeed, hai-llm",
			r.Text("engine"))
	}
	text := r.lower("precision")
	if text == "" {
		text = spec.DefaultPrecision(cluster.GPU.Arch)
	}
	name, ok := precisions[text]
	if !ok {
		return nil, fmt.Errorf("precision %s is not priced", r.Text("precision"))
	}
	if name == "fp8" && blockScaled.MatchString(r.Text("note")) {
		name = costmodel.MXFP8
	}
	e := a.engine(engineKey{engine, r.ways(engine, cluster)})
	prec := e.State(spec.Presets[presetOf(name)].IR())
	if narrowState.MatchString(r.Text("note")) {
		prec.Moments, prec.Grads = ir.BF16, ir.BF16
	}
	plan, batch, err := r.plan(c.Layers, prec, engine, r.flash(cluster))
	if err != nil {
		return nil, err
	}
	p := &search.Problem{Model: a.model(c, r.count("seq_len", 0), prec.Compute), Cluster: cluster, GlobalBatch: batch,
		Precision: prec,
		GEMM:      name, Engine: e, Recipe: ir.Recipe{Optimizer: "adamw", Sides: e.Sides(cluster),
			VocabMultiple: e.VocabMultiple(cluster), PrepostReceives: e.PrepostsReceives(cluster)}}
	if broken := search.Legal(plan, search.DimsOf(p.Model), cluster, batch); len(broken) > 0 {
		var why []string
		for _, b := range broken {
			why = append(why, b.Message)
		}
		return nil, fmt.Errorf("the plan is not legal: %s", strings.Join(why, "; "))
	}
	return &Question{Engine: engine, Problem: p, Plan: plan}, nil
}

// model returns a configuration's graph, shared by all rows with the same configuration.
func (a *Asker) model(c *spec.Config, seq int, elem ir.Elem) *ir.Model {
	k := modelKey{fmt.Sprintf("%s/%d/%d/%d/%d/%d/%d/%v/%v/%d/%d/%d", c.Family, c.Layers, c.Hidden, c.Heads, c.KVHeads,
		c.FFN, c.Vocab, c.Tied, c.DropResid, c.Experts, c.Choices, c.ExpertFFN), seq, elem}
	if m := a.models[k]; m != nil {
		return m
	}
	m := zoo.Build(c.Name, *c, zoo.Options{SeqLen: seq, Batch: 1, Elem: elem})
	a.models[k] = m
	return m
}

// price calls the planner, whose analyses of a model are shared by all rows with that model.
func (a *Asker) price(q *Question) (costmodel.Predict, error) {
	k := seriesKey{q.Problem.Model, q.Problem.Engine, q.Problem.Precision}
	series := a.series[k]
	if series == nil {
		series = &search.Series{}
		a.series[k] = series
	}
	return series.Price(q.Problem, q.Plan)
}

// engine returns the engine of a key.
func (a *Asker) engine(k engineKey) *engines.Engine {
	if a.engines[k] == nil {
		a.engines[k] = k.engine()
	}
	return a.engines[k]
}

// Refresh copies the constants of engines after a fit has changed them.
func (a *Asker) Refresh() {
	for k, e := range a.engines {
		*e = *k.engine()
	}
	for _, s := range a.series {
		s.Refresh()
	}
}
