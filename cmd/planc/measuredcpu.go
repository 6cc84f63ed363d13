package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
	"github.com/planc-dev/planc/runtime/cpu"
)

// Jobs on the catalogue's cpu run on this machine's CPU. Its rates are measured once, in about a second, and saved in
// the user's cache, by CPU model, number of cores, instruction set of the kernels, and cost model. With --no-measure or
// noMeasureVariable, the catalogue's rates are used instead.

// noMeasureVariable is an environment variable that has the effect of --no-measure if it is not empty.
const noMeasureVariable = "PLANC_NO_MEASURE"

// cpuKey identifies the CPU and the software for which a measurement is valid.
type cpuKey struct {
	CPU       string
	Cores     int
	ISA, Arch string
	CostModel int
}

// savedCPU is a measurement in the cache.
type savedCPU struct {
	Key cpuKey
	CPU costmodel.ThisCPU
}

func cpuKeyOf(m machine) cpuKey {
	return cpuKey{m.CPU, m.Cores, cpu.InUse().String(), runtime.GOARCH, costmodel.CostModel}
}

// cpuFile returns the path of the cached measurement of a CPU.
func cpuFile(k cpuKey) (string, error) {
	dir, err := build.MeasuredFolder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Append(nil, k))
	return filepath.Join(dir, fmt.Sprintf("cpu-%x.json", sum[:12])), nil
}

// loadHere is like load, but prices a job on this machine's CPU at measured rates. Screens use it.
func (a *app) loadHere(args []string, f jobFlags) (*loaded, error) {
	j, err := a.load(args, f)
	if err != nil {
		return nil, err
	}
	return j.atMeasuredRates(a.thisCPU(j.Cluster.Node, f.noMeasure))
}

// atMeasuredRates returns the job with its cluster at measured rates. Without a measurement (nil) it returns the job.
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

// atCatalogueRates returns the job at the catalogue's rates, at which locks and generated code are priced.
func (j *loaded) atCatalogueRates() *loaded {
	if j.MeasuredCPU == nil {
		return j
	}
	return j.catalogue
}

// withLocalExpectation returns the job for a program that runs only on this machine, and sets the expectation of the
// decision to the step time at measured rates. The decision itself was made at the catalogue's rates.
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

// searchHere returns the decision that screens show for a job without a lock on a measured CPU: the plan that is best
// at the catalogue's rates, which compile would lock, priced at the measured rates.
func (a *app) searchHere(j *loaded, l *lock.Job) (*decision, error) {
	d, err := a.search(j.catalogue)
	switch {
	case err != nil:
		return nil, err
	case d.Unfit != nil: // the pinned plan does not fit
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

// noteBetterHere notes that another plan is faster than the shown one at this machine's measured rates.
func (a *app) noteBetterHere(found, shown search.Priced, gain float64) {
	a.notef("note: at the rates measured here, %s would be %s faster; the plan shown is the one for locks and "+
		"generated code, which is the same on every machine; to choose another plan, pin it in the job's plan section",
		planner.Differences(found.Plan, shown.Plan), quantity.Percent(gain))
}

// thisCPU returns the measurement of this machine's CPU, from the cache or a new one. It returns nil if the job's
// cluster, given by its name, is not this CPU, or if measuring is off.
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
		a.notef("note: this CPU could not be measured; using the catalogue's rates for cpu: %v", err)
		return nil
	}
	c := thisCPUOf(m, r, f)
	saved := saveCPU(m, c)
	where := "could not be saved: " + fmt.Sprint(saved.err)
	if saved.err == nil {
		where = "is saved in " + filepath.ToSlash(saved.file)
	}
	a.notef("note: this CPU was measured in %.1f s: %s GFLOP/s per core in f32. The measurement %s; --no-measure "+
		"uses the catalogue's rates instead",
		time.Since(start).Seconds(), amount.Digits(1e3*c.Single, 3), where)
	return c
}

// cachedCPU reads a measurement from the cache; nil if there is no valid one.
func cachedCPU(k cpuKey) *costmodel.ThisCPU {
	file, err := cpuFile(k)
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var saved savedCPU
	c := &saved.CPU
	isValid := json.Unmarshal(data, &saved) == nil && saved.Key == k
	for _, v := range []float64{c.Single, c.Double, float64(c.Memory), float64(c.Link), c.LatencyUS, c.Matrix,
		c.Overhead} {
		isValid = isValid && v > 0
	}
	if !isValid || c.Cores != k.Cores {
		return nil
	}
	return c
}

// saveResult is the file of a saved measurement, or the error.
type saveResult struct {
	file string
	err  error
}

// saveCPU writes a measurement to the cache atomically.
func saveCPU(m machine, c *costmodel.ThisCPU) saveResult {
	k := cpuKeyOf(m)
	file, err := cpuFile(k)
	if err != nil {
		return saveResult{err: err}
	}
	data, err := json.MarshalIndent(savedCPU{k, *c}, "", "  ")
	if err != nil {
		panic("planc: a measurement cannot be encoded: " + err.Error())
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

// thisCPUOf converts a measurement to the cost model's type, rounded as in cluster files.
func thisCPUOf(m machine, r *rates, f costmodel.Measured) *costmodel.ThisCPU {
	return &costmodel.ThisCPU{By: r.By, Cores: m.Cores, Single: r.Single, Double: r.Double, Half: r.Half,
		Memory: round(r.Memory), Link: round(r.Link),
		LatencyUS: r.LatencyUS, Matrix: f.Matrix, Overhead: f.Overhead}
}
