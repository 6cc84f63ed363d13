package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/planner"
)

// Document is the planner's document with what only screens show.
type Document struct {
	*planner.Document
	Head Header `json:"-"`
}

// NewDocument returns a decision on a job as a document with its screen's header. l is the job's lock.
func NewDocument(q *planner.Question, found *planner.Decision, l *lock.Job) *Document {
	d := &Document{Document: planner.NewDocument(found)}
	d.Lock = l.State()
	d.Head = newHeader(q, l.Note())
	if source := d.ErrorBarSource(); source != "" {
		d.Head.barSource = fmt.Sprintf("%s (%s)", strings.TrimSpace(spread(d.Predict)), source)
	}
	return d
}

// adviceLines returns the document's advice of some kinds, each under its label.
func (d *Document) adviceLines(label func(planner.AdviceKind) string, kinds ...planner.AdviceKind) string {
	var b strings.Builder
	for _, a := range d.Advice() {
		if slices.Contains(kinds, a.Kind) {
			b.WriteString(layout.Prose(label(a.Kind), 9, a.Message))
		}
	}
	return b.String()
}

// lowerLabel and upperLabel are the labels of advice on the screens of plan and of explain.
func lowerLabel(k planner.AdviceKind) string { return string(k) }
func upperLabel(k planner.AdviceKind) string { return strings.ToUpper(string(k)) }

// A share is a named part of the step's time.
type share struct {
	name  string
	value float64 // seconds
}

// shares are the parts of a step that are there, the largest first, other last.
func shares(t costmodel.Time) (out []share) {
	for _, name := range costmodel.TimeParts {
		if v := float64(t.Part(name)); v > 0 {
			out = append(out, share{name, v})
		}
	}
	rank := func(s share) float64 {
		if s.name == "other" {
			return 0
		}
		return s.value
	}
	slices.SortStableFunc(out, func(a, b share) int { return cmp.Compare(rank(b), rank(a)) })
	return out
}
