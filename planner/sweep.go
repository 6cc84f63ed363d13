package planner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// Sweep asks a question for several values of one key.
type Sweep struct {
	Key    string // one of SweepKeys
	Values []int  // in ascending order; nil if From and To say a range
	From   int    // of a range, which doubles up to To
	To     int
}

// sweepKeys are the keys of a sweep. set puts the question of one value into p, or says why there is none.
var sweepKeys = []struct {
	key string
	set func(r *sweepRun, p *search.Problem, value int) error
}{
	{"gpus", func(r *sweepRun, p *search.Problem, n int) error {
		c, err := r.question.clusterOf(n)
		p.Cluster = c
		return err
	}},
	{"nodes", func(r *sweepRun, p *search.Problem, n int) error {
		c, err := r.question.clusterOfNodes(n, r.question.FullNode())
		p.Cluster = c
		return err
	}},
	{"global_batch", func(r *sweepRun, p *search.Problem, n int) error {
		p.GlobalBatch = n
		_, err := r.withField("train.global_batch", n)
		return err
	}},
	{"seq_len", func(r *sweepRun, p *search.Problem, n int) error {
		q, err := r.withField("train.seq_len", n)
		if err == nil {
			p.Model = q.Model()
		}
		return err
	}},
}

// SweepKeys returns the keys that can be swept.
func SweepKeys() (keys []string) {
	for _, k := range sweepKeys {
		keys = append(keys, k.key)
	}
	return keys
}

// IsOfDevices reports whether the swept values are numbers of devices or nodes.
func (s Sweep) IsOfDevices() bool { return s.Key == "gpus" || s.Key == "nodes" }

// ValuesFor returns the sweep's values for a question. Those of a range double from its beginning, and its end is the
// last; numbers of devices beyond one node are whole nodes.
func (s Sweep) ValuesFor(q *Question) []int {
	if s.Values != nil {
		return s.Values
	}
	per := 1
	if s.Key == "gpus" && !q.Hardware.IsCPU() {
		per = q.FullNode()
	}
	end := s.To
	if end > per {
		end = end / per * per
	}
	var out []int
	for n := s.From; n < end; n *= 2 {
		if n > per {
			n = (n + per - 1) / per * per
		}
		if n < end {
			out = append(out, n)
		}
	}
	if end >= s.From {
		out = append(out, end)
	}
	return out
}

// SweepDocument is a sweep as `planc plan --sweep --json` prints it.
type SweepDocument struct {
	Schema  int           `json:"schema"`
	Planc   string        `json:"planc"` // version of the program that made it
	Model   ModelSummary  `json:"model"`
	Engine  string        `json:"engine"`
	Sweep   string        `json:"sweep"` // the key
	Rows    []SweepRow    `json:"rows"`
	Search  SearchSummary `json:"search"`            // sums over all searches
	Scaling *Scaling      `json:"scaling,omitempty"` // present if numbers of devices are swept and two fit

	// what is unusual about values but not about the job itself; see [Question.Notes]
	Notes []string `json:"notes,omitempty"`

	NodeDevices int  `json:"-"` // of a whole node
	IsCPU       bool `json:"-"`
	Searches    int  `json:"-"`
}

// SweepRow is the answer for one value.
type SweepRow struct {
	Value   int                `json:"value"`
	Cluster *ClusterSummary    `json:"cluster"` // null if there is no such cluster
	Fits    bool               `json:"fits"`
	Plan    *Plan              `json:"plan"`    // null if none is legal
	Predict *costmodel.Predict `json:"predict"` // of the plan that lacks least, if none fits
	// tokens per second and device, over the first row's
	Efficiency     *float64      `json:"efficiency"`
	Training       *Training     `json:"training"`                // null if the job does not say how long it is
	CostPerBillion *float64      `json:"cost_per_billion_tokens"` // in Currency; null if the cluster has no price
	NoFit          *search.NoFit `json:"no_fit"`
	Message        string        `json:"message"` // why there is no plan
	Weak           *WeakRow      `json:"weak,omitempty"`
	// NearBatch gains notably more, for a number of devices that does not divide the batch.
	NearBatch *NearQuestion `json:"near_batch,omitempty"`

	Currency string `json:"-"` // of CostPerBillion
	JobBatch int    `json:"-"` // sequences of the job's own batch
}

// sweepRun is a sweep of one question.
type sweepRun struct {
	Sweep
	question *Question
	index    int            // of the key in sweepKeys
	base     search.Problem // of the question itself
	series   search.Series
	document *SweepDocument
}

// RunSweep answers a question for every value of a sweep. The caller fills in Planc. It fails if the cluster cannot
// run such a job at all; a value for which there is no plan is a row with a message.
func RunSweep(q *Question, s Sweep) (*SweepDocument, error) {
	d := &SweepDocument{Schema: 1, Engine: q.Train.Engine, Sweep: s.Key, Rows: []SweepRow{}, Model: modelSummary(q),
		NodeDevices: q.WholeNode(), IsCPU: q.Hardware.IsCPU()}
	d.Search.Restricted = []string{}
	start := time.Now()
	r := &sweepRun{Sweep: s, question: q, index: slices.Index(SweepKeys(), s.Key), base: *q.Problem(), document: d}
	for _, v := range s.ValuesFor(q) {
		row, err := r.row(v)
		if err != nil {
			return nil, err
		}
		d.Rows = append(d.Rows, row)
		d.Searches++
	}
	if s.IsOfDevices() {
		if err := r.addWeakRows(); err != nil {
			return nil, err
		}
	}
	d.Search.Seconds = float64(costmodel.Seconds(time.Since(start).Seconds()).Rounded())
	d.setEfficiencies()
	if s.IsOfDevices() {
		d.Scaling = d.scaling()
	}
	return d, nil
}

