package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// sweepable are the keys of --sweep: each puts the question of one value into p, or says why there is none.
var sweepable = []struct {
	key    string
	change func(q *sweeping, p *search.Problem, n int) error
}{
	{"gpus", func(q *sweeping, p *search.Problem, n int) error {
		on, err := q.job.OnDevices(n)
		if err == nil {
			p.Cluster = on.Hardware
		}
		return err
	}},
	{"nodes", func(q *sweeping, p *search.Problem, n int) error {
		on, err := q.job.OnNodes(n, q.job.FullNode())
		if err == nil {
			p.Cluster = on.Hardware
		}
		return err
	}},
	{"global_batch", func(q *sweeping, p *search.Problem, n int) error {
		p.GlobalBatch = n
		_, err := q.with("train.global_batch", n)
		return err
	}},
	{"seq_len", func(q *sweeping, p *search.Problem, n int) error {
		j, err := q.with("train.seq_len", n)
		if err == nil {
			p.Model = j.Model()
		}
		return err
	}},
}

// sweeping is a sweep under way.
type sweeping struct {
	sweep
	app    *app
	args   []string
	flags  jobFlags
	job    *loaded
	base   search.Problem // the job's own
	series search.Series
}

// with is the job with another value of a field, as --set would have it.
func (q *sweeping) with(field string, n int) (*loaded, error) {
	flags := q.flags
	flags.set = append(slices.Clone(flags.set), fmt.Sprintf("%s=%d", field, n))
	if field == "train.global_batch" && q.job.Has("train.global_batch_tokens") {
		flags.set = append(flags.set, "train.global_batch_tokens=null")
	}
	return q.app.load(q.args, flags)
}

// sweep is what --sweep asks: a key and its values.
type sweep struct {
	key    string
	index  int // in sweepable
	values []int
	lo, hi int // of a range, else 0
}

// maxSweep is how many values one sweep may have, and how large one may be.
const maxSweep, largestSwept = 256, 1 << 20

// parseSweep reads gpus=8..1024 or gpus=8,16,24; a key may be written as in a job, train.seq_len.
func parseSweep(text string) (sweep, error) {
	key, list, _ := strings.Cut(text, "=")
	key = strings.TrimPrefix(key, "train.")
	s := sweep{key: key, index: -1}
	var keys []string
	for i, row := range sweepable {
		keys = append(keys, row.key)
		if row.key == key {
			s.index = i
		}
	}
	if s.index < 0 {
		return s, inputErrorf(BadFlag, ir.Nearest(key, keys),
			"--sweep %s: %s cannot be swept; keys are %s, as in gpus=8..1024 or gpus=8,16,24", text, key,
			strings.Join(keys, ", "))
	}
	wrong := func(what string) error {
		return inputErrorf(BadFlag, "", "--sweep %s: %s; it is written as %s=8..1024 or %s=8,16,24", text,
			what, key, key)
	}
	lo, hi, isRange := strings.Cut(list, "..")
	if isRange {
		var ok, also bool
		s.lo, ok = count(lo)
		s.hi, also = count(hi)
		if ok && also && s.lo > s.hi {
			return s, wrong(fmt.Sprintf("%q runs backwards, from %d to %d", list, s.lo, s.hi))
		}
		if !ok || !also {
			return s, wrong(fmt.Sprintf("%q is no range of numbers from 1 to %d", list, largestSwept))
		}
		return s, nil
	}
	for _, word := range strings.Split(list, ",") {
		n, ok := count(word)
		if !ok {
			return s, wrong(fmt.Sprintf("%q is no number from 1 to %d", word, largestSwept))
		}
		s.values = append(s.values, n)
	}
	slices.Sort(s.values)
	s.values = slices.Compact(s.values)
	if len(s.values) > maxSweep {
		return s, wrong(fmt.Sprintf("%d values are more than %d", len(s.values), maxSweep))
	}
	return s, nil
}

// count is a number of a sweep.
func count(word string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(word))
	return n, err == nil && n > 0 && n <= largestSwept
}

// over are the sweep's values on the job: those of a range double from its beginning, and its end; devices beyond one
// node are whole nodes.
func (s sweep) over(j *loaded) []int {
	if s.values != nil {
		return s.values
	}
	per := 1
	if s.key == "gpus" && !j.Hardware.IsCPU() {
		per = j.FullNode()
	}
	end := s.hi
	if end > per {
		end = end / per * per
	}
	var out []int
	for n := s.lo; n < end; n *= 2 {
		if n > per {
			n = (n + per - 1) / per * per
		}
		if n < end {
			out = append(out, n)
		}
	}
	if end >= s.lo {
		out = append(out, end)
	}
	return out
}

