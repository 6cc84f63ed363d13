package validate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes/search"
)

// Question is a row as the planner is asked.
type Question struct {
	Engine  string
	Problem *search.Problem
	Plan    ir.Plan
}

// loRA finds a note that says what was trained.
var loRA = regexp.MustCompile(`(?i)\blora\b`)

// offloaded finds a note that says that state lived on the host.
var offloaded = regexp.MustCompile(`(?i)full cpu offload|(optimizer|param) offload=y|activations of \d+ layers ` +
	`on the host`)

// eitherZero finds a cell that names two stages of ZeRO.
var eitherZero = regexp.MustCompile(`(?i)[0-3]\s+or\s+[0-3]`)

// blockScaled finds a note that says which 8 bits were meant.
var blockScaled = regexp.MustCompile(`\bFP8-MX\b|\bMXFP8\b`)

// muon finds a note that says by what parameters were updated.
var muon = regexp.MustCompile(`\bby Muon\b`)

// narrowState finds a note that says that the optimizer's moments and the sums of gradients had 16 bits.
var narrowState = regexp.MustCompile(`(?i)\bbf16 moments and gradients\b`)

// presetOf is the precision that has the state of what matmuls compute in.
func presetOf(gemm string) string {
	if gemm == costmodel.MXFP8 {
		return "fp8"
	}
	return gemm
}

// precisions are how rows name what GEMMs compute in.
var precisions = map[string]string{"bf16": "bf16", "fp16": "fp16", "f16": "fp16", "fp32": "f32", "f32": "f32",
	"tf32": "f32", "fp8": "fp8", "mxfp8": costmodel.MXFP8}

// modelKey is what models are shared by.
type modelKey struct {
	name string
	seq  int
	elem ir.Elem
}

// Asker makes questions of rows, and shares what they share.
type Asker struct {
	models  map[modelKey]*ir.Model
	series  map[seriesKey]*search.Series
	engines map[engineKey]*costmodel.Engine
}

// seriesKey is what questions of one series have in common.
type seriesKey struct {
	model  *ir.Model
	engine *costmodel.Engine
	prec   ir.Precision
}

// engineKey is an engine as a row runs it.
type engineKey struct {
	name string
	ways
}

// NewAsker is one that knows no model yet.
func NewAsker() *Asker {
	return &Asker{models: map[modelKey]*ir.Model{}, series: map[seriesKey]*search.Series{},
		engines: map[engineKey]*costmodel.Engine{}}
}

// Question is what a row asks, or why it cannot be asked.
func (a *Asker) Question(r *Row) (*Question, error) {
	if loRA.MatchString(r.Text("note") + " " + r.Text("recompute")) {
		return nil, errors.New("it trains a low-rank part of the parameters (LoRA), which is not priced")
	}
	if offloaded.MatchString(r.Text("note")) {
		return nil, errors.New("its parameters, optimizer or activations are offloaded to the host, which is " +
			"not priced")
	}
	if muon.MatchString(r.Text("note")) {
		return nil, errors.New("it is trained with Muon, which planc has not")
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
		GEMM:      name, Engine: e, Recipe: ir.Recipe{Optimizer: "adamw"}}
	if broken := search.Legal(plan, search.DimsOf(p.Model), cluster, batch); len(broken) > 0 {
		var why []string
		for _, b := range broken {
			why = append(why, b.Message)
		}
		return nil, fmt.Errorf("the plan is not legal: %s", strings.Join(why, "; "))
	}
	return &Question{Engine: engine, Problem: p, Plan: plan}, nil
}

// model is a configuration's graph, one for all rows with the same.
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

// price asks the planner, whose analyses of a model serve all rows with it.
func (a *Asker) price(q *Question) (costmodel.Predict, error) {
	k := seriesKey{q.Problem.Model, q.Problem.Engine, q.Problem.Precision}
	series := a.series[k]
	if series == nil {
		series = &search.Series{}
		a.series[k] = series
	}
	return series.Price(q.Problem, q.Plan)
}

// engine is the engine of a key.
func (a *Asker) engine(k engineKey) *costmodel.Engine {
	if a.engines[k] == nil {
		a.engines[k] = k.engine()
	}
	return a.engines[k]
}

// Refresh takes over constants of engines that have moved, as a fit moves them.
func (a *Asker) Refresh() {
	for k, e := range a.engines {
		*e = *k.engine()
	}
	for _, s := range a.series {
		s.Refresh()
	}
}
