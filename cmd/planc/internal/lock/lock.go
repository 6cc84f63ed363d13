package lock

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/passes/search"
)

// Schema is the version of the format that this package writes and reads.
const Schema = 1

// Sections are the parts of a job that decide its plan. Each has a hash of its own, so that a message can say which one
// changed.
var Sections = []string{"cluster", "model", "objective", "plan", "train"}

// File is a lock.
type File struct {
	CostModel   int               // that made the prediction
	DecidedFrom map[string]string // by section: the hash of its Inputs
	Expect      Expect
	Files       map[string]string // of gen: path from the lock's folder, with slashes, to SHA-256
	Gen         Gen
	Inputs      Inputs
	Plan        ir.Plan
	PlanHash    string // of the plan as planc wrote it: people edit plans
	Planc       string // version
	Predict     costmodel.Predict
	Program     string // hash of the program's text form
	Search      search.Counts

	doc *strict.Doc
}

// Inputs are the deciding fields by section and path below it, as text.
type Inputs map[string]map[string]string

// Expect is what a training program compares its steps with: the plan on the CPU where it runs.
type Expect struct {
	StepS costmodel.Seconds `json:"step_s"`
	// by which it may be off, as a part of it; locks of before it have none
	StepError   float64                  `json:"step_error" since:"cost model 4"`
	TokensPerS  float64                  `json:"tokens_per_s"`
	MemoryBytes int64                    `json:"memory_bytes"`
	PeakFlops   costmodel.FlopsPerSecond `json:"peak_flops"`
}

// Gen is how planc gen was called last; the zero value: it was not.
type Gen struct {
	Main    bool   `json:"main"`
	Package string `json:"package"`
}

// Hashes are those of the inputs by section.
func (in Inputs) Hashes() map[string]string {
	out := map[string]string{}
	for _, s := range Sections {
		h := sha256.New()
		for _, key := range slices.Sorted(maps.Keys(in[s])) {
			fmt.Fprintf(h, "%q %q\n", key, in[s][key])
		}
		out[s] = hex.EncodeToString(h.Sum(nil))
	}
	return out
}

// Hash names content as a lock does.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// HashPlan names a plan by all its keys.
func HashPlan(p ir.Plan) string { return Hash([]byte(p.Text())) }

// Edited says whether the plan is not the one that planc wrote.
func (f *File) Edited() bool { return f.PlanHash != HashPlan(f.Plan) }

// Pos is where a field of the file was written, by its dotted path.
func (f *File) Pos(path string) ir.Pos { return f.doc.Pos(path) }

// Change is a field that differs; "" is absent.
type Change struct {
	Section, Key string
	From, To     string
}

// Path is the field's dotted path in a job.
func (c Change) Path() string { return strings.TrimSuffix(c.Section+"."+c.Key, ".") }

// Changes are the inputs that differ between what was decided from and what is asked now, by section and key.
func Changes(from, to Inputs) (out []Change) {
	for _, s := range Sections {
		keys := map[string]bool{}
		for _, in := range []Inputs{from, to} {
			for key := range in[s] {
				keys[key] = true
			}
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if a, b := from[s][key], to[s][key]; a != b {
				out = append(out, Change{s, key, a, b})
			}
		}
	}
	return out
}

// PlanChanges are the keys in which two plans differ, in the order of plans.
func PlanChanges(from, to ir.Plan) (out []Change) {
	a, b := planText(from), planText(to)
	for _, key := range ir.PlanKeys() {
		if a[key] != b[key] {
			out = append(out, Change{"plan", key, cmp.Or(a[key], "none"), cmp.Or(b[key], "none")})
		}
	}
	return out
}
