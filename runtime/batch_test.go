package runtime

import (
	"errors"
	"fmt"
	"testing"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/tensors"
)

// pictures is drawn with token types and pixels that name their sample and element.
type pictures struct{ drawn }

func (pictures) TrainTypes(g int64, types []int32) error     { return fillWith(types, 1000*g) }
func (pictures) ValidTypes(g int64, types []int32) error     { return fillWith(types, 1000*g+500) }
func (pictures) TrainPixels(g int64, pixels []float32) error { return fillWith(pixels, 1000*g) }
func (pictures) ValidPixels(g int64, pixels []float32) error { return fillWith(pixels, 1000*g+500) }

func fillWith[T int32 | float32](x []T, from int64) error {
	for i := range x {
		x[i] = T(from + int64(i))
	}
	return nil
}

// pictured is bigram's batch with types and patches of 3 numbers, read from s as training does: the ranks' arenas and
// the batch, from sample 16 on.
func pictured[F tensors.Float](t *testing.T, dp int, s feed.Source, readers func(train,
	valid feed.Reader) feed.Reader) (ranks []*rank.Rank) {
	t.Helper()
	p := bigram[F](dp, 0)
	l := &p.Batch
	rows := l.MicroBatch * l.MicroBatches * l.SeqLen
	l.Types, l.Patch = true, 3
	st := &p.Stages[0]
	in, a := &st.Inputs, &st.Arena
	in.Types = a.Size
	in.Pixels = in.Types + (4*rows+63)/64*64
	a.Size = in.Pixels + rows*l.Patch*p.Elem.Size()
	must(t, feed.CheckSource(s, &p.ProgramData, p.PredictsTokens()))
	b := feed.NewBatch(l.GlobalBatch, l)
	b.Read(readers(feed.Readers(s, &p.ProgramData)), 16, 23, 1)
	if b.Err != nil {
		t.Fatal(b.Err)
	}
	for i := range dp {
		r := &rank.Rank{Program: p, Store: tensors.Store{Data: &p.ProgramData, Stage: st,
			Coord: map[string]int{"dp": i}, Arena: make([]byte, a.Size)}}
		rank.LoadBatch(r, b, l.MicroBatches)
		ranks = append(ranks, r)
	}
	return ranks
}

func onlyTrain(train, _ feed.Reader) feed.Reader { return train }
func onlyValid(_, valid feed.Reader) feed.Reader { return valid }

// Sample i of the global batch is row j of micro-batch m on replica r, with all that the source said of it; the sample
// past the end is blank.
func TestTypesAndPixelsLieWithTheirTokens(t *testing.T) {
	for _, dp := range []int{1, 2, 4} {
		testPictures[float32](t, dp)
		testPictures[float64](t, dp)
	}
}

func testPictures[F tensors.Float](t *testing.T, dp int) {
	for kind, of := range map[int]func(train, valid feed.Reader) feed.Reader{0: onlyTrain, 500: onlyValid} {
		for replica, r := range pictured[F](t, dp, pictures{drawn{40, 40}}, of) {
			l, in := &r.Program.Batch, &r.Stage.Inputs
			for row := range l.MicroBatches * l.MicroBatch {
				m, j := row/l.MicroBatch, row%l.MicroBatch
				i := (m*l.Replicas+replica)*l.MicroBatch + j
				first := 1000*(16+i) + kind
				types := View[int32](r, in.Types+row*l.SeqLen*4, l.SeqLen)
				pixels := View[F](r, in.Pixels+row*l.SeqLen*l.Patch*r.Program.Elem.Size(), l.SeqLen*l.Patch)
				want := fmt.Sprint(first, first+5, 0, first+3, first+17) // the class token, at position 0, has no patch
				if i == 7 {                                              // sample 23 is none
					want = "0 0 0 0 0"
				}
				if got := fmt.Sprint(types[0], types[5], int(pixels[2]), int(pixels[3]), int(pixels[17])); got != want {
					t.Errorf("dp %d: row %d of replica %d has %s, want %s", dp, row, replica, got, want)
				}
			}
		}
	}
}

// withoutTypes has pixels alone.
type withoutTypes struct {
	drawn
	feed.ImageSource
}

func TestTypesThatNobodyGivesAreZero(t *testing.T) {
	r := pictured[float32](t, 1, withoutTypes{drawn{40, 40}, pictures{}}, onlyTrain)[0]
	l := &r.Program.Batch
	for _, x := range View[int32](r, r.Stage.Inputs.Types, l.GlobalBatch*l.SeqLen) {
		if x != 0 {
			t.Fatalf("a type is %d", x)
		}
	}
}

// failing gives no pixels.
type failing struct{ pictures }

func (failing) TrainPixels(int64, []float32) error { return errors.New("no picture") }

