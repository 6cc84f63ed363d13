package driver

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/settings"
)

// otherSamples explains why the sample count of a checkpoint does not apply to this run: it lists what differs of all
// that decides the tokens of a sample. It returns "" if nothing differs.
func (r *checkpoints) otherSamples(m *ckpt.Manifest) string {
	if m.Data == r.data.id() {
		return ""
	}
	var out []string
	if is := r.s.Train.Seed; m.Seed != is {
		out = append(out, settings.Difference("train.seed", fmt.Sprint(m.Seed), fmt.Sprint(is)))
	}
	if was, is := m.Extra[settings.SeqLenPath], fmt.Sprint(r.p.Batch.SeqLen); was != "" && was != is {
		out = append(out, settings.Difference(settings.SeqLenPath, was, is))
	}
	if was, is := m.Extra[dataExtra], r.data.text(); was != is && was != "" && is != "" {
		out = append(out, settings.Difference("the data", was, is))
	}
	if len(out) == 0 { // the caller's Source, or a checkpoint that does not describe its samples
		out = append(out, "it is other data")
	}
	return strings.Join(out, "; ")
}

// checkLimit refuses to continue a run with --overfit-batches without it or with another number, and another run with
// it: the run would have learned a few samples by heart, and its metrics would be of two kinds of training.
func (r *checkpoints) checkLimit(m *ckpt.Manifest) error {
	was := ""
	if i := strings.LastIndex(m.Data, limitText); i >= 0 {
		was = m.Data[i:]
	}
	switch {
	case was == r.data.limit():
		return nil
	case r.o.OverfitBatches > 0:
		return exit.Errorf(exit.Input, "--overfit-batches %d trains on the first %d samples only, but the run in %s "+
			"does not: use another folder with --dir, such as %[3]s-overfit-%[1]d", r.o.OverfitBatches, r.data.first,
			r.o.Dir)
	}
	return exit.Errorf(exit.Input, "the run in %s trains on its first samples only (--overfit-batches): use another "+
		"folder with --dir, or start over with --resume never", r.o.Dir)
}

// dataExtra is the key of [samples.text] in a checkpoint.
const dataExtra = "data"

// sampledExtra is the key of [data.Set.Sampled] in a checkpoint. Older checkpoints do not have it.
const sampledExtra = "data_sampled"

// otherContents reports that the data files have other contents than at the checkpoint; "" if they are equal or the
// checkpoint does not say. otherSamples reports files of another size.
func (r *checkpoints) otherContents(m *ckpt.Manifest) string {
	was := m.Extra[sampledExtra]
	if was == "" || r.data.hash == "" || was == r.data.hash {
		return ""
	}
	return fmt.Sprintf("%s has changed since step %d: its size is the same, but its contents differ, and training "+
		"continues on the new contents; "+
		"restore the old file, or start over with --resume never", r.data.files.Name(), m.Step)
}
