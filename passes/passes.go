package passes

import (
	"fmt"
	"strings"
	"time"

	"github.com/planc-dev/planc/ir"
)

// Pass is one row of the pipeline.
type Pass struct {
	Name  string
	Doc   string   // what holds afterwards
	After []string // passes that must run before; a test checks the table
	Whole bool     // concerns only whole stages, not layers
	Run   func(*ir.Program) error
}

// All is the pipeline in run order.
var All = []Pass{
	{Name: "sides", Run: sides,
		Doc: "on GPUs, projections that one GEMM can compute are one parameter"},
	{Name: "fp8", After: []string{"sides"}, Run: fp8,
		Doc: "if the plan says so, matmuls of blocks with their weights round their operands to FP8"},
	{Name: "grad", After: []string{"fp8"}, Doc: "every segment computes the gradients of its parameters and " +
		"of its input",
		Run: grad},
	{Name: "precision", After: []string{"grad"}, Run: precision,
		Doc: "every value has the plan's element type"},
	{Name: "remat", After: []string{"precision"}, Run: remat,
		Doc: "blocks that are recomputed have functions of their own, whose backward recomputes what forward " +
			"does not save"},
	{Name: "rematerialize", After: []string{"remat"}, Run: rematerialize,
		Doc: "backward recomputes cheap ops of saved values, so that their results are not saved"},
	{Name: "partition", After: []string{"rematerialize"}, Run: partition,
		Doc: "every value has a sharding; every change of sharding is an explicit collective"},
	{Name: "pipeline", After: []string{"partition"}, Run: pipeline,
		Doc: "every block has a stage"},
	{Name: "zero", After: []string{"pipeline"}, Run: zero,
		Doc: "every parameter has a class: how its gradient is resolved and where its state lives"},
	{Name: "split", After: []string{"partition"}, Run: split,
		Doc: "under a zero-bubble schedule, gradients of parameters are a function of their own"},
	{Name: "fuse", After: []string{"split"}, Run: fuse,
		Doc: "element-wise chains are one op"},
	{Name: "bucket", After: []string{"zero"}, Run: bucket, Whole: true,
		Doc: "parameters, gradients and moments are flat; the end of the step works on buckets"},
	{Name: "schedule", After: []string{"bucket"}, Run: schedule, Whole: true,
		Doc: "the order of forwards, backwards, reductions and the update is fixed"},
	{Name: "memory", After: []string{"schedule", "fuse"}, Run: memory,
		Doc: "every value has a location in the arena"},
}

// Names returns the names of the passes in run order.
func Names() []string {
	var ns []string
	for _, p := range All {
		ns = append(ns, p.Name)
	}
	return ns
}

// Options are the options of Compile. The zero value checks nothing, which is for the search; all other callers set
// Check.
type Options struct {
	Check bool
	// only the passes that concern layers: stages have no buckets, schedules and arenas
	Layers bool
	Until  string                      // the last pass to run; "" means all
	Dump   func(pass, text string)     // called after each pass with the program, or "(unchanged)"
	Time   func(string, time.Duration) // called with the duration of each pass
}

// Start returns the program before the first pass: the model on the plan's mesh, with one micro-batch of all replicas
// as batch dim.
func Start(m *ir.Model, plan ir.Plan, recipe ir.Recipe) (*ir.Program, error) {
	for _, r := range ir.ContextRules {
		if !r.OK(&plan) {
			return nil, fmt.Errorf("%s", r.When)
		}
	}
	mesh, err := plan.Mesh(kvHeads(m), recipe.VocabMultiple)
	if err != nil {
		return nil, err
	}
	p := &ir.Program{Name: m.Name, Plan: plan, Mesh: mesh, Recipe: recipe, Layouts: plan.Layouts(mesh),
		Model: m.Clone()}
	keepRegions(p)
	for _, s := range p.Model.Segments {
		for _, f := range s.Funcs() {
			Resize(f, ir.Batch, plan.MicroBatch*plan.DP)
			placesFor(f, plan)
		}
	}
	return p, nil
}

// kvHeads returns the size of dim head, 0 if the model has none.
func kvHeads(m *ir.Model) int {
	for _, s := range m.Segments {
		for _, w := range s.Forward.Weights() {
			if e, ok := w.Type.Extent(ir.Head); ok {
				return e.Size
			}
		}
	}
	return 0
}

// Resize sets a dim's size in all types of a function.
func Resize(f *ir.Func, d ir.Dim, size int) {
	set := func(vs []*ir.Value) {
		for _, v := range vs {
			for i := range v.Type.Dims {
				if v.Type.Dims[i].Dim == d {
					v.Type.Dims[i].Size = size
				}
			}
		}
	}
	set(f.Inputs)
	for _, n := range f.Nodes {
		set(n.Outs)
	}
}

// Compile runs the pipeline. An error means that the plan does not fit the model, by a rule that the planner's legality
// check should have reported. A broken invariant is a bug in planc and panics with the pass's name.
func Compile(m *ir.Model, plan ir.Plan, recipe ir.Recipe, o Options) (*ir.Program, error) {
	p, err := Start(m, plan, recipe)
	if err != nil {
		return nil, err
	}
	var done []string
	before := ""
	for _, pass := range All {
		if o.Layers && pass.Whole {
			continue
		}
		start := time.Now()
		if err := blame(pass, p); err != nil {
			return nil, fmt.Errorf("pass %s: %w", pass.Name, err)
		}
		if o.Time != nil {
			o.Time(pass.Name, time.Since(start))
		}
		done = append(done, pass.Name)
		if o.Check {
			if err := p.Check(done); err != nil {
				panic(fmt.Sprintf("passes: %s broke the program of plan %v:\n%v\n%v", pass.Name, plan, err, p))
			}
		}
		if o.Dump != nil {
			before = dump(o.Dump, pass.Name, before, p.String())
		}
		if pass.Name == o.Until {
			break
		}
	}
	return p, nil
}

// blame runs a pass. If it panics, the panic names the pass and the plan.
func blame(pass Pass, p *ir.Program) error {
	defer func() {
		if x := recover(); x != nil {
			panic(fmt.Sprintf("passes: %s failed on plan %v of model %s: %v", pass.Name, p.Plan, p.Name, x))
		}
	}()
	return pass.Run(p)
}

func dump(to func(pass, text string), pass, before, now string) string {
	if now == before {
		to(pass, "(unchanged)\n")
	} else {
		to(pass, strings.TrimSuffix(now, "\n")+"\n")
	}
	return now
}
