package search

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/passes/search/space"
)

// The types of questions and answers that belong to packages space and price are available here too.
type (
	// Problem is the question: which plan trains this model on this cluster fastest?
	Problem = space.Problem
	// Dims are the sizes of a model that decide which plans are legal.
	Dims = space.Dims
	// Pins are the values that a plan's keys may take.
	Pins = space.Pins
	// Reason is a rule of legality that a plan breaks.
	Reason = space.Reason
	// IllegalError is the error that the pinned values leave no legal plan.
	IllegalError = space.IllegalError
	// Progress is the progress of a search.
	Progress = space.Progress
	// Trial is a question with a change.
	Trial = space.Trial
	// Priced is a plan with its prediction.
	Priced = price.Priced
)

// Values of [Problem.Prefer].
const (
	PreferRobust  = space.PreferRobust
	PreferFastest = space.PreferFastest
)

// BadPlan is the code of an [IllegalError].
const BadPlan = space.BadPlan

// DimsOf reads the sizes from a model's blocks.
func DimsOf(m *ir.Model) Dims { return space.DimsOf(m) }

// PinsOf returns a job's pins.
func PinsOf(p *spec.Pins) Pins { return space.PinsOf(p) }

// PinPlan pins everything that a plan has decided, see [space.PinPlan].
func PinPlan(plan ir.Plan, but Pins) Pins { return space.PinPlan(plan, but) }

// Rules returns the rules of legality in words, in the order in which they are checked.
func Rules() []Reason { return space.Rules() }

// Legal returns the rules that a plan breaks, see [space.Legal].
func Legal(p ir.Plan, d Dims, c *costmodel.Cluster, globalBatch int) []Reason {
	return space.Legal(p, d, c, globalBatch)
}

// Check returns why a plan from elsewhere is not in the space, see [space.Check].
func Check(p *Problem, plan ir.Plan) []Reason { return space.Check(p, plan) }

// Restricted names the legal plans that a search of the problem does not examine, see [space.Restricted].
func Restricted(p *Problem) []string { return space.Restricted(p) }
