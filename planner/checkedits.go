package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// Edit is a small change of the checked plan.
type Edit struct {
	Keys     []string          `json:"keys"` // of the plan, that the edit sets
	Set      map[string]any    `json:"set"`
	From     map[string]any    `json:"from"` // their values before
	Plan     Plan              `json:"plan"`
	Predict  costmodel.Predict `json:"predict"`
	Fits     bool              `json:"fits"`
	NoFit    *search.NoFit     `json:"no_fit"`    // null if it fits
	SlowerBy *float64          `json:"slower_by"` // fraction of the checked plan's step; null if that is illegal
	// MemoryChange is in addition to the checked plan's memory, in bytes; null if that is illegal.
	MemoryChange *int64 `json:"memory_change_bytes"`
	// SlowerThanBest is a fraction of the best plan's step; null if none fits.
	SlowerThanBest *float64 `json:"slower_than_best"`
	Message        string   `json:"message"` // what changes, in words
}

// planEdit is an edit as the editor finds it.
type planEdit struct {
	set    map[string]string
	keys   []string // of set, in the order of editedKeys
	priced search.Priced
}

// words returns the edit in words: "tp 4 → 2 · no sp".
func (e *planEdit) words(from *ir.Plan) string {
	old, now := from.JSON(), e.priced.Plan.JSON()
	var words []string
	for _, key := range e.keys {
		switch now[key].(type) {
		case int, string:
			if key != "recompute" && key != "recompute_layers" {
				words = append(words, fmt.Sprintf("%s %v → %v", key, old[key], now[key]))
			}
		default:
			words = append(words, keyWords(key, now[key]))
		}
	}
	if slices.Contains(e.keys, "recompute") || slices.Contains(e.keys, "recompute_layers") {
		to := strings.TrimPrefix(e.priced.Plan.RecomputeWords(), "recompute ")
		words = append(words, from.RecomputeWords()+" → "+to)
	}
	to := &e.priced.Plan
	if from.MicroBatch != to.MicroBatch && !slices.Contains(e.keys, "micro_batch") { // chosen, because no key says it
		words = append(words, fmt.Sprintf("micro_batch %d×%d", to.MicroBatch, to.MicroBatches))
	}
	return strings.Join(words, " · ")
}

// addEdits adds the edits of a plan to a check, sorted by what they are worth.
func (c *Check) addEdits(edits []planEdit, k *checker, best *search.Priced) {
	slices.SortStableFunc(edits, compareEdits)
	from := k.from()
	for i := range edits {
		c.Edits = append(c.Edits, newEdit(&edits[i], &from, k.yours, best))
	}
}

// compareEdits orders edits that fit first, the fastest first, then those that exceed memory less.
func compareEdits(a, b planEdit) int {
	m, n := a.priced.Predict.MemoryBytes, b.priced.Predict.MemoryBytes
	return cmp.Or(cmp.Compare(m.Over(), n.Over()), cmp.Compare(a.priced.Predict.StepS, b.priced.Predict.StepS),
		cmp.Compare(len(a.keys), len(b.keys)))
}

// newEdit returns an edit of a plan. yours is that plan, or nil if it is illegal.
func newEdit(e *planEdit, from *ir.Plan, yours, best *search.Priced) Edit {
	p := &e.priced
	out := Edit{Keys: e.keys, Set: map[string]any{}, From: map[string]any{}, Plan: Plan{p.Plan}, Predict: p.Predict,
		Fits: p.Fits()}
	if yours != nil {
		by, more := slowerBy(p, yours), p.Predict.MemoryBytes.Total-yours.Predict.MemoryBytes.Total
		out.SlowerBy, out.MemoryChange = &by, &more
	}
	if best != nil {
		by := slowerBy(p, best)
		out.SlowerThanBest = &by
	}
	old, now := from.JSON(), p.Plan.JSON()
	for _, key := range e.keys {
		out.Set[key], out.From[key] = now[key], old[key]
	}
	out.Message = e.words(from)
	if !out.Fits {
		m := p.Predict.MemoryBytes
		out.NoFit = &search.NoFit{OverBytes: m.Over(), Part: m.Largest(), Stage: p.Stage}
	}
	return out
}

// equalValues reports whether two values of a key are equal.
func equalValues(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
