package main

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/runtime"
)

// settings returns the job's run-time fields for the binary. Relative paths are relative to dir.
func settings(j *loaded, dir string) runtime.Settings {
	t := j.Train
	return runtime.Settings{
		Dir: dir,
		Data: runtime.DataSettings{Root: j.Data.Root, Train: dataFiles(j.Data.Train),
			Valid:         dataFiles(j.Data.Valid.Files),
			ValidFraction: j.Data.Valid.Fraction, Tokenizer: j.Data.Tokenizer},
		Train: runtime.TrainSettings{
			Steps: t.Steps, Epochs: t.Epochs, Tokens: t.Tokens, Init: t.Init, Seed: t.Seed, OnNonfinite: t.OnNonfinite,
			Optimizer: runtime.OptimizerSettings{LR: t.Optimizer.LR, Betas: t.Optimizer.Betas, Eps: t.Optimizer.Eps,
				WeightDecay: t.Optimizer.WeightDecay, Momentum: t.Optimizer.Momentum, ClipNorm: t.Optimizer.ClipNorm},
			Experts: runtime.ExpertSettings{BiasRate: t.Experts.BiasRate},
			Schedule: runtime.ScheduleSettings{Kind: t.Schedule.Kind, Warmup: t.Schedule.Warmup,
				MinLR: t.Schedule.MinLR, Decay: t.Schedule.Decay},
			Eval:       runtime.EvalSettings{Every: t.Eval.Every, Batches: t.Eval.Batches, Sample: t.Eval.Sample},
			Checkpoint: runtime.CheckpointSettings{Every: t.Checkpoint.Every},
			Precision:  runtime.PrecisionSettings{LossScale: lossScale(t.Precision.LossScale)},
		},
	}
}

// lossScale returns the loss scaling for the binary; the zero value means none.
func lossScale(s spec.LossScale) (out runtime.LossScaleSettings) {
	if s.Kind == "static" || s.Kind == "dynamic" {
		out = runtime.LossScaleSettings(s)
	}
	return out
}

// dataFolder returns the absolute path of the job's folder, so that the binary finds its data in any working directory;
// "" if no path of the job is relative, so that the generated code does not depend on the job's folder.
func dataFolder(j *loaded) string {
	needed := j.Train.Init != "" && j.Train.Init != "random" && !filepath.IsAbs(j.Train.Init)
	for _, s := range slices.Concat(j.Data.Train, j.Data.Valid.Files) {
		path := s.Path
		if !strings.HasPrefix(path, "goroot:") && !filepath.IsAbs(path) {
			path = filepath.Join(j.Data.Root, path)
			needed = needed || !filepath.IsAbs(path) && !strings.HasPrefix(path, "$")
		}
	}
	if !needed {
		return ""
	}
	if abs, err := filepath.Abs(j.Dir); err == nil {
		return abs
	}
	return j.Dir
}

func dataFiles(sources spec.Sources) (files []runtime.File) {
	for _, s := range sources {
		files = append(files, runtime.File{Path: s.Path, Weight: s.Weight})
	}
	return files
}

// trained returns the description of the model for the binary.
func trained(j *loaded, p costmodel.Predict) runtime.Model {
	return runtime.Model{Name: j.Config.Name, Hash: modelHash(j), Params: j.Config.Params(), Layers: j.Config.Layers,
		Vocab: j.Config.Vocab, SeqLen: j.Train.SeqLen,
		Dropout:   [3]float64{j.Config.DropEmbd, j.Config.DropResid, j.Config.DropAttn},
		FlopsStep: p.ModelTFLOPS * 1e12 * float64(p.StepS) * float64(j.Hardware.Devices())}
}

// modelHash returns a hash of the model's logical graph, which does not depend on the plan. Dropout, precision and the
// sequence length are left out, because parameters do not depend on them: they can change when a run is resumed.
func modelHash(j *loaded) string {
	const length = 16
	c := *j.Config
	c.DropEmbd, c.DropResid, c.DropAttn = 0, 0, 0
	m := zoo.Build("", c, zoo.Options{SeqLen: length, Batch: 1, Elem: ir.F32})
	sum := sha256.Sum256([]byte(m.String()))
	return hex.EncodeToString(sum[:])[:16]
}

// planTable returns the plan, its inputs and its prediction for the binary.
func planTable(j *loaded, best search.Priced) runtime.Plan {
	p, q, hashes := best.Plan, best.Plan.Precision, j.inputs().Hashes()
	return runtime.Plan{DP: p.DP, TP: p.TP, PP: p.PP, CP: p.CP, EP: p.EP, ETP: p.ETP, VPP: p.VPP, SP: p.SP,
		CPKind: p.CPKind,
		Zero:   p.Zero, ZeroGroup: p.ZeroGroup, MicroBatch: p.MicroBatch, MicroBatches: p.MicroBatches,
		Schedule:  p.Schedule,
		Recompute: p.Recompute, RecomputeLayers: p.RecomputeLayers, RecomputeEvery: p.RecomputeEvery,
		RecomputeSplit: p.RecomputeSplit,
		StageLayers:    p.JSON()["stage_layers"].([]int), AxisOrder: p.JSON()["axis_order"].([]string),
		Offload:  p.JSON()["offload"].([]string),
		MoESlack: p.MoESlack, Precision: runtime.Precision{Compute: q.Compute.String(), Params: q.Params.String(),
			Grads:  q.Grads.String(),
			Reduce: q.Reduce.String(), Master: q.Master.String(), Moments: q.Moments.String()},
		Text: p.String(), Cluster: planner.ClusterText(j.Hardware),
		DecidedFrom: runtime.DecidedFrom{Model: hashes["model"], Train: hashes["train"], Cluster: hashes["cluster"],
			Objective: hashes["objective"], Plan: hashes["plan"]},
		StepSeconds: float64(best.Predict.StepS), MemoryBytes: best.Predict.MemoryBytes.Total}
}

// expected returns the prediction that the binary compares its steps with: for a CPU, where it runs, whatever the
// cluster of the plan. It is zero if the plan cannot be priced on a CPU.
func (j *loaded) expected(best search.Priced) lock.Expect {
	c, p := j.Hardware, best.Predict
	if !c.IsCPU() {
		var err error
		c, p, err = j.onCPU(best.Plan)
		if err != nil {
			return lock.Expect{}
		}
	}
	d, _ := c.Device(j.Train.Precision.IR().Compute)
	return lock.Expect{StepS: p.StepS, StepError: math.Round(1e4*float64(p.StepSHigh/p.StepS-1)) / 1e4,
		TokensPerS: p.TokensPerS, MemoryBytes: p.MemoryBytes.Total, PeakFlops: d.Peak}
}

// onCPU prices a plan on the catalogue's CPU, with one device per rank.
func (j *loaded) onCPU(plan ir.Plan) (*costmodel.Cluster, costmodel.Predict, error) {
	c, err := costmodel.Resolve(costmodel.Ref{Node: "cpu", Nodes: 1, Devices: plan.Ranks()}, nil, nil)
	if err != nil {
		return nil, costmodel.Predict{}, err
	}
	question := *j.Problem()
	question.Cluster = c
	p, err := search.Price(&question, plan)
	return c, p, err
}
