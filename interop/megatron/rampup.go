package megatron

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// Megatron-LM can raise the batch during training. planc prices the final batch. Each batch must be a whole number of
// micro-batches of each replica, also after an edit.

const (
	rampUpDest   = "rampup_batch_size"
	scheduleDest = "step_batch_size_schedule"
	shrinkDest   = "decrease_batch_size_if_needed"
	globalDest   = "global_batch_size"
)

// sinceIgnored ends messages about a ramp-up.
const sinceIgnored = ". Megatron-Core 0.18 and later ignore the option: remove it there"

// batchReader reads how the batch grows.
type batchReader struct{ *importer }

// read checks a ramp-up of the batch, or a schedule of batches.
func (im *batchReader) read() {
	if words := listOf(im.s.text(rampUpDest)); len(words) > 0 {
		im.readRampUp(words)
	}
	if text := im.s.text(scheduleDest); text != "" && text != "None" {
		im.readSchedule(text)
	}
}

// listOf returns the words of a list as a command line or Python writes it; none for None.
func listOf(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("[]', ", r) })
	return slices.DeleteFunc(words, func(word string) bool { return word == "None" })
}

// readRampUp checks a ramp-up.
func (im *batchReader) readRampUp(words []string) {
	text := im.name(rampUpDest) + " " + strings.Join(words, " ")
	var numbers []int
	for _, word := range words {
		if n, err := strconv.Atoi(word); err == nil {
			numbers = append(numbers, n)
		}
	}
	const parts = 3
	if len(words) != parts || len(numbers) != parts {
		im.fail(rampUpDest, "%s: give three integers: the first batch, its increment and the number of samples", text)
		return
	}
	r := &rampUp{numbers[0], numbers[1], numbers[2], im.s.number(globalDest)}
	if why := r.refused(im.name(globalDest)); why != "" {
		im.fail(rampUpDest, "%s: %s%s", text, why, sinceIgnored)
		return
	}
	if r.final > 0 && !im.s.flag(shrinkDest) {
		im.keepWhole(rampUpDest, text, r.batches(), sinceIgnored)
	}
}

// readSchedule checks a schedule: "0:768 250B:1536", the first sample or token of each batch.
// Source: Megatron-Core 0.19.2, core/num_microbatches_calculator.py: StepBatchsizeNumMicroBatchesCalculator.
func (im *batchReader) readSchedule(text string) {
	if im.s.has(globalDest) {
		im.fail(scheduleDest, "%s and %s exclude each other: remove one", im.name(scheduleDest), im.name(globalDest))
		return
	}
	batches, wrong := scheduled(text)
	if wrong != "" {
		im.fail(scheduleDest, "%s %s: %s must be START:BATCH, with starts from 0 up and batches of at least 1: write "+
			"0:768 250B:1536", im.name(scheduleDest), text, wrong)
		return
	}
	im.set("train.global_batch", batches[len(batches)-1], scheduleDest)
	im.note(scheduleDest, "raises the batch size during training; planc prices the final batch size")
	im.keepWhole(scheduleDest, im.name(scheduleDest)+" "+text, batches, "")
}

// scheduled returns the batches of a schedule in their order, or its first entry that Megatron-LM refuses.
func scheduled(text string) (batches []int, wrong string) {
	type entry struct {
		start, batch float64
		text         string
	}
	var entries []entry
	for _, word := range strings.Fields(strings.ReplaceAll(text, ",", " ")) {
		first, batch, _ := strings.Cut(word, ":")
		start, okStart := suffixed(first)
		n, okBatch := suffixed(batch)
		if !okStart || !okBatch || n < 1 {
			return nil, word
		}
		entries = append(entries, entry{start, n, word})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.start, b.start) })
	for i, e := range entries {
		if i == 0 && e.start != 0 || i > 0 && e.start == entries[i-1].start {
			return nil, e.text
		}
		batches = append(batches, int(e.batch))
	}
	if len(batches) == 0 {
		return nil, "the text"
	}
	return batches, ""
}

// suffixed returns a number that may end in K, M, B or T.
func suffixed(text string) (x float64, ok bool) {
	digits := strings.TrimRight(strings.ToUpper(text), "KMBT")
	x, err := strconv.ParseFloat(digits, 64)
	exponent := map[string]int{"": 0, "K": 3, "M": 6, "B": 9, "T": 12}
	power, isKnown := exponent[strings.ToUpper(text[len(digits):])]
	return math.Trunc(x * math.Pow10(power)), err == nil && isKnown && x >= 0 && x < maxSuffixed
}

// maxSuffixed bounds the numbers of a schedule.
const maxSuffixed = 1e15

// keepWhole reports batches that are no whole number of micro-batches of each replica, and makes edits keep them whole.
func (im *batchReader) keepWhole(dest, text string, batches []int, end string) {
	if n := im.replicas(); n > 0 {
		dp := n / max(1, im.s.number("context_parallel_size"))
		if why := uneven(batches, im.s.number("micro_batch_size"), dp); why != "" {
			im.fail(dest, "%s: %s%s", text, why, end)
			return
		}
	}
	im.out.Refusals = func(t *interop.Target) (diags ir.Diags) {
		if why := uneven(batches, t.Plan.MicroBatch, t.Plan.DP); why != "" {
			diags.Addf(ir.Pos{}, NoExport, "plan.micro_batch: %s: %s", text, why)
		}
		return diags
	}
}

// uneven returns why a batch is no whole number of micro-batches of each replica; "" if all are.
func uneven(batches []int, micro, dp int) string {
	step := max(1, micro*dp)
	for _, batch := range batches {
		if batch%step != 0 {
			return fmt.Sprintf("the batch of %d sequences must be a multiple of micro-batch %d × dp %d = %d", batch,
				micro, dp, step)
		}
	}
	return ""
}

// rampUp is a batch that grows in equal increments over a number of samples.
// Source: Megatron-Core 0.8 to 0.17, core/num_microbatches_calculator.py: RampupBatchsizeNumMicroBatchesCalculator.
type rampUp struct{ start, increment, samples, final int }

// refused returns why Megatron-LM refuses a ramp-up for every plan; "" if it does not.
func (r *rampUp) refused(finalName string) string {
	switch between := r.final - r.start; {
	case r.start < 1 || r.increment < 1 || r.samples < 1:
		return "the first batch, its increment and the number of samples must be at least 1"
	case r.final == 0:
		return ""
	case between < 1:
		return fmt.Sprintf("the first batch must be less than %s %d", finalName, r.final)
	case between%r.increment != 0:
		return fmt.Sprintf("increments of %d from %d do not reach %s %d: use an increment that divides %d", r.increment,
			r.start, finalName, r.final, between)
	}
	return ""
}

// mostBatches bounds the batches of a ramp-up that are checked.
const mostBatches = 1 << 16

// batches returns the batches that training takes until the ramp-up ends. A batch lasts until the samples of its
// increment are consumed, so that large batches can leap over increments.
func (r *rampUp) batches() (out []int) {
	each := float64(r.samples) / float64((r.final-r.start)/r.increment)
	for consumed := 0; consumed <= r.samples && len(out) < mostBatches; {
		level := int(float64(consumed) / each)
		batch := r.start + level*r.increment
		out = append(out, batch)
		left := float64(level+1)*each - float64(consumed)
		consumed += batch * max(1, int(math.Ceil(left/float64(batch))))
	}
	return out
}
