package spec

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Stretched returns a note if sequences are longer than the rotary model was made for, "" otherwise. That is allowed.
// Scaled positions reach as far as their factor says.
func (j *Job) Stretched() string {
	c, t := j.Config, &j.Train
	if c == nil || familyOf(c.Family).position != Rotary || c.MaxPositions == 0 {
		return ""
	}
	limit := max(float64(c.MaxPositions), c.RopeScaling.Factor*float64(c.RopeScaling.Original))
	if c.RopeScaling.Kind == "linear" || c.RopeScaling.Kind == "dynamic" {
		limit = c.RopeScaling.Factor * float64(c.MaxPositions)
	}
	if float64(t.SeqLen) <= limit {
		return ""
	}
	return fmt.Sprintf("train.seq_len is %d, but %s was made for %.0f positions (%s)", t.SeqLen, c.Name, limit,
		familyOf(c.Family).names.positions)
}

// HighRate returns a warning if the learning rate is most likely a typing error, with the value that was probably
// meant; "" if the rate is plausible. The binary warns in the same way (highRate in package runtime). AdamW diverges
// long before 0.1, SGD before 10.
func (j *Job) HighRate() string {
	o, limit := &j.Train.Optimizer, 0.1
	if o.Kind == "sgd" {
		limit = 10
	}
	if o.LR <= limit {
		return ""
	}
	text := fmt.Sprintf("train.optimizer.lr is %g; %s usually diverges above %g", o.LR, o.Kind, limit)
	if exp := math.Floor(math.Log10(o.LR)); exp >= 1 { // 3e4 is 3e-4 without its sign
		text += "; did you mean " + strconv.FormatFloat(o.LR/math.Pow(10, exp), 'g', 3, 64) +
			fmt.Sprintf("e-%.0f", exp) + "?"
	}
	return text
}

// UnalignedWidths returns a note for each width of the model that is not a multiple of 8: tensor cores load 8 elements
// of 16 bits at a time. A width that follows from another one that is noted has no note of its own. The vocabulary has
// one unless the trainer pads it.
func (j *Job) UnalignedWidths(padsVocab bool) (notes []string) {
	c := j.Config
	if c == nil {
		return nil
	}
	k := familyOf(c.Family).names
	head := cmp.Or(c.written(k.headDim), "the size of a head")
	if c.HeadDim*c.Heads == c.Hidden {
		head = c.written(k.hidden) + " / " + c.written(k.heads)
	}
	add := func(name string, size, times int, slow string) {
		if size%8 != 0 {
			notes = append(notes, fmt.Sprintf("%s is %d, not a multiple of 8: %s slow on GPUs; use %d", name, size,
				slow, (size+times-1)/times*times))
		}
	}
	add(c.written(k.hidden), c.Hidden, 64, "all GEMMs of the blocks are")
	if c.Hidden%8 == 0 || c.FFN%c.Hidden != 0 {
		add(cmp.Or(c.written(k.ffn), "the width of the MLP"), c.FFN, 64, "GEMMs of the MLP are")
	}
	add("the width of an expert's hidden layer", c.ExpertFFN, 64, "GEMMs of the experts are")
	add("the width of the shared expert's hidden layer", c.SharedFFN, 64, "GEMMs of the shared expert are")
	if c.Hidden%8 == 0 || c.HeadDim*c.Heads != c.Hidden {
		add(head, c.HeadDim, 8, "attention and its GEMMs are")
	}
	if !padsVocab {
		add(cmp.Or(c.written(k.vocab), "the vocabulary"), c.Vocab, 64, "the GEMM of the logits is")
	}
	return notes
}

// checkRecipe checks that the recipe fits the model.
func (j *Job) checkRecipe(diags *ir.Diags) {
	c, t := j.Config, &j.Train
	if c == nil {
		return
	}
	switch {
	case c.Family == ViT && j.Has("train.seq_len") && t.SeqLen != c.MaxPositions:
		*diags = append(*diags, ir.Diag{Pos: j.Pos("train.seq_len"), Code: BadBatch, Fix: fmt.Sprint(c.MaxPositions),
			Msg: fmt.Sprintf("train.seq_len is %d; an image of %s has %d positions: the class token and %d "+
				"patches",
				t.SeqLen, c.Name, c.MaxPositions, c.MaxPositions-1)})
	case c.Family != ViT && familyOf(c.Family).position == Learned && t.SeqLen > c.MaxPositions:
		diags.Addf(j.Pos("train.seq_len"), BadBatch,
			"train.seq_len is %d; %s has %d positions (%s): use at most that", t.SeqLen, c.Name,
			c.MaxPositions, familyOf(c.Family).names.positions)
	}
	if c.Family == ViT && j.Data.DocumentMask {
		diags.Addf(j.Pos("data.document_mask"), Conflict,
			"data.document_mask is true, but %s reads images, which have no documents: remove it", c.Name)
	}
	c.Fit(t.SeqLen)
	for _, key := range []string{"data.train", "data.valid"} {
		if c.Bidirectional && j.Has(key) {
			diags.Addf(j.Pos(key), Conflict,
				"%s is given, but %s, of family %s, is not trained by next-token prediction on files: feed "+
					"data through rt.Data, in a program of planc gen", key, c.Name, c.Family)
		}
	}
	if c.Bidirectional && t.Eval.Sample != "" {
		diags.Addf(j.Pos("train.eval.sample"), Conflict,
			"train.eval.sample is given, but %s, of family %s, does not predict the next token and cannot "+
				"continue a text: remove it", c.Name, c.Family)
	}
	isBytes := j.Data.Tokenizer == "bytes" && c.Vocab != byteTokens
	if tokens := j.tokenSource(); tokens != "" && t.Eval.Sample != "" && isBytes {
		diags.Addf(j.Pos("train.eval.sample"), Conflict,
			"train.eval.sample is given, but %s holds tokens of a vocabulary of %d: name their tokenizer in "+
				"data.tokenizer (gpt2, cl100k, o200k, or the path of a tokenizer.json), or remove train.eval.sample",
			tokens, c.Vocab)
	}
}

// tokenSource returns the name of the first data file that contains tokens, "" if there is none.
func (j *Job) tokenSource() string {
	for _, s := range slices.Concat(j.Data.Train, j.Data.Valid.Files) {
		if strings.EqualFold(filepath.Ext(s.Path), ".bin") {
			return s.Path
		}
	}
	return ""
}