// withField returns the question with another value of a field, and notes what is unusual about it.
func (r *sweepRun) withField(field string, n int) (*Question, error) {
	overrides := []spec.Override{spec.SetFlag(fmt.Sprintf("%s=%d", field, n))}
	if field == "train.global_batch" && r.question.Has("train.global_batch_tokens") {
		overrides = append(overrides, spec.SetFlag("train.global_batch_tokens=null"))
	}
	q, err := r.question.Override(overrides...)
	if err != nil {
		return nil, err
	}
	for _, note := range q.Notes() {
		if !slices.Contains(r.document.Notes, note) && !slices.Contains(r.question.Notes(), note) {
			r.document.Notes = append(r.document.Notes, note)
		}
	}
	return q, nil
}

// row answers one value.
func (r *sweepRun) row(v int) (SweepRow, error) {
	row, p, d := SweepRow{Value: v}, r.base, r.document
	if err := sweepKeys[r.index].set(r, &p, v); err != nil {
		row.Message = firstMessage(err)
		return row, nil
	}
	cluster := clusterSummary(p.Cluster)
	row.Cluster, row.JobBatch = &cluster, p.GlobalBatch
	best, counts, err := r.series.Best(&p)
	d.Search.add(counts)
	d.Search.restrict(search.Restricted(&p))
	var illegal *search.IllegalError
	var unfit *search.NoPlan
	switch {
	case errors.As(err, &illegal):
		row.Message = illegal.Reasons[0].Message
		return row, nil
	case errors.As(err, &unfit):
		best, row.NoFit = unfit.Nearest, &unfit.NoFit
		row.Message = overText(row.NoFit, best.Plan.PP > 1)
	case isTooMany(err):
		row.Message = err.Error()
		return row, nil
	case err != nil:
		return row, r.question.SearchError(err)
	}
	row.Fits, row.Plan, row.Predict = err == nil, &Plan{best.Plan}, &best.Predict
	if row.Fits {
		row.NearBatch = r.nearBatch(&p, best)
		row.Training = trainingOf(p.Cluster, best.Predict, r.tokens(v))
		if t := trainingOf(p.Cluster, best.Predict, 1e9); t != nil && t.Cost != nil {
			row.CostPerBillion, row.Currency = t.Cost, t.Currency
		}
	}
	return row, nil
}

// nearBatch returns the near batch with which a row's devices train on notably more tokens per second, if they do not
// divide the job's batch; nil if there is none, or if batches are swept.
func (r *sweepRun) nearBatch(p *search.Problem, best search.Priced) *NearQuestion {
	if r.Key == "global_batch" {
		return nil
	}
	l, ok := r.series.NearBatch(p, best)
	if !ok {
		return nil
	}
	return &NearQuestion{Set: r.question.fieldsToSet(l.Set), Speedup: l.Speedup, Plan: Plan{l.Best.Plan},
		Predict: l.Best.Predict, what: nearWords(l)}
}

// tokens returns the number of tokens that the job trains on with a swept value; 0 if the job does not say.
func (r *sweepRun) tokens(v int) float64 {
	batch, seq := r.question.Train.GlobalBatch, r.question.Train.SeqLen
	switch r.Key {
	case "global_batch":
		batch = v
	case "seq_len":
		seq = v
	}
	return r.question.TrainTokens(batch, seq)
}

// firstMessage returns an input error without its position and code.
func firstMessage(err error) string {
	var diags ir.Diags
	if errors.As(err, &diags) {
		return diags[0].Msg
	}
	return err.Error()
}

// add adds what another search looked at.
func (s *SearchSummary) add(n search.Counts) {
	s.Space += n.Space
	s.Infeasible += n.Infeasible
	s.Bounded += n.Bounded
	s.Priced += n.Priced
	s.Simulated += n.Simulated
}

// restrict adds what another search leaves out.
func (s *SearchSummary) restrict(texts []string) {
	for _, t := range texts {
		if !slices.Contains(s.Restricted, t) {
			s.Restricted = append(s.Restricted, t)
		}
	}
}

// First returns the first row that fits, with which the others are compared; nil if none fits.
func (d *SweepDocument) First() *SweepRow {
	for i := range d.Rows {
		if d.Rows[i].Fits {
			return &d.Rows[i]
		}
	}
	return nil
}

// setEfficiencies fills in each row's tokens per second and device, over those of the first row that fits.
func (d *SweepDocument) setEfficiencies() {
	first := d.First()
	for i := range d.Rows {
		if r := &d.Rows[i]; r.Fits {
			e := r.Predict.TokensPerSGPU / first.Predict.TokensPerSGPU
			r.Efficiency = &e
		}
	}
}
