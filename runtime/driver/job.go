package driver

import (
	"context"

	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// job is what all parts of a run share. Only the goroutine that calls Run uses it.
type job struct {
	p   *rank.Program
	o   Options
	s   program.Settings // the program's, with the options' changes
	ctx context.Context  // the caller's context: when it ends, the run stops

	res     report.Result
	report  *report.Printer
	metrics *report.Metrics
	ckptDir string
	data    samples
	team    *launch.Team
	crew    *crew

	total int   // last step
	end   int64 // number of the first sample that is not used for training

	// the state of training, which checkpoints hold
	done          progress
	scaler        scaler
	losses        lossWatch
	lastValidStep int  // step of the last validation loss in the metrics, 0 for none
	evalPending   bool // a stop interrupted the evaluation after the last step, in this run or the previous one

	last     report.Step // last finished step
	goodStep int         // step of res.Checkpoint
}

// progress is what training has done so far, over all runs.
type progress struct {
	step    int   // finished steps
	updates int   // steps whose update was applied
	samples int64 // samples read
	tokens  int64 // unmasked tokens
}

// stepsOf returns the number of steps that read a number of samples.
func (r *job) stepsOf(samples int64) int {
	size := int64(r.p.Batch.GlobalBatch)
	return int((max(0, samples) + size - 1) / size)
}

// samples is the training data of a run.
type samples struct {
	source feed.Source
	files  *data.Set // nil if the caller provides the source
	hash   string    // of samples of the files' contents at the start of the run
}

// id identifies the order of the samples, in which a checkpoint counts them.
func (d *samples) id() string {
	if s, ok := d.source.(interface{ ID() string }); ok {
		return s.ID()
	}
	return ""
}

// text describes the data for people, without seed and sample length; "" for the caller's own source.
func (d *samples) text() string {
	if d.files == nil {
		return ""
	}
	return d.files.Files()
}
