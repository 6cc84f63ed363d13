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

// measuredRun is what the metrics of a run say.
type measuredRun struct {
	planner.Measurement
	plan string // that ran; "" in runs of older versions
}

// observeRun reads a planc run: the plan from its job file, the measurements from its metrics.
func observeRun(a *app, args []string, flags jobFlags, q *calibration) error {
	j, err := loadJob(a.Console, args, flags) // the file has the catalogue's rates and fitted factors
	if err != nil {
		return err
	}
	r, err := readRun(a, j, q.from)
	if err != nil {
		return err
	}
	found, err := askPlan(a, j, lockFlags{})
	if err != nil {
		return err
	}
	j = found.job
	q.cluster = j.Hardware
	q.rows = []calibrate.Observation{r.Observation(fmt.Sprintf("%d steps", r.Steps), j.Problem(), found.Best.Plan)}
	if !costmodel.IsFile(j.Cluster.Node) {
		return q.useCatalogueFile()
	}
	q.file, err = a.Read(j.Cluster.Node)
	return err
}

// readRun reads the metrics of a run of a job.
func readRun(a *app, j *loaded, run string) (*measuredRun, error) {
	file := run
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		file = filepath.Join(file, metricsName)
	}
	data, err := a.Read(file)
	if err != nil {
		return nil, ir.Diags{{Pos: ir.Pos{File: file}, Code: spec.NoFile,
			Msg: fmt.Sprintf("the run's metrics cannot be read: %v", ir.FileReason(err))}}.Err()
	}
	if !j.Hardware.IsCPU() && !bytes.Contains(data, []byte(gpuMark)) {
		return nil, ir.Diags{{Pos: j.Pos("cluster"), Code: costmodel.BadCluster,
			Msg: fmt.Sprintf("%s has no GPU metrics (gpu_util), so it was trained on a CPU, or on a machine without "+
				"NVML: train on %s with the driver's libnvidia-ml.so.1; for runs of other engines, use a table of rows",
				run, planner.ClusterText(j.Hardware))}}
	}
	r := measureSteps(data, j.Train.GlobalBatch*j.Train.SeqLen, j.Data.Documents == "separate")
	if r.Steps == 0 {
		return nil, inputErrorf(NothingMeasured, "",
			"%s has no step of %d unmasked tokens, the job's batch, apart from the first step of each attempt", file,
			j.Train.GlobalBatch*j.Train.SeqLen)
	}
	r.Run = run
	return r, nil
}

// metricsLine is a line of metrics.jsonl.
type metricsLine struct {
	Attempt, Step int
	Tokens        int
	StepS         *float64           `json:"step_s"`
	Time          map[string]float64 `json:"time_s"`
	Busy          []float64          `json:"busy_s"`
	Wait          []float64          `json:"wait_s"`
	Memory        int64              `json:"memory_bytes"`
	Event, Plan   string
}

// measureSteps returns the medians of a run's steps. It skips the first step of each attempt, which also fills caches,
// and steps with another number of unmasked tokens. These belong to another job, or have masked tokens, which the
// metric tokens (a total since training began) does not count. With isPadded, samples end with padding, which it does
// not count either, so steps may have fewer.
func measureSteps(data []byte, tokens int, isPadded bool) *measuredRun {
	r := &measuredRun{}
	var steps []metricsLine
	attempt, before := 0, -1
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var l metricsLine
		if json.Unmarshal(in.Bytes(), &l) != nil {
			continue
		}
		if l.Plan != "" {
			r.plan = l.Plan
		}
		if l.StepS == nil || l.Event != "" {
			continue
		}
		n := l.Tokens - before
		if l.Attempt == attempt && (n == tokens || isPadded && n > 0 && n < tokens) && *l.StepS > 0 {
			steps = append(steps, l)
		}
		attempt, before = l.Attempt, l.Tokens
	}
	if len(steps) > 0 {
		r.summarize(steps)
	}
	return r
}

// summarize computes the medians of steps.
func (r *measuredRun) summarize(steps []metricsLine) {
	r.First, r.Last, r.Steps = steps[0].Step, steps[len(steps)-1].Step, len(steps)
	r.StepS = medianOf(steps, func(l *metricsLine) float64 { return *l.StepS })
	for i := range steps {
		r.MemoryBytes = max(r.MemoryBytes, steps[i].Memory)
	}
	steps = slices.DeleteFunc(steps, func(l metricsLine) bool { return l.Time == nil })
	if len(steps) == 0 {
		return
	}
	r.Groups = map[string]float64{}
	sum := 0.0
	for group, parts := range calibrate.Groups {
		if group == "other" {
			continue
		}
		r.Groups[group] = medianOf(steps, func(l *metricsLine) (sum float64) {
			for _, part := range parts {
				sum += l.Time[part]
			}
			return sum
		})
		sum += r.Groups[group]
	}
	r.Groups["other"] = max(0, r.StepS-sum) // medians of the parts do not add up exactly
	r.Ranks = len(steps[0].Busy)
	r.WaitS = medianOf(steps, func(l *metricsLine) (sum float64) {
		for _, x := range l.Wait {
			sum += x / float64(len(l.Wait))
		}
		return sum
	})
	for i := range r.Ranks {
		r.Busy = append(r.Busy, medianOf(steps, func(l *metricsLine) float64 { return l.Busy[min(i, len(l.Busy)-1)] }))
	}
}

// medianOf returns the median of a figure of steps.
func medianOf(steps []metricsLine, figure func(*metricsLine) float64) float64 {
	all := make([]float64, len(steps))
	for i := range steps {
		all[i] = figure(&steps[i])
	}
	slices.Sort(all)
	return (all[len(all)/2] + all[(len(all)-1)/2]) / 2
}
