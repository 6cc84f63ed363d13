package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/runtime/amount"
	"github.com/planc-dev/planc/runtime/cpu"
)

// Jobs on the catalogue's cpu run on this machine's CPU. Its rates are measured once, in about a second, and kept in
// the user's cache, by the CPU's model, its cores, the kernels' instruction set and the cost model. --no-measure and
// noMeasureVariable leave the catalogue's.

// noMeasureVariable does what --no-measure does, if it is not empty.
const noMeasureVariable = "PLANC_NO_MEASURE"

// cpuKey is what a measurement holds for.
type cpuKey struct {
	CPU       string
	Cores     int
	ISA, Arch string
	CostModel int
}

// savedCPU is a measurement as the cache has it.
type savedCPU struct {
	Key cpuKey
	CPU costmodel.ThisCPU
}

func cpuKeyOf(m machine) cpuKey {
	return cpuKey{m.CPU, m.Cores, cpu.InUse().String(), runtime.GOARCH, costmodel.CostModel}
}

// cpuFile returns the file of the cache that has the measurement of a machine's CPU.
func cpuFile(k cpuKey) (string, error) {
	dir, err := build.MeasuredFolder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Append(nil, k))
	return filepath.Join(dir, fmt.Sprintf("cpu-%x.json", sum[:12])), nil
}

// loadHere is load for screens: a job on this machine's CPU is priced by the measured rates.
func (a *app) loadHere(args []string, f jobFlags) (*loaded, error) {
	j, err := a.load(args, f)
	if err != nil {
		return nil, err
	}
	return j.atMeasuredRates(a.thisCPU(j.Cluster.Node, f.noMeasure))
}

// atMeasuredRates returns the job on its cluster at measured rates. Without a measurement (nil) it is the job itself.
func (j *loaded) atMeasuredRates(here *costmodel.ThisCPU) (*loaded, error) {
	if here == nil {
		return j, nil
	}
	m := *j
	m.catalogue = j
	var err error
	m.Question, err = j.WithMeasuredCPU(here)
	return &m, err
}

// atCatalogueRates returns the job as locks, generated code and other machines price it.
func (j *loaded) atCatalogueRates() *loaded {
	if j.MeasuredCPU == nil {
		return j
	}
	return j.catalogue
}

// withLocalExpectation returns the job for the code of a program that runs on this machine alone: its steps are
// compared with what they take at measured rates. The decision is the catalogue's.
func (j *loaded) withLocalExpectation(d *decision) (*loaded, error) {
	if j.MeasuredCPU == nil {
		return j, nil
	}
	m, chosen := *j, j.catalogue.Hardware
	var err error
	m.Question, err = j.OnNodes(chosen.Nodes, chosen.Node.Devices)
	if err != nil {
		return nil, err
	}
	price, err := search.Price(m.Problem(), d.Best.Plan)
	if err != nil {
		return nil, m.SearchError(err)
	}
	d.expect = m.expected(search.Priced{Plan: d.Best.Plan, Predict: price})
	return &m, nil
}

// searchHere is the decision that screens show of a job without a lock on a CPU that was measured: the plan that the
// catalogue's rates choose, as compile would lock it, at the measured rates.
func (a *app) searchHere(j *loaded, l *jobLock) (*decision, error) {
	d, err := a.search(j.catalogue)
	switch {
	case err != nil:
		return nil, err
	case d.Unfit != nil: // pins leave this plan alone
		d, err = a.search(j)
	default:
		d, err = a.searchWithLocked(j, l, d.Best.Plan)
	}
	if err != nil {
		return nil, err
	}
	d.lock = l
	return d, nil
}

// noteBetterHere says that the search would choose a faster plan than the one shown if locks followed this machine's
// measurement.
func (a *app) noteBetterHere(found, shown search.Priced, gain float64) {
	a.notef("note: at the rates measured here %s would be %s faster; the plan shown is the one that locks and "+
		"generated code have on every machine; "+
		"pins in the job's plan section choose another one", planner.Differences(found.Plan, shown.Plan), percent(gain))
}

// thisCPU returns the measurement of this machine's CPU for a job on a cluster of this name: of the cache, else it
// measures. nil: the job is on another cluster, or nothing is to be measured.
func (a *app) thisCPU(node string, off bool) *costmodel.ThisCPU {
	if off || os.Getenv(noMeasureVariable) != "" || !costmodel.IsThisCPU(node) {
		return nil
	}
	m := inspectMachine(os.DirFS("/"))
	if c := cachedCPU(cpuKeyOf(m)); c != nil {
		return c
	}
	start := time.Now()
	_, r, f, err := a.measureCPU(m)
	if err != nil {
		a.notef("note: this CPU could not be measured, and is priced as the catalogue's cpu: %v", err)
		return nil
	}
	c := thisCPUOf(m, r, f)
	kept := saveCPU(m, c)
	where := "could not be kept: " + fmt.Sprint(kept.err)
	if kept.err == nil {
		where = "is kept in " + filepath.ToSlash(kept.file)
	}
	a.notef("note: this CPU was measured in %.1f s: %s GFLOP/s a core in f32. The measurement %s; --no-measure "+
		"prices the catalogue's cpu",
		time.Since(start).Seconds(), amount.Digits(1e3*c.Single, 3), where)
	return c
}

// measuredWords say that the job's cluster is this machine's CPU at measured rates; none if it is not.
func (j *loaded) measuredWords() []string {
	if j.MeasuredCPU == nil {
		return nil
	}
	return []string{fmt.Sprintf("measured: %s GFLOP/s a core", amount.Digits(1e3*j.MeasuredCPU.Single, 3))}
}

// cachedCPU reads a measurement; nil if there is none that can be used.
func cachedCPU(k cpuKey) *costmodel.ThisCPU {
	file, err := cpuFile(k)
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var kept savedCPU
	c := &kept.CPU
	whole := json.Unmarshal(data, &kept) == nil && kept.Key == k
	for _, v := range []float64{c.Single, c.Double, float64(c.Memory), float64(c.Link), c.LatencyUS, c.Matrix,
		c.Overhead} {
		whole = whole && v > 0
	}
	if !whole || c.Cores != k.Cores {
		return nil
	}
	return c
}

// saveResult is where a measurement was kept, or why it was not.
type saveResult struct {
	file string
	err  error
}

// saveCPU writes a measurement to the cache, whole or not at all.
func saveCPU(m machine, c *costmodel.ThisCPU) saveResult {
	k := cpuKeyOf(m)
	file, err := cpuFile(k)
	if err != nil {
		return saveResult{err: err}
	}
	data, err := json.MarshalIndent(savedCPU{k, *c}, "", "  ")
	if err != nil {
		panic("planc: a measurement: " + err.Error())
	}
	partial, err := os.CreateTemp(filepath.Dir(file), ".cpu-*")
	if err != nil {
		return saveResult{err: err}
	}
	_, err = partial.Write(append(data, '\n'))
	if closing := partial.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(partial.Name(), file)
	}
	if err != nil {
		_ = os.Remove(partial.Name())
	}
	return saveResult{file, err}
}

// thisCPUOf is what was measured as the cost model has it, in the digits that cluster files have.
func thisCPUOf(m machine, r *rates, f costmodel.Measured) *costmodel.ThisCPU {
	return &costmodel.ThisCPU{By: r.By, Cores: m.Cores, Single: r.Single, Double: r.Double, Half: r.Half,
		Memory: round(r.Memory), Link: round(r.Link),
		LatencyUS: r.LatencyUS, Matrix: f.Matrix, Overhead: f.Overhead}
}
