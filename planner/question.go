package planner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes/search"
)

// Question is what the planner is asked: a job on its hardware.
type Question struct {
	*spec.Job
	// Hardware is the job's cluster, in the size that the job or its objective has chosen.
	Hardware *costmodel.Cluster
	// MeasuredCPU has the measured rates of the CPU that Hardware is; nil if Hardware has the rates of the catalogue or
	// of a cluster file.
	MeasuredCPU *costmodel.ThisCPU

	source source
}

// source is what a job was read from, so that it can be read again with another value of a field.
type source struct {
	path      string
	read      ReadFile
	overrides []spec.Override
}

// ReadFile returns the content of a file that a job names: the job itself, a model's config.json, or a cluster file.
type ReadFile func(path string) ([]byte, error)

// Load reads a job file, applies the overrides in their order, and looks up the job's model and cluster. Path "" is a
// job of overrides alone. All errors of job and cluster come together, as ir.Diags.
func Load(path string, read ReadFile, overrides ...spec.Override) (*Question, error) {
	j, err := spec.Load(path, read, overrides...)
	if j == nil || err != nil && !j.Has("cluster") {
		return nil, err
	}
	at := func(field string) ir.Pos { return j.Pos("cluster." + field) }
	c, clusterErr := costmodel.Resolve(costmodel.Ref(j.Cluster), at, read)
	err = joinDiags(err, clusterErr)
	if err != nil {
		return nil, err
	}
	j.SetDevice(c.GPU.Arch)
	if err := checkMeasured(j.Cluster.Node, c, read); err != nil {
		return nil, err
	}
	q := &Question{Job: j, Hardware: c, source: source{path, read, slices.Clip(overrides)}}
	if err := checkParamGroups(q); err != nil {
		return nil, err
	}
	return q, nil
}

// checkMeasured refuses a cluster file with measurements that nothing reads yet: the plan would not depend on them.
func checkMeasured(file string, c *costmodel.Cluster, read ReadFile) error {
	const key = "measured.gemm"
	if c.Measured.GEMM == "" {
		return nil
	}
	at := ir.Pos{File: file}
	if data, err := read(file); err == nil {
		doc, _ := strict.Parse(file, data)
		_ = doc.Decode(&costmodel.Cluster{}) // the file is valid; decoding records the positions of its keys
		at = doc.Pos(key)
	}
	var diags ir.Diags
	diags.Addf(at, strict.NotYet, "not supported yet: %s, which nothing reads; remove it", key)
	return diags.Err()
}

// joinDiags returns the errors of a job and of its cluster as one. It drops a cluster's error at a position where the
// job has one: it only follows from that.
func joinDiags(job, cluster error) error {
	var jobDiags, clusterDiags ir.Diags
	if !errors.As(job, &jobDiags) || !errors.As(cluster, &clusterDiags) {
		return cmp.Or(job, cluster)
	}
	clusterDiags = slices.DeleteFunc(slices.Clone(clusterDiags), func(d ir.Diag) bool {
		return slices.ContainsFunc(jobDiags, func(j ir.Diag) bool { return j.Pos == d.Pos })
	})
	return slices.Concat(jobDiags, clusterDiags).Err()
}

// Override returns the question with further overrides, read from its source again, at the rates of the catalogue or of
// its cluster file.
func (q *Question) Override(more ...spec.Override) (*Question, error) {
	return Load(q.source.path, q.source.read, slices.Concat(q.source.overrides, more)...)
}

// Notes returns what is unusual about the job and may be meant: a sequence longer than the model was made for, a high
// learning rate, widths with which GPUs are slow.
func (q *Question) Notes() (notes []string) {
	for _, note := range []string{q.Stretched(), q.HighRate()} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	if !q.Hardware.IsCPU() {
		notes = append(notes, q.UnalignedWidths(engine(q).PadVocab > 0)...)
	}
	return notes
}

// WithMeasuredCPU returns the question at rates that were measured on the CPU that it is about.
func (q *Question) WithMeasuredCPU(cpu *costmodel.ThisCPU) (*Question, error) {
	measured := *q
	measured.MeasuredCPU = cpu
	var err error
	measured.Hardware, err = costmodel.ResolveOn(cpu, costmodel.Ref(q.Job.Cluster), nil, q.source.read)
	return &measured, err
}

// onHardware returns the question on other hardware.
func (q *Question) onHardware(c *costmodel.Cluster) *Question {
	other := *q
	other.Hardware = c
	return &other
}

