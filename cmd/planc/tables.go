package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/runtime"
)

// settings are the job's run-time fields as the binary has them.
func settings(j *loaded) runtime.Settings {
	t := j.Train
	return runtime.Settings{
		Dir: dataFolder(j),
		Data: runtime.DataSettings{Root: j.Data.Root, Train: dataFiles(j.Data.Train), Valid: dataFiles(j.Data.Valid.Files),
			ValidFraction: j.Data.Valid.Fraction, Tokenizer: j.Data.Tokenizer},
		Train: runtime.TrainSettings{
			Steps: t.Steps, Epochs: t.Epochs, Tokens: t.Tokens, Init: t.Init, Seed: t.Seed, OnNonfinite: t.OnNonfinite,
			Optimizer: runtime.OptimizerSettings{LR: t.Optimizer.LR, Betas: t.Optimizer.Betas, Eps: t.Optimizer.Eps,
				WeightDecay: t.Optimizer.WeightDecay, Momentum: t.Optimizer.Momentum, ClipNorm: t.Optimizer.ClipNorm},
			Schedule:   runtime.ScheduleSettings{Kind: t.Schedule.Kind, Warmup: t.Schedule.Warmup, MinLR: t.Schedule.MinLR, Decay: t.Schedule.Decay},
			Eval:       runtime.EvalSettings{Every: t.Eval.Every, Batches: t.Eval.Batches, Sample: t.Eval.Sample},
			Checkpoint: runtime.CheckpointSettings{Every: t.Checkpoint.Every},
		},
	}
}

// dataFolder is the job's folder, from which the binary finds its data wherever it is called; "" if no path of the
// job starts there, so that the generated code is the same wherever the job lies.
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

// trained is what the binary says of its model.
func trained(j *loaded, p costmodel.Predict) runtime.Model {
	return runtime.Model{Name: j.Config.Name, Params: j.Config.Params(), Layers: j.Config.Layers, Vocab: j.Config.Vocab, SeqLen: j.Train.SeqLen,
		FlopsStep: p.ModelTFLOPS * 1e12 * float64(p.StepS) * float64(j.cluster.Devices())}
}

// planTable is the plan as the binary prints it.
func planTable(p ir.Plan) runtime.Plan {
	return runtime.Plan{DP: p.DP, TP: p.TP, PP: p.PP, CP: p.CP, EP: p.EP, ETP: p.ETP, VPP: p.VPP, SP: p.SP, CPKind: p.CPKind,
		Zero: p.Zero, ZeroGroup: p.ZeroGroup, MicroBatch: p.MicroBatch, MicroBatches: p.MicroBatches, Schedule: p.Schedule,
		Recompute: p.Recompute, RecomputeLayers: p.RecomputeLayers, RecomputeEvery: p.RecomputeEvery, Text: p.String()}
}

// expected is what the binary compares its steps with.
func (j *loaded) expected(p costmodel.Predict) runtime.Predict {
	d, _ := j.cluster.Device(j.Train.Precision.IR().Compute)
	return runtime.Predict{StepSeconds: float64(p.StepS), TokensPerSecond: p.TokensPerS, MemoryBytes: p.MemoryBytes.Total, PeakFlops: float64(d.Peak)}
}
