package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/cmd/planc/internal/machine"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// Jobs on the catalogue's cpu run on this machine's CPU. Its rates are measured once, in about a second, and saved in
// the user's cache, by CPU model, number of cores, instruction set of the kernels, and cost model. With --no-measure or
// noMeasureVariable, the catalogue's rates are used instead.

// noMeasureVariable is an environment variable that has the effect of --no-measure if it is not empty.
const noMeasureVariable = "PLANC_NO_MEASURE"

// loadJobHere is like load, but prices a job on this machine's CPU at measured rates. Screens use it.
func loadJobHere(ui *console.Console, args []string, f jobFlags) (*loaded, error) {
	j, err := loadJob(ui, args, f)
	if err != nil {
		return nil, err
	}
	return j.atMeasuredRates(thisCPU(ui, j.Cluster.Node, f.noMeasure))
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

// withLocalExpectation returns a decision for a program that runs only on this machine: for the job at measured rates,
// with the step time that they predict. The decision itself was made at the catalogue's rates.
func (j *loaded) withLocalExpectation(d *decision) (*decision, error) {
	if j.MeasuredCPU == nil {
		return d, nil
	}
	chosen := d.job.Hardware
	q, err := j.OnNodes(chosen.Nodes, chosen.Node.Devices)
	if err != nil {
		return nil, err
	}
	price, err := search.Price(q.Problem(), d.Best.Plan)
	if err != nil {
		return nil, q.SearchError(err)
	}
	local := *d
	local.job = j.withQuestion(q)
	local.expect = lock.ExpectOf(q, search.Priced{Plan: d.Best.Plan, Predict: price})
	return &local, nil
}

// searchHere returns the decision that screens show for a job without a lock on a measured CPU: the plan that is best
// at the catalogue's rates, which compile would lock, priced at the measured rates.
func searchHere(ui *console.Console, j *loaded, l *lock.Job) (*decision, error) {
	d, err := searchPlan(ui, j.catalogue)
	switch {
	case err != nil:
		return nil, err
	case d.NoPlan != nil: // the pinned plan does not fit
		d, err = searchPlan(ui, j)
	default:
		d, err = searchWithLocked(ui, j, l, d.Best.Plan)
	}
	if err != nil {
		return nil, err
	}
	d.lock = l
	return d, nil
}

// noteBetterHere notes that another plan is faster than the shown one at this machine's measured rates.
func noteBetterHere(ui *console.Console, found, shown search.Priced, gain float64) {
	ui.Notef("note: at the rates measured here, %s would be %s faster; the plan shown is the one for locks and "+
		"generated code, which is the same on every machine; to choose another plan, pin it in the job's plan section",
		planner.Differences(found.Plan, shown.Plan), quantity.Percent(gain))
}

// thisCPU returns the measurement of this machine's CPU, from the cache or a new one. It returns nil if the job's
// cluster, given by its name, is not this CPU, or if measuring is off.
func thisCPU(ui *console.Console, node string, off bool) *costmodel.ThisCPU {
	if off || os.Getenv(noMeasureVariable) != "" || !costmodel.IsThisCPU(node) {
		return nil
	}
	m := machine.Inspect(os.DirFS("/"))
	if c := machine.CachedCPU(machine.CPUKeyOf(m)); c != nil {
		return c
	}
	start := time.Now()
	measured, err := measureCPU(ui, m)
	if err != nil {
		ui.Notef("note: this CPU could not be measured; using the catalogue's rates for cpu: %v", err)
		return nil
	}
	c := measured.ThisCPU(m)
	saved := machine.SaveCPU(m, c)
	where := "could not be saved: " + fmt.Sprint(saved.Err)
	if saved.Err == nil {
		where = "is saved in " + filepath.ToSlash(saved.File)
	}
	ui.Notef("note: this CPU was measured in %.1f s: %s GFLOP/s per core in f32. The measurement %s; --no-measure "+
		"uses the catalogue's rates instead",
		time.Since(start).Seconds(), amount.Digits(1e3*c.Single, 3), where)
	return c
}