// OnDevices returns the question on a number of devices: some of one node, or whole nodes.
func (q *Question) OnDevices(n int) (*Question, error) {
	c, err := q.clusterOf(n)
	if err != nil {
		return nil, err
	}
	return q.onHardware(c), nil
}

// OnNodes returns the question on a number of nodes with a number of devices each.
func (q *Question) OnNodes(nodes, devices int) (*Question, error) {
	c, err := q.clusterOfNodes(nodes, devices)
	if err != nil {
		return nil, err
	}
	return q.onHardware(c), nil
}

// clusterOf returns the job's kind of cluster with a number of devices: some of one node, or whole nodes.
func (q *Question) clusterOf(devices int) (*costmodel.Cluster, error) {
	per := q.FullNode()
	switch {
	case devices <= per || q.Hardware.IsCPU():
		return q.clusterOfNodes(1, devices)
	case devices%per != 0:
		return nil, fmt.Errorf("no whole number of nodes: %s has %d each", q.Hardware.Name, per)
	}
	return q.clusterOfNodes(devices/per, per)
}

// clusterOfNodes returns the job's kind of cluster with a number of nodes and devices of each.
func (q *Question) clusterOfNodes(nodes, devices int) (*costmodel.Cluster, error) {
	ref := costmodel.Ref{Node: q.Job.Cluster.Node, Nodes: nodes, Devices: devices}
	return costmodel.ResolveOn(q.MeasuredCPU, ref, nil, q.source.read)
}

// FullNode returns the number of devices of one node when a cluster of several nodes is built: those that the job
// takes of a node, or all that a node has.
func (q *Question) FullNode() int {
	if q.Job.Cluster.Devices > 0 {
		return q.Job.Cluster.Devices
	}
	return q.WholeNode()
}

// WholeNode returns the number of devices that a node of the hardware has, of which the job may take fewer.
func (q *Question) WholeNode() int {
	full, err := costmodel.Resolve(costmodel.Ref{Node: q.Job.Cluster.Node}, nil, q.source.read)
	if err == nil && !full.IsCPU() {
		return full.Node.Devices
	}
	return q.Hardware.Node.Devices
}

// Model returns the job's logical graph.
func (q *Question) Model() *ir.Model { return q.modelOf(q.Train.SeqLen) }

// modelOf returns the job's logical graph at another sequence length.
func (q *Question) modelOf(seq int) *ir.Model {
	m := plainModel(q, seq)
	groupParams(m, &q.Train.Optimizer)
	return m
}

// plainModel returns the logical graph of the job's model with weight decay on all matrices and one learning rate.
func plainModel(q *Question, seq int) *ir.Model {
	return zoo.Build(q.Config.Name, *q.Config, zoo.Options{SeqLen: seq, Batch: q.Train.GlobalBatch,
		Elem: q.Train.Precision.IR().Compute, Documents: q.Data.DocumentMask})
}

// Recipe returns what the job's training does beyond forward and backward: its optimizer, how parameters are rounded,
// how the vocabulary is padded, whether weights lie side by side, and when receives are posted.
func (q *Question) Recipe() ir.Recipe {
	o := q.Train.Optimizer
	return ir.Recipe{Optimizer: o.Kind, NoMomentum: o.Kind == "sgd" && o.Momentum == 0,
		StochasticRounding: q.Train.Precision.Rounding == spec.Stochastic,
		Sides:              engine(q).Sides(q.Hardware),
		VocabMultiple:      engine(q).VocabMultiple(q.Hardware),
		PrepostReceives:    engine(q).PrepostsReceives(q.Hardware)}
}

// Problem returns the question as the search takes it.
func (q *Question) Problem() *search.Problem {
	engine := engines.EngineOf(q.Train.Engine)
	p := &search.Problem{Model: q.Model(), Cluster: q.Hardware, GlobalBatch: q.Train.GlobalBatch,
		Precision: engine.State(q.Train.Precision.IR()),
		Engine:    engine, GEMM: q.Train.Precision.Compute,
		Recipe: q.Recipe(), Headroom: q.Objective.Headroom, Pins: search.PinsOf(&q.Plan), WithSeq: q.modelOf,
		MaxDevices: q.WholeNode(), Narrower: q.narrowerState, Prefer: q.Objective.Prefer}
	if goal := q.Goal(); goal > 0 { // a plan is recommended only if it reaches the goal when the fastest does
		p.MaxStep = costmodel.Seconds(float64(q.Train.GlobalBatch*q.Train.SeqLen) / goal)
	}
	return p
}

// engine returns the trainer whose runtime is priced.
func engine(q *Question) *engines.Engine { return engines.EngineOf(q.Train.Engine) }
