package runtime

import (
	"log/slog"
	"time"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
)

// Option changes how Run executes a program.
type Option func(*driver.Options)

// Dir sets the folder of metrics.jsonl, TensorBoard's event files and checkpoints/; the default is runs/NAME.
func Dir(path string) Option { return func(o *driver.Options) { o.Dir = path } }

// CheckpointDir sets the folder of the checkpoints; the default is Dir/checkpoints.
func CheckpointDir(path string) Option { return func(o *driver.Options) { o.CheckpointDir = path } }

// LogDir sets the folder of metrics.jsonl and TensorBoard's event files; the default is Dir.
func LogDir(path string) Option { return func(o *driver.Options) { o.LogDir = path } }

// Resume sets the checkpoint to continue: "auto" (the default: the newest verified one), "never", the step of a
// checkpoint, or a checkpoint's folder.
func Resume(from string) Option { return func(o *driver.Options) { o.Resume = from } }

// Set changes a setting by its path in the job file, such as "train.optimizer.lr". A string value is parsed as planc's
// --set parses it; nil or "null" restores the compiled value.
func Set(path string, value any) Option {
	return func(o *driver.Options) { o.Changes = append(o.Changes, settings.Change{Path: path, Value: value}) }
}

// Data replaces the job's files by the caller's samples. The source may also be a [TypedSource], a
// [DocumentSource] or an [ImageSource].
func Data(s feed.Source) Option { return func(o *driver.Options) { o.Source = s } }

// OverfitBatches trains on the first n global batches of the data again and again, and validates on at most n batches,
// to see whether the model can learn them.
func OverfitBatches(n int) Option { return func(o *driver.Options) { o.OverfitBatches = n } }

// CheckReplicas compares the copies of each parameter on all ranks every n steps, and ends the run if two differ.
func CheckReplicas(n int) Option { return func(o *driver.Options) { o.CheckReplicas = n } }

// ParamNorms writes the norms of each parameter and of its gradient to the metrics every n steps.
func ParamNorms(n int) Option { return func(o *driver.Options) { o.ParamNorms = n } }

// OnStep calls f after every step, before the next one begins. An error of f ends the run. If a run has several
// processes, all must have this option or none, because it changes when steps begin.
func OnStep(f func(report.Step) error) Option { return func(o *driver.Options) { o.OnStep = f } }

// Logger sets the logger of the run's messages; the default is slog.Default().
func Logger(l *slog.Logger) Option { return func(o *driver.Options) { o.Logger, o.Text = l, nil } }

// Timeout sets how long a collective waits for a rank before the run fails; the default is ten minutes. On GPUs, where
// collectives are parts of a step, a step may take this long beyond ten times the longest step so far.
func Timeout(d time.Duration) Option { return func(o *driver.Options) { o.Timeout = d } }

// Watch calls f with each communication call of each rank, concurrently from all ranks. It is for tests and diagnosis.
func Watch(f func(Call)) Option { return func(o *driver.Options) { o.OnCall = f } }

// OnChoice calls f with each choice of experts in training steps and evaluations, concurrently from all ranks. The run
// uses the experts that f leaves in Experts. It is for tests: rounding can change the choice between two nearly equal
// experts, and f can give two plans the same choices. A recomputed pass calls f again, and ranks with the same tokens
// each call it.
func OnChoice(f func(*rank.Choice)) Option { return func(o *driver.Options) { o.OnChoice = f } }

// Poison fills memory with NaN when its content becomes invalid: activations after the backward pass, gradients before
// a step, the workspace before each block, gathered parameters after their block, and parts of parameters that are
// about to be gathered. A program that reads such memory trains to NaN. It is for tests and diagnosis, and costs a pass
// over that memory.
func Poison() Option { return func(o *driver.Options) { o.Poison = true } }

// Export makes Run write the model to the new folder dir in Hugging Face's layout, config.json and safetensors, without
// training. The parameters come from the checkpoint that Resume names (by default the newest), or are the initial ones
// if Resume is "never".
func Export(dir string) Option { return func(o *driver.Options) { o.Export = dir } }

// ExportType makes Export write tensors as "bf16", "fp16" or "fp32", rounded to nearest. It fails if a number is too
// large.
func ExportType(name string) Option { return func(o *driver.Options) { o.ExportType = name } }

// OnTensors calls f after every step with its number and the run's tensors. An error of f ends the run. It is for tests
// and diagnosis, and costs a pass over all memory.
func OnTensors(f func(step int, t *driver.Tensors) error) Option {
	return func(o *driver.Options) { o.OnTensors = f }
}
