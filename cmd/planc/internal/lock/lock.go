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

// Schema is the version of the lock format.
const Schema = 1

// Sections lists the parts of a job that decide its plan. Each has its own hash, so that a message can say which part
// changed.
var Sections = []string{"cluster", "model", "objective", "plan", "train"}

// File is the content of a lock.
type File struct {
	CostModel   int               // version of the cost model of the prediction
	DecidedFrom map[string]string // hash of the Inputs by section
	Expect      Expect
	Files       map[string]string // SHA-256 of files of gen, by path relative to the lock's folder, with slashes
	Gen         Gen
	Inputs      Inputs
	Plan        ir.Plan
	PlanHash    string // hash of the plan that planc wrote; it differs if somebody edits the plan
	Planc       string // version of planc
	Predict     costmodel.Predict
	Program     string // hash of the program's text form
	Search      search.Counts

	doc *strict.Doc
}

// Inputs holds the deciding fields as text, by section and by the path below it.
type Inputs map[string]map[string]string

// Expect is the prediction for the CPU on which a training program runs. The program compares its steps with it.
type Expect struct {
	StepS costmodel.Seconds `json:"step_s"`
	// relative error of StepS; older locks do not have it
	StepError   float64                  `json:"step_error" since:"cost model 4"`
	TokensPerS  float64                  `json:"tokens_per_s"`
	MemoryBytes int64                    `json:"memory_bytes"`
	PeakFlops   costmodel.FlopsPerSecond `json:"peak_flops"`
}

// Gen holds the flags of the last planc gen; the zero value means that there was none.
type Gen struct {
	Main    bool   `json:"main"`
	Package string `json:"package"`
}

// Hashes returns the hash of the inputs of each section.
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

// Hash returns the hash of a content, in the format of a lock: SHA-256 in hexadecimal.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// HashPlan returns the hash of all keys of a plan.
func HashPlan(p ir.Plan) string { return Hash([]byte(p.Text())) }

// Edited reports whether somebody has changed the plan that planc wrote.
func (f *File) Edited() bool { return f.PlanHash != HashPlan(f.Plan) }

// Pos returns the position of a field in the file, by its dotted path.
func (f *File) Pos(path string) ir.Pos { return f.doc.Pos(path) }

// Change is a field that differs. A value of "" means that the field is absent.
type Change struct {
	Section, Key string
	From, To     string
}

// Path returns the dotted path of the field in a job.
func (c Change) Path() string { return strings.TrimSuffix(c.Section+"."+c.Key, ".") }

// Changes returns the inputs that differ, ordered by section and key.
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

// PlanChanges returns the keys in which two plans differ, in the order of [ir.PlanKeys].
func PlanChanges(from, to ir.Plan) (out []Change) {
	a, b := planText(from), planText(to)
	for _, key := range ir.PlanKeys() {
		if a[key] != b[key] {
			out = append(out, Change{"plan", key, cmp.Or(a[key], "none"), cmp.Or(b[key], "none")})
		}
	}
	return out
}