func TestSourcesThatDoNotSuit(t *testing.T) {
	p := bigram[float32](1, 0)
	st := &p.Stages[0]
	st.Inputs.Pixels, p.Batch.Patch = st.Arena.Size, 3
	st.Arena.Size += 8 * 6 * 3 * 4
	_, err := train(t, p, t.TempDir())
	wantExit(t, err, exit.Input, "the model reads pixels, but runtime.drawn is not an rt.ImageSource: it needs "+
		"the methods "+
		"TrainPixels and ValidPixels")
	_, err = train(t, p, t.TempDir(), Data(nil))
	wantExit(t, err, exit.Input, "the model reads pixels, but the job's files hold tokens: pass rt.Data a source that "+
		"is also an rt.ImageSource")
	_, err = train(t, p, t.TempDir(), Data(failing{pictures{drawn{40, 10}}}))
	wantExit(t, err, exit.Failed, "no picture")
	_, err = train(t, p, t.TempDir(), Data(pictures{drawn{40, 10}}))
	if err != nil {
		t.Error(err)
	}
}

// What predicts no next token continues no text.
func TestNoLogitsNoSample(t *testing.T) {
	p, blind := bigram[float32](1, 0), bigram[float32](1, 0)
	p.Segments[0].Logits, blind.Stages[0].Inputs.Tokens = nil, 0
	for _, q := range []*rank.Program{p, blind} {
		_, err := train(t, q, t.TempDir(), Set("train.eval.sample", "a"))
		wantExit(t, err, exit.Input, "train.eval.sample: this model does not predict the next token, so it cannot "+
			"continue a text; leave the key out")
	}
	if _, err := train(t, p, t.TempDir()); err != nil {
		t.Error(err)
	}
	_, err := train(t, bigram[float32](1, 0), t.TempDir(), Set("train.eval.sample", "\x01a"))
	wantExit(t, err, exit.Input, "train.eval.sample: byte 1 of the prompt is 97, but the model's vocabulary is 11 (0 "+
		"to 10); remove the key, or use a prompt of such bytes")
	_, err = train(t, p, t.TempDir(), Data(nil))
	wantExit(t, err, exit.Input, "the model does not predict the next token, and the job's files have no other "+
		"labels: pass rt.Data a source with labels")
}

// edited is drawn with one thing changed.
type edited struct {
	drawn
	edit func(g int64, tokens, labels []int32, unmasked *int)
}

func (e edited) Train(g int64, tokens, labels []int32) (int, error) {
	n, err := e.drawn.Train(g, tokens, labels)
	e.edit(g, tokens, labels, &n)
	return n, err
}

func (e edited) Valid(g int64, tokens, labels []int32) (int, error) {
	n, err := e.drawn.Valid(g, tokens, labels)
	e.edit(g, tokens, labels, &n)
	return n, err
}

// What a source gives is checked: exit 2, the sample, the position and the value.
func TestSamplesAreChecked(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		edit       func(g int64, tokens, labels []int32, unmasked *int)
	}{
		{"token past the vocabulary", "sample 3: the token at position 5 is 11, but the model's vocabulary is " +
			"11 (0 to 10)",
			func(g int64, tokens, _ []int32, _ *int) { tokens[5] += int32(g) / 3 * (vocab - tokens[5]) }},
		{"negative token", "sample 0: the token at position 0 is -5, but", func(_ int64, tokens, _ []int32, _ *int) {
			tokens[0] = -5
		}},
		{"label past the vocabulary", "sample 0: the label at position 1 is 999, but the model has 11 classes (0 to " +
			"10; a negative one does not count)",
			func(_ int64, _, labels []int32, _ *int) { labels[1] = 999 }},
		{"unmasked past the end", "sample 0: unmasked is 500; it is the number of leading positions that count " +
			"and must be " +
			"from 0 to 6",
			func(_ int64, _, _ []int32, n *int) { *n = 500 }},
		{"negative unmasked", "sample 0: unmasked is -3; ", func(_ int64, _, _ []int32, n *int) { *n = -3 }},
		{"nothing counts", "samples 0 to 7, which are one step, have no position that counts",
			func(_ int64, _, _ []int32, n *int) {
				*n = 0
			}},
		{"no label counts", "samples 0 to 7, which are one step, ", func(_ int64, _, labels []int32, _ *int) {
			for i := range labels {
				labels[i] = -100
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := train(t, bigram[float32](2, 0), t.TempDir(), Data(edited{drawn{40, 10}, tt.edit}))
			wantExit(t, err, exit.Input, tt.want)
		})
	}
}

// What does not count may hold what no model knows, as labels do under Hugging Face's -100; one blank sample is no
// error.
func TestWhatDoesNotCountIsNotChecked(t *testing.T) {
	for _, edit := range []func(g int64, tokens, labels []int32, unmasked *int){
		func(_ int64, _, labels []int32, n *int) { labels[5], *n = 999, 5 },
		func(_ int64, _, labels []int32, _ *int) { labels[2] = -100 },
		func(g int64, _, _ []int32, n *int) { *n *= int(g % 2) },
	} {
		if _, err := train(t, bigram[float32](2, 0), t.TempDir(), Data(edited{drawn{40, 10}, edit})); err != nil {
			t.Error(err)
		}
	}
}

// blindValid counts nothing in validation.
type blindValid struct{ drawn }

func (b blindValid) Valid(g int64, tokens, labels []int32) (int, error) {
	_, err := b.drawn.Valid(g, tokens, labels)
	return 0, err
}

func TestValidationThatCountsNothing(t *testing.T) {
	_, err := train(t, bigram[float32](2, 0), t.TempDir(), Data(blindValid{drawn{40, 10}}))
	wantExit(t, err, exit.Input, "validation samples 0 to 9 have no position that counts")
}
