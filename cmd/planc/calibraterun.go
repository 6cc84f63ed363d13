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

// metricsName is the file of a run's folder that has a line a step.
const metricsName = "metrics.jsonl"

// gpuMark is in the metrics of steps on GPUs alone: a job whose cluster is one of GPUs trains on a CPU too.
const gpuMark = `"gpu_util":`

// observeRun reads a run of planc's: its job says what ran, its metrics how long a step took.
func (a *app) observeRun(args []string, flags jobFlags, q *calibration) error {
	j, err := a.loadHere(args, flags)
	if err != nil {
		return err
	}
	file := q.from
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		file = filepath.Join(file, metricsName)
	}
	data, err := a.read(file)
	if err != nil {
		return ir.Diags{{Pos: ir.Pos{File: file}, Code: spec.NoFile,
			Msg: fmt.Sprintf("the run's metrics cannot be read: %v", ir.FileReason(err))}}.Err()
	}
	if !j.Hardware.IsCPU() && !bytes.Contains(data, []byte(gpuMark)) {
		return ir.Diags{{Pos: j.Pos("cluster"), Code: costmodel.BadCluster,
			Msg: fmt.Sprintf("%s was trained on a CPU, and not on %s: steps on GPUs have gpu_util in their metrics, "+
				"where NVML is there; rows of another runtime's runs come from a table", q.from,
				planner.ClusterText(j.Hardware))}}
	}
	step, n := medianStep(data, j.Train.GlobalBatch*j.Train.SeqLen)
	if n == 0 {
		return inputErrorf(NothingMeasured, "",
			"%s has no steps of %d tokens after the first of each attempt, as the job has them", file,
			j.Train.GlobalBatch*j.Train.SeqLen)
	}
	found, err := a.ask(j, lockFlags{})
	if err != nil {
		return err
	}
	q.cluster = j.Hardware
	q.rows = []calibrate.Observation{{Name: fmt.Sprintf("%d steps", n), Problem: j.Problem(), Plan: found.Best.Plan,
		StepS: step}}
	if !costmodel.IsFile(j.Cluster.Node) {
		return q.useCatalogueFile()
	}
	q.file, err = a.read(j.Cluster.Node)
	return err
}

// medianStep is the median of the steps of a run, the first of each attempt left out: those also fill caches. Steps of
// another number of tokens are another job's.
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
