package binary

import (
	"crypto/sha256"
	"encoding/hex"
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

// SettingsOf returns the job's run-time fields for the binary. Relative paths are relative to dir.
func SettingsOf(q *planner.Question, dir string) runtime.Settings {
	t := q.Train
	return runtime.Settings{
		Dir: dir,
		Data: runtime.DataSettings{Root: q.Data.Root, Train: dataFiles(q.Data.Train),
			Valid:         dataFiles(q.Data.Valid.Files),
			ValidFraction: q.Data.Valid.Fraction, Weights: q.Data.Weights, Sampling: q.Data.Sampling,
			Documents: q.Data.Documents, Tokenizer: q.Data.Tokenizer},
		Train: runtime.TrainSettings{
			Steps: t.Steps, Epochs: t.Epochs, Tokens: t.Tokens, Init: t.Init, Seed: t.Seed, OnNonfinite: t.OnNonfinite,
			OnSpike: t.OnSpike,
			Optimizer: runtime.OptimizerSettings{LR: t.Optimizer.LR, Betas: t.Optimizer.Betas, Eps: t.Optimizer.Eps,
				WeightDecay: t.Optimizer.WeightDecay, Momentum: t.Optimizer.Momentum, ClipNorm: t.Optimizer.ClipNorm},
			Experts: runtime.ExpertSettings{BiasRate: t.Experts.BiasRate},
			Schedule: runtime.ScheduleSettings{Kind: t.Schedule.Kind, Warmup: t.Schedule.Warmup,
				MinLR: t.Schedule.MinLR, Decay: t.Schedule.Decay},
			Eval:       runtime.EvalSettings(t.Eval),
			EarlyStop:  runtime.EarlyStopSettings(t.EarlyStop),
			Checkpoint: runtime.CheckpointSettings(t.Checkpoint),
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

// DataFolder returns the absolute path of the job's folder, so that the binary finds its data in any working directory;
// "" if no path of the job is relative, so that the generated code does not depend on the job's folder.
func DataFolder(q *planner.Question) string {
	needed := q.Train.Init != "" && q.Train.Init != "random" && !filepath.IsAbs(q.Train.Init)
	for _, s := range slices.Concat(q.Data.Train, q.Data.Valid.Files) {
		path := s.Path
		if !strings.HasPrefix(path, "goroot:") && !filepath.IsAbs(path) {
			path = filepath.Join(q.Data.Root, path)
			needed = needed || !filepath.IsAbs(path) && !strings.HasPrefix(path, "$")
		}
	}
	if !needed {
		return ""
	}
	if abs, err := filepath.Abs(q.Dir); err == nil {
		return abs
	}
	return q.Dir
}

func dataFiles(sources spec.Sources) (files []runtime.File) {
	for _, s := range sources {
		files = append(files, runtime.File{Path: s.Path, Weight: s.Weight})
	}
	return files
}

// ModelOf returns the description of the model for the binary.
func ModelOf(q *planner.Question, p costmodel.Predict) runtime.Model {
	return runtime.Model{Name: q.Config.Name, Hash: modelHash(q), Params: q.Config.Params(), Layers: q.Config.Layers,
		Vocab: q.Config.Vocab, SeqLen: q.Train.SeqLen,
		Dropout:   [3]float64{q.Config.DropEmbd, q.Config.DropResid, q.Config.DropAttn},
		FlopsStep: p.ModelTFLOPS * 1e12 * float64(p.StepS) * float64(q.Hardware.Devices())}
}

// modelHash returns a hash of the model's logical graph, which does not depend on the plan. Dropout, precision and the
// sequence length are left out, because parameters do not depend on them: they can change when a run is resumed.
func modelHash(q *planner.Question) string {
	const length = 16
	c := *q.Config
	c.DropEmbd, c.DropResid, c.DropAttn = 0, 0, 0
	m := zoo.Build("", c, zoo.Options{SeqLen: length, Batch: 1, Elem: ir.F32})
	sum := sha256.Sum256([]byte(m.String()))
	return hex.EncodeToString(sum[:])[:16]
}

// PlanOf returns the plan, its inputs and its prediction for the binary.
func PlanOf(q *planner.Question, best search.Priced) runtime.Plan {
	p, elems, hashes := best.Plan, best.Plan.Precision, lock.InputsOf(q).Hashes()
	return runtime.Plan{DP: p.DP, TP: p.TP, PP: p.PP, CP: p.CP, EP: p.EP, ETP: p.ETP, VPP: p.VPP, SP: p.SP,
		CPKind: p.CPKind,
		Zero:   p.Zero, ZeroGroup: p.ZeroGroup, MicroBatch: p.MicroBatch, MicroBatches: p.MicroBatches,
		Schedule:  p.Schedule,
		Recompute: p.Recompute, RecomputeLayers: p.RecomputeLayers, RecomputeEvery: p.RecomputeEvery,
		RecomputeSplit: p.RecomputeSplit,
		StageLayers:    p.JSON()["stage_layers"].([]int), AxisOrder: p.JSON()["axis_order"].([]string),
		Offload:  p.JSON()["offload"].([]string),
		MoESlack: p.MoESlack, Precision: runtime.Precision{Compute: elems.Compute.String(),
			Params: elems.Params.String(),
			Grads:  elems.Grads.String(),
			Reduce: elems.Reduce.String(), Master: elems.Master.String(), Moments: elems.Moments.String()},
		Text: p.String(), Cluster: planner.ClusterText(q.Hardware),
		DecidedFrom: runtime.DecidedFrom{Model: hashes["model"], Train: hashes["train"], Cluster: hashes["cluster"],
			Objective: hashes["objective"], Plan: hashes["plan"]},
		StepSeconds: float64(best.Predict.StepS), MemoryBytes: best.Predict.MemoryBytes.Total}
}
