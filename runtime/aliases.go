package runtime

import (
	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/tensors"
)

// ExitError is the error that Run returns, with the exit code of the command.
type ExitError = exit.Error

// Exit codes of a training program.
const (
	ExitFailed    = exit.Failed    // failure of the environment: I/O, a lost rank
	ExitInput     = exit.Input     // flags, settings, data or checkpoint are wrong
	ExitCannot    = exit.Cannot    // this machine or launch cannot run the program
	ExitNonfinite = exit.Nonfinite // stopped by the numerics guard
	ExitOnRequest = exit.OnRequest // stopped on request, with a committed checkpoint
)

// Reports of a run.
type (
	Step       = report.Step
	Result     = report.Result
	ExpertLoad = report.ExpertLoad
	Telemetry  = report.Telemetry
)

// Training data that the caller provides.
type (
	Source      = feed.Source
	TypedSource = feed.TypedSource
	// DocumentSource is a Source for jobs whose attention does not cross the borders of documents.
	DocumentSource = feed.DocumentSource
	ImageSource    = feed.ImageSource
)

// EmbedTokenizer sets the tokenizer of the job. Generated code calls it unless tokens are bytes.
func EmbedTokenizer(name, packed string) { data.Embed(name, packed) }

// Sizes and types of the tensors in an arena, for devices.
type (
	Float   = tensors.Float
	Numbers = tensors.Numbers
	Digit   = tensors.Digit
)

// A program with its functions, and what runs it.
type (
	Program     = rank.Program
	Segment     = rank.Segment
	ProgramData = program.Program
	SegmentData = program.Segment
	Rank        = rank.Rank
	Block       = rank.Block
	Hyper       = rank.Hyper
	AfterSkip   = rank.AfterSkip
	StepResult  = rank.StepResult
	Choice      = rank.Choice
)

// The interface of a kind of devices, and the types that describe a rank's work to it.
type (
	Devices         = rank.Devices
	Device          = rank.Device
	LibraryReporter = rank.LibraryReporter
	TelemetrySource = rank.TelemetrySource
	Job             = rank.Job
	Line            = rank.Line
	BucketPart      = rank.BucketPart
	Extent          = rank.Extent
	Update          = rank.Update
)

// The jobs of a bucket.
const (
	Reducing   = rank.Reducing   // reduce its gradients at the end of a step
	Gathering  = rank.Gathering  // all-gather its updated parameters
	Scattering = rank.Scattering // reduce-scatter a micro-batch's gradients and add them to this rank's part
	Fetching   = rank.Fetching   // all-gather its parameters for one block
)

// ErrStop, returned by the function given to OnStep, ends the run as a signal does: after this step, with a committed
// checkpoint.
var ErrStop = driver.ErrStop

// Tensors gives access to the logical tensors of a run between two steps.
type Tensors = driver.Tensors