// sweepRow is the answer for one value.
type sweepRow struct {
	Value      int                `json:"value"`
	Cluster    *clusterDoc        `json:"cluster"` // null where there is no such one
	Fits       bool               `json:"fits"`
	Plan       map[string]any     `json:"plan"`    // null where none is legal
	Predict    *costmodel.Predict `json:"predict"` // of the plan that comes nearest, where none fits
	Efficiency *float64           `json:"efficiency"`
	Training   *trainingDoc       `json:"training"`
	Billion    *float64           `json:"cost_per_billion_tokens"` // null if the cluster has no price
	NoFit      *search.NoFit      `json:"no_fit"`
	Message    string             `json:"message"` // why there is no plan
	Weak       *weakDoc           `json:"weak,omitempty"`
	// gains notably more where the devices do not divide the batch
	NearBatch *fasterDoc `json:"near_batch,omitempty"`

	plan       ir.Plan
	restricted []string
	currency   string // of Billion
}

// sweepDoc is plan --sweep --json.
type sweepDoc struct {
	Schema int        `json:"schema"`
	Planc  string     `json:"planc"`
	Model  modelDoc   `json:"model"`
	Engine string     `json:"engine"`
	Sweep  string     `json:"sweep"`
	Rows   []sweepRow `json:"rows"`
	Search searchDoc  `json:"search"`

	Scaling *scalingDoc `json:"scaling,omitempty"` // of numbers of devices

	title    string
	node     int // devices of a whole one
	cpu      bool
	searches int
}

// sweepAll answers every value of a sweep.
func (q *sweeping) all() (*sweepDoc, error) {
	j, s := q.job, q.sweep
	n := j.Config.Params()
	d := &sweepDoc{Schema: 1, Planc: version, Engine: j.Train.Engine, Sweep: s.key, Rows: []sweepRow{},
		Model: modelDoc{Name: j.Config.Name, Params: n, ParamsActive: j.Config.ActiveParams(), Layers: j.Config.Layers},
		title: withEngine(j.sweepTitle(s), "engine "+j.Train.Engine, j.measuredWords()), node: j.WholeNode(),
		cpu: j.Hardware.IsCPU()}
	values := s.over(j)
	if len(values) == 0 {
		return nil, inputErrorf(BadFlag, "",
			"--sweep %s=%d..%d: no number of devices in it is a whole number of nodes: %s has %d each", s.key, s.lo,
			s.hi, j.Hardware.Name, j.FullNode())
	}
	d.Search.Restricted = []string{}
	start := time.Now()
	err := q.app.runSearches(func() error {
		q.base = *j.Problem()
		for _, v := range values {
			row, counts, err := q.one(v)
			if err != nil {
				return err
			}
			d.Rows = append(d.Rows, row)
			d.Search.add(counts)
			d.Search.restrict(row.restricted)
			d.searches++
		}
		if s.scales() {
			return q.weak(d)
		}
		return nil
	})
	d.Search.Seconds = float64(costmodel.Seconds(time.Since(start).Seconds()).Rounded())
	d.compare()
	if s.scales() {
		d.Scaling = d.scaling()
	}
	return d, err
}

// add sums what searches did.
func (d *searchDoc) add(n search.Counts) {
	d.Space += n.Space
	d.Infeasible += n.Infeasible
	d.Bounded += n.Bounded
	d.Priced += n.Priced
	d.Simulated += n.Simulated
}

// restrict adds what one search leaves out.
func (d *searchDoc) restrict(texts []string) {
	for _, t := range texts {
		if !slices.Contains(d.Restricted, t) {
			d.Restricted = append(d.Restricted, t)
		}
	}
}

