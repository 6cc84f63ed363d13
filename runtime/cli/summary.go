package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/planc-dev/planc/runtime/amount"
	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// summary prints the results of a finished run for people.
func summary(w io.Writer, p *rank.Program, r *report.Result) {
	if r.Sample != "" {
		note := ""
		if t := p.Settings.Data.Tokenizer; t == "" || t == "bytes" {
			note = fewWordsNote(r, os.Getenv(driver.LaunchedBy) != "")
		}
		fmt.Fprintf(w, "sample  %s\n%s\n", printable(r.Sample), note)
	}
	if r.HasSteps() {
		fmt.Fprintf(w, "loss    %s at step %d, %s at step %d", lossText(r.FirstLoss), r.FirstStep,
			lossText(r.Loss), r.Steps)
	} else {
		fmt.Fprintf(w, "loss    nothing was left to do after step %d", r.Steps)
	}
	if !math.IsNaN(r.ValidLoss) {
		fmt.Fprintf(w, ", validation %s", lossText(r.ValidLoss))
	}
	fmt.Fprintf(w, "\nstep    predicted %s, measured %s", report.Seconds(p.Predict.StepSeconds),
		report.Seconds(r.StepSeconds))
	if r.TokensPerSecond > 0 {
		fmt.Fprintf(w, " (%s tokens/s)", amount.Short(r.TokensPerSecond))
	}
	if off := predictionNote(&p.Predict, r); off != "" {
		fmt.Fprintf(w, "\n        %s", off)
	}
	fmt.Fprintf(w, "\nmemory  predicted %s a rank, arena %s", report.Size(p.Predict.MemoryBytes),
		report.Size(r.ArenaBytes))
	if r.CopyBytes > 0 {
		fmt.Fprintf(w, ", %s of all ranks for checkpoints", report.Size(r.CopyBytes))
	}
	if r.PeakBytes > 0 {
		fmt.Fprintf(w, ",\n        measured %s a rank (the process peaked at %s)",
			report.Size(r.PeakBytes/int64(max(1, r.Here))), report.Size(r.PeakBytes))
	}
	sources(w, r)
	if r.Skipped > 0 {
		fmt.Fprintf(w, "\nskipped %d steps that were not finite", r.Skipped)
	}
	fmt.Fprintf(w, "\nbinary  %s\n", binary())
	if r.Metrics != "" {
		fmt.Fprintf(w, "metrics %s\n", r.Metrics)
	} else {
		tried := "a step, an evaluation"
		if math.IsNaN(r.ValidLoss) {
			tried = "a step"
		}
		fmt.Fprintf(w, "tried   %s and a checkpoint, in a folder that is removed\n", tried)
	}
	if r.Checkpoint != "" {
		fmt.Fprintf(w, "saved   %s\n", r.Checkpoint)
	}
}

// sources prints how many samples each source of the data gave, if there are several.
func sources(w io.Writer, r *report.Result) {
	if len(r.Sources) < 2 {
		return
	}
	all := int64(0)
	for _, s := range r.Sources {
		all += s.Samples
	}
	for i, s := range r.Sources {
		fmt.Fprintf(w, "\n%-7s %d samples (%.2f %%) from %s", "data"[:4*max(0, 1-i)], s.Samples,
			100*float64(s.Samples)/float64(max(1, all)), s.Path)
	}
}

// fewWordsLoss is the loss, in nats per byte, below which a byte-level model samples mostly words. For comparison:
// nanoGPT's character-level model of Shakespeare reaches 1.88 after 2,000 steps on a CPU, with some words, and 1.47
// after 5,000 on a GPU, with nearly only words (its README, 2022).
const fewWordsLoss = 1.7

// fewWordsNote explains that a sample has few words because training has just begun, and how to continue; "" if the
// loss is low enough.
func fewWordsNote(r *report.Result, byPlanc bool) string {
	loss := r.ValidLoss
	if !num.Finite(loss) {
		loss = r.Loss
	}
	if !num.Finite(loss) || loss <= fewWordsLoss {
		return ""
	}
	dash := ""
	if byPlanc {
		dash = "-- "
	}
	return fmt.Sprintf("        (at a loss of %.2f per byte a model writes few words; below %g most are words: "+
		"`%s--steps %d` continues training)\n", loss, fewWordsLoss, dash, 10*max(1, r.Steps))
}

// predictionNote reports that the measured step time is outside the predicted range; "" if it is inside.
func predictionNote(p *program.Predict, r *report.Result) string {
	if p.StepError == 0 || !num.Finite(r.StepSeconds) || p.StepSeconds == 0 {
		return ""
	}
	least, longest := p.StepSeconds*max(0, 1-p.StepError), p.StepSeconds*(1+p.StepError)
	if r.StepSeconds >= least && r.StepSeconds <= longest {
		return ""
	}
	why := "other load on this machine can explain it; else\n        planc calibrate -o here.yaml measures it for " +
		"the job's cluster"
	if p.Measured {
		why = "the job's cluster has measurements already; other load on this machine\n        can explain it, else " +
			"fit them to this run:" +
			"\n        planc calibrate --from " + filepath.Dir(r.Metrics) + " JOB.yaml -o here.yaml"
	}
	return fmt.Sprintf("outside the predicted %s to %s:\n        %s", report.Seconds(least), report.Seconds(longest),
		why)
}

func lossText(x float64) string {
	if !num.Finite(x) {
		return fmt.Sprintf("not finite (%g)", x)
	}
	return fmt.Sprintf("%.4f", x)
}

// summaryAttrs returns the summary as log attributes, with the keys of metrics.jsonl. A number that is not finite is
// null.
func summaryAttrs(p *rank.Program, r *report.Result) []any {
	number := func(x float64) any {
		if !num.Finite(x) {
			return nil
		}
		return x
	}
	counts := map[string]int64{}
	for _, s := range r.Sources {
		counts[s.Path] += s.Samples
	}
	return []any{
		"name", r.Name, "first_step", r.FirstStep, "step", r.Steps, "skipped", r.Skipped,
		"first_loss", number(r.FirstLoss), "loss", number(r.Loss), "valid_loss", number(r.ValidLoss),
		"predicted_step_s", p.Predict.StepSeconds, "step_s", number(r.StepSeconds), "tokens", r.Tokens,
		"tokens_per_s", number(r.TokensPerSecond), "mfu", number(r.MFU),
		"predicted_memory_bytes", p.Predict.MemoryBytes, "arena_bytes", r.ArenaBytes,
		"checkpoint_copy_bytes", r.CopyBytes, "memory_bytes", r.PeakBytes / int64(max(1, r.Here)),
		"sample", r.Sample, "sources", counts, "binary", binary(), "metrics", r.Metrics, "checkpoint", r.Checkpoint,
	}
}

// binary returns the path of this program.
func binary() string {
	if path, err := os.Executable(); err == nil {
		return path
	}
	return os.Args[0]
}
