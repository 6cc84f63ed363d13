package driver

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// evaluator computes validation losses, and samples text.
type evaluator struct {
	*job
	member       *member
	lastEvalStep int // step of the last evaluation, -1 for none

	hasNotedDropped bool // the user knows that characters of the prompt have no tokens
}

// evaluate computes and reports the validation loss after the last step, once. It gives up if the run is asked to stop.
func (r *evaluator) evaluate() error {
	n := r.data.validation()
	if n == 0 {
		r.evalPending = false
		return nil
	}
	if r.lastEvalStep == r.done.step {
		return nil
	}
	r.lastEvalStep = r.done.step
	defer r.tracer.begin("evaluate", r.done.step)()
	if err := r.crew.finishUpdates(); err != nil {
		return err
	}
	l := &r.p.Batch
	if want := r.s.Train.Eval.Batches; want > 0 { // the same samples on every plan
		n = min(n, int64(want)*int64(l.GlobalBatch))
	}
	loss, tokens, err := r.validate(n)
	if errors.Is(err, feed.ErrStopRequested) {
		r.evalPending = true
		return nil
	}
	if err != nil {
		return err
	}
	if tokens == 0 {
		return exit.Errorf(exit.Input, "validation samples 0 to %d have no position that counts; each position is "+
			"after its sample's "+
			"unmasked, or has a negative label", n-1)
	}
	r.res.ValidLoss = loss / float64(tokens)
	r.report.Info(fmt.Sprintf("step %d  valid_loss %.4f", r.done.step, r.res.ValidLoss),
		"eval", "step", r.done.step, "valid_loss", r.res.ValidLoss)
	r.metrics.Valid(r.done.step, r.res.ValidLoss)
	r.lastValidStep, r.evalPending = r.done.step, false
	return nil
}

// validate returns the sum of the losses of the first n validation samples and the number of their tokens. It returns
// errStopRequested if the run is asked to stop.
func (r *evaluator) validate(n int64) (loss float64, tokens int, err error) {
	l := &r.p.Batch
	rows := l.MicroBatch * l.Replicas
	batches := int((n + int64(rows) - 1) / int64(rows))
	_, valid := r.data.readers(&r.p.ProgramData)
	f := feed.New(valid, 0, n, l, rows, 1)
	defer f.Stop()
	defer r.member.readFrom(r.member.rows)
	defer func() {
		if r.team.Peers != nil && r.member.readError == nil {
			r.member.readError = f.ReadError()
		}
	}()
	r.member.readFrom(f)
	var done atomic.Int64
	defer r.report.ShowDuring(r.validationProgress(&done, batches))()
	for i := range batches {
		if r.member.isStopRequested() {
			return 0, 0, feed.ErrStopRequested
		}
		b, err := r.member.nextBatch()
		if errors.Is(err, feed.ErrStopRequested) {
			return 0, 0, err
		}
		if err != nil {
			return 0, 0, readFailure{err}
		}
		err = r.crew.do(func(k *rank.Rank) { k.Evaluate(b, i*rows) })
		if err == nil {
			err = r.member.exchangeReports()
		}
		if err != nil {
			return 0, 0, err
		}
		loss += rank.LossSum(r.crew.ranks)
		tokens += b.Counted()
		f.PutBack(b)
		done.Add(1)
	}
	return loss, tokens, nil
}

// validationProgress returns a function for the progress line of an evaluation. done counts the finished batches.
func (r *evaluator) validationProgress(done *atomic.Int64, batches int) func() report.ProgressLine {
	step, begun := r.done.step, time.Now()
	return func() report.ProgressLine {
		n := int(done.Load())
		text := fmt.Sprintf("step %d  validating, %d of %d batches", step, n, batches)
		if n > 0 {
			left := time.Since(begun) / time.Duration(n) * time.Duration(batches-n)
			text += fmt.Sprintf("  %s left", left.Round(time.Second))
		}
		return report.ProgressLine{Text: text, Msg: "validating", Attrs: []any{"step", step, "done", n, "batches",
			batches}}
	}
}
