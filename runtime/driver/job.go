package driver

import (
	"context"
	"fmt"

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

	res report.Result
	outputs
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

	saving saveSchedule

	last     report.Step // last finished step
	goodStep int         // step of res.Checkpoint
}

// outputs are what a run reports to.
type outputs struct {
	report  *report.Printer
	metrics *report.Metrics
	tracer  *tracer
}

// progress is what training has done so far, over all runs.
type progress struct {
	step    int   // finished steps
	updates int   // steps whose update was applied
	samples int64 // samples read
	tokens  int64 // unmasked tokens
	best    bestLosses
	early   earlyStop
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
	first  int64     // only this many samples are used, again and again (--overfit-batches); 0: all
}

// id identifies the order of the samples, in which a checkpoint counts them.
func (d *samples) id() string {
	id := ""
	if s, ok := d.source.(interface{ ID() string }); ok {
		id = s.ID()
	}
	return id + d.limit()
}

// limit says that only the first samples are used; "" if all are.
func (d *samples) limit() string {
	if d.first == 0 {
		return ""
	}
	return fmt.Sprintf(limitText+"%d samples are used, again and again", d.first)
}

// limitText begins the text that limit adds to the description of the samples.
const limitText = "; only the first "

// readers returns the readers of training and validation samples.
func (d *samples) readers(p *program.Program) (train, valid feed.Reader) {
	train, valid = feed.Readers(d.source, p)
	if d.first > 0 {
		train = train.Repeat(d.first)
	}
	return train, valid
}

// epoch returns the number of training samples in an epoch, 0 if it is unknown.
func (d *samples) epoch() int64 {
	n := max(0, d.source.TrainSamples())
	if d.first > 0 && n > 0 {
		return min(n, d.first)
	}
	return n
}

// validation returns the number of validation samples.
func (d *samples) validation() int64 {
	n := d.source.ValidSamples()
	if d.first > 0 {
		return min(n, d.first)
	}
	return n
}

// text describes the data for people, without seed and sample length; "" for the caller's own source.
func (d *samples) text() string {
	if d.files == nil {
		return ""
	}
	return d.files.Files() + d.limit()
}