// one answers one value.
func (q *sweeping) one(v int) (sweepRow, search.Counts, error) {
	row, p := sweepRow{Value: v}, q.base
	if err := sweepable[q.index].change(q, &p, v); err != nil {
		row.Message = reason(err)
		return row, search.Counts{}, nil
	}
	c := p.Cluster
	row.restricted = search.Restricted(&p)
	row.Cluster = &clusterDoc{Name: c.Name, GPU: c.GPU.Name, Devices: c.Devices(), Nodes: c.Nodes}
	best, counts, err := q.series.Best(&p)
	var illegal *search.IllegalError
	var unfit *search.NoPlan
	switch {
	case errors.As(err, &illegal):
		row.Message = illegal.Reasons[0].Message
		return row, counts, nil
	case errors.As(err, &unfit):
		best, row.NoFit = unfit.Nearest, &unfit.NoFit
		row.Message = overText(row.NoFit, best.Plan.PP > 1)
	case isTooMany(err):
		row.Message = err.Error()
		return row, counts, nil
	case err != nil:
		return row, counts, q.job.SearchError(err)
	}
	row.Fits, row.plan, row.Plan, row.Predict = err == nil, best.Plan, best.Plan.JSON(), &best.Predict
	if row.Fits {
		row.NearBatch = q.nearBatch(&p, best)
		row.Training = training(c, best.Predict, q.tokens(q.job, v))
		if t := training(c, best.Predict, 1e9); t != nil && t.Cost != nil {
			row.Billion, row.currency = t.Cost, t.Currency
		}
	}
	return row, counts, nil
}

// reason is a mistake without its place and code.
func reason(err error) string {
	var diags ir.Diags
	if errors.As(err, &diags) {
		return diags[0].Msg
	}
	return err.Error()
}

// tokens are those that the job trains on, where the swept value is v; 0 if it does not say.
func (s sweep) tokens(j *loaded, v int) float64 {
	batch, seq := j.Train.GlobalBatch, j.Train.SeqLen
	switch s.key {
	case "global_batch":
		batch = v
	case "seq_len":
		seq = v
	}
	return j.TrainTokens(batch, seq)
}

// compare fills in each row's tokens a second and device, of the first row's that fits.
func (d *sweepDoc) compare() {
	first := 0.0
	for i := range d.Rows {
		r := &d.Rows[i]
		if !r.Fits {
			continue
		}
		if first == 0 {
			first = r.Predict.TokensPerSGPU
		}
		e := r.Predict.TokensPerSGPU / first
		r.Efficiency = &e
	}
}

func (d *sweepDoc) fits() bool {
	return slices.ContainsFunc(d.Rows, func(r sweepRow) bool { return r.Fits })
}

// sweep is plan --sweep.
func (a *app) sweep(args []string, f jobFlags, text string) error {
	s, err := parseSweep(text)
	if err != nil {
		return err
	}
	if f.cmd.Flags().Changed("top") {
		return inputErrorf(BadFlag, "", "%s takes --sweep or --top: a sweep has one row a value", f.cmd.CommandPath())
	}
	for _, flag := range []string{"update", "locked"} {
		if f.cmd.Flags().Changed(flag) {
			return inputErrorf(BadFlag, "",
				"%s takes --sweep or --%s: a lock holds one plan, and a sweep finds one a value",
				f.cmd.CommandPath(), flag)
		}
	}
	j, err := a.loadHere(args, f)
	if err == nil && j.Objective.Kind != spec.Throughput {
		err = inputErrorf(BadFlag, "", "--sweep prints the fastest plan of each size, and objective %s "+
			"chooses a size; "+
			"one of them is wanted (--set objective=null)", j.Objective.Kind)
	}
	if err == nil {
		err = a.save(j, f)
	}
	if err != nil {
		return err
	}
	q := &sweeping{sweep: s, app: a, args: args, flags: f, job: j}
	d, err := q.all()
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(d)
	} else {
		err = a.print(sweepScreen(d) + scalingScreen(d))
		text := fmt.Sprintf("%s %s in %s: %s", grouped(d.searches), plural(d.searches, "search"),
			seconds(d.Search.Seconds), d.Search.sentence())
		a.notef("%s", strings.TrimSuffix(prose("", 0, text), "\n"))
	}
	if err == nil && !d.fits() {
		err = &noFitError{shown: true, message: fmt.Sprintf("no plan fits: %s, at %s", j.Config.Name,
			noneOf(s.key, d.Rows))}
	}
	return err
}

// noneOf names the values of a sweep at which nothing fits: "gpus=12", "none of 3 values of gpus".
func noneOf(key string, rows []sweepRow) string {
	if len(rows) == 1 {
		return fmt.Sprintf("%s=%d", key, rows[0].Value)
	}
	return fmt.Sprintf("none of %d values of %s", len(rows), key)
}
