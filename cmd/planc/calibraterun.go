package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/calibrate"
	"github.com/planc-dev/planc/planner"
)

// metricsName is the file in a run's folder that has one line per step.
const metricsName = "metrics.jsonl"

// gpuMark occurs only in the metrics of steps on GPUs whose machine has NVML. A job for a GPU cluster can also train
// on a CPU.
const gpuMark = `"gpu_util":`

// observeRun reads a planc run: the plan from its job file, the step time from its metrics.
func observeRun(a *app, args []string, flags jobFlags, q *calibration) error {
	j, err := loadJobHere(a.Console, args, flags)
	if err != nil {
		return err
	}
	file := q.from
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		file = filepath.Join(file, metricsName)
	}
	data, err := a.Read(file)
	if err != nil {
		return ir.Diags{{Pos: ir.Pos{File: file}, Code: spec.NoFile,
			Msg: fmt.Sprintf("the run's metrics cannot be read: %v", ir.FileReason(err))}}.Err()
	}
	if !j.Hardware.IsCPU() && !bytes.Contains(data, []byte(gpuMark)) {
		return ir.Diags{{Pos: j.Pos("cluster"), Code: costmodel.BadCluster,
			Msg: fmt.Sprintf("%s has no GPU metrics (gpu_util), so it was trained on a CPU, or on a machine without "+
				"NVML: train on %s with the driver's libnvidia-ml.so.1; for runs of other engines, use a table of rows",
				q.from, planner.ClusterText(j.Hardware))}}
	}
	step, n := medianStep(data, j.Train.GlobalBatch*j.Train.SeqLen)
	if n == 0 {
		return inputErrorf(NothingMeasured, "",
			"%s has no step of %d unmasked tokens, the job's batch, apart from the first step of each attempt", file,
			j.Train.GlobalBatch*j.Train.SeqLen)
	}
	found, err := askPlan(a, j, lockFlags{})
	if err != nil {
		return err
	}
	j = found.job
	q.cluster = j.Hardware
	q.rows = []calibrate.Observation{{Name: fmt.Sprintf("%d steps", n), Problem: j.Problem(), Plan: found.Best.Plan,
		StepS: step}}
	if !costmodel.IsFile(j.Cluster.Node) {
		return q.useCatalogueFile()
	}
	q.file, err = a.Read(j.Cluster.Node)
	return err
}

// medianStep returns the median step time of a run in seconds, and the number of steps. It skips the first step of each
// attempt, which also fills caches, and steps with another number of unmasked tokens. These belong to another job, or
// have masked tokens, which the metric tokens (a total since training began) does not count.
func medianStep(data []byte, tokens int) (seconds float64, n int) {
	type line struct {
		Attempt, Step int
		Tokens        int
		StepS         *float64 `json:"step_s"`
		Event         string
	}
	var all []float64
	attempt, before := 0, -1
	for in := bufio.NewScanner(bytes.NewReader(data)); in.Scan(); {
		var l line
		if json.Unmarshal(in.Bytes(), &l) != nil || l.StepS == nil || l.Event != "" {
			continue
		}
		if l.Attempt == attempt && l.Tokens-before == tokens && *l.StepS > 0 {
			all = append(all, *l.StepS)
		}
		attempt, before = l.Attempt, l.Tokens
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return (all[len(all)/2] + all[(len(all)-1)/2]) / 2, len(all)
}
