package data

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/runtime/tokenizer"
)

// Tokens that count up show where each sample comes from.
func TestLabelsAreTokensShiftedByOne(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "t.bin", u16(count(23)...))
	s := open(t, Spec{Train: one(path), SeqLen: 4, Vocab: 23})
	if s.TrainSamples() != 6 {
		t.Fatalf("%d samples, want 6: five of 4 labels and one of 2", s.TrainSamples())
	}
	var first []int32
	ragged := 0
	for g := range s.TrainSamples() {
		x := get(t, s.Train, g, 4)
		for i := range x.tokens {
			if x.labels[i] != x.tokens[i]+1 || x.tokens[i] != x.tokens[0]+int32(i) {
				t.Errorf("sample %d: tokens %v, labels %v", g, x.tokens, x.labels)
			}
		}
		if len(x.tokens) == 2 {
			ragged++
		}
		first = append(first, x.tokens[0])
	}
	slices.Sort(first)
	if !slices.Equal(first, []int32{0, 4, 8, 12, 16, 20}) || ragged != 1 {
		t.Errorf("windows begin at %v, %d of them ragged", first, ragged)
	}
}

// A file whose labels fill its windows has no ragged sample, and one of seq_len+1 tokens is one sample.
func TestNumberOfSamples(t *testing.T) {
	dir := t.TempDir()
	for tokens, want := range map[int]int64{5: 1, 6: 2, 9: 2, 10: 3, 13: 3} {
		path := write(t, dir, fmt.Sprintf("%d.bin", tokens), u16(count(tokens)...))
		if got := open(t, Spec{Train: one(path), SeqLen: 4, Vocab: 99}).TrainSamples(); got != want {
			t.Errorf("%d tokens make %d samples of 4, want %d", tokens, got, want)
		}
	}
}

// Facts 4.3 number 16: whatever the ranks and the accumulation, an epoch reads each label once; also
// when the run stops and resumes in between.
func TestEveryPlanReadsEveryLabelOnce(t *testing.T) {
	dir := t.TempDir()
	a := write(t, dir, "a.bin", u16(count(101)...))
	b := write(t, dir, "b.txt", []byte("some text that is read as bytes, whose length is not round"))
	const seqLen = 4
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		s := open(t, Spec{Train: one(a, b), SeqLen: seqLen, Vocab: 256, Seed: r.Uint64()})
		replicas, accum, micro := 1+r.IntN(5), 1+r.IntN(4), 1+r.IntN(3)
		batch := int64(replicas * accum * micro)
		seen := map[string]int{}
		n := s.TrainSamples()
		for step := int64(0); step*batch < 2*n; step++ {
			if r.IntN(4) == 0 { // resume: all state is the step
				s = open(t, s.spec)
			}
			for rank := range replicas {
				for m := range accum {
					for j := range micro {
						g := step*batch + int64((m*replicas+rank)*micro+j)
						if g < 2*n {
							x := get(t, s.Train, g, seqLen)
							seen[fmt.Sprint(g/n, x)]++
						}
					}
				}
			}
		}
		if len(seen) != int(2*n) {
			t.Errorf("%d distinct samples in two epochs of %d", len(seen), n)
		}
	}
}

func TestEpochsDiffer(t *testing.T) {
	path := write(t, t.TempDir(), "t.bin", u16(count(401)...))
	order := func(seed uint64, epoch int64) (first []int32) {
		s := open(t, Spec{Train: one(path), SeqLen: 4, Vocab: 401, Seed: seed})
		for g := range s.TrainSamples() {
			first = append(first, get(t, s.Train, epoch*s.TrainSamples()+g, 4).tokens[0])
		}
		return first
	}
	a := order(1, 0)
	if !slices.Equal(a, order(1, 0)) {
		t.Error("the same seed and epoch give two orders")
	}
	for name, b := range map[string][]int32{"epoch": order(1, 1), "seed": order(2, 0)} {
		same := 0
		for i := range a {
			if a[i] == b[i] {
				same++
			}
		}
		if same > 8 {
			t.Errorf("another %s leaves %d of %d samples in place", name, same, len(a))
		}
	}
}

// Held-out samples are the last of each file and share no label with training.
func TestHeldOut(t *testing.T) {
	dir := t.TempDir()
	paths := []string{write(t, dir, "a.bin", u16(count(401)...)), write(t, dir, "b.bin", u16(count(241)...))}
	s := open(t, Spec{Train: one(paths...), ValidFraction: 0.1, SeqLen: 4, Vocab: 401})
	if s.TrainSamples() != 144 || s.ValidSamples() != 16 {
		t.Fatalf("%d train, %d held out, want 144 and 16", s.TrainSamples(), s.ValidSamples())
	}
	labels := map[int32]int{}
	for g := range s.TrainSamples() {
		for _, y := range get(t, s.Train, g, 4).labels {
			labels[y]++
		}
	}
	for y, want := range map[int32]int{1: 2, 216: 2, 217: 1, 240: 1, 241: 1, 360: 1, 361: 0, 400: 0} {
		if labels[y] != want {
			t.Errorf("label %d is trained on %d times, want %d", y, labels[y], want)
		}
	}
	first, second := get(t, s.Valid, 0, 4), get(t, s.Valid, 16, 4)
	if first.tokens[0] != 360 || second.tokens[0] != 360 {
		t.Errorf("validation begins with %v and wraps to %v, want 360", first, second)
	}
}

func TestAtLeastOneSampleIsHeldOut(t *testing.T) {
	path := write(t, t.TempDir(), "t.bin", u16(count(21)...))
	s := open(t, Spec{Train: one(path), ValidFraction: 0.01, SeqLen: 4, Vocab: 401})
	if s.TrainSamples() != 4 || s.ValidSamples() != 1 {
		t.Errorf("%d train, %d held out, want 4 and 1", s.TrainSamples(), s.ValidSamples())
	}
}

// Many one-sample files give up the fraction together, not one each.
func TestHeldOutOfManySmallFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		write(t, dir, fmt.Sprintf("%02d.bin", i), u16(count(5)...))
	}
	s := open(t, Spec{Train: one("*.bin"), Dir: dir, ValidFraction: 0.05, SeqLen: 4, Vocab: 401})
	if s.TrainSamples() != 38 || s.ValidSamples() != 2 {
		t.Errorf("%d train, %d held out, want 38 and 2", s.TrainSamples(), s.ValidSamples())
	}
}

func TestValidationFiles(t *testing.T) {
	dir := t.TempDir()
	train, valid := write(t, dir, "t.bin", u16(count(41)...)), write(t, dir, "v.bin", u16(count(10)...))
	s := open(t, Spec{Train: one(train), Valid: []Source{{Path: valid}}, ValidFraction: 0.5, SeqLen: 4, Vocab: 41})
	if s.TrainSamples() != 10 || s.ValidSamples() != 3 {
		t.Errorf("%d train, %d to validate, want 10 and 3: the fraction yields to files", s.TrainSamples(),
			s.ValidSamples())
	}
	if x := get(t, s.Valid, 2, 4); !slices.Equal(x.tokens, []int32{8}) || !slices.Equal(x.labels, []int32{9}) {
		t.Errorf("last sample is %v, want token 8 and label 9", x)
	}
}

func TestWeights(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, dir, "a.bin", u16(count(41)...)), write(t, dir, "b.txt", make([]byte, 41))
	for weight, want := range map[float64]struct{ epoch, low, high int }{
		0.5: {5, 0, 1}, 1: {10, 1, 1}, 2: {20, 2, 2}, 2.5: {25, 2, 3}, 0.01: {1, 0, 1},
	} {
		s := open(t, Spec{Train: []Source{{a, weight}, {b, 1}}, SeqLen: 4, Vocab: 256})
		if got := s.TrainSamples(); got != int64(want.epoch)+10 {
			t.Errorf("weight %g: an epoch has %d samples, want %d", weight, got, want.epoch+10)
		}
		total := map[int32]int{}
		epochs := 20
		for e := range epochs {
			seen := map[int32]int{}
			for g := range s.TrainSamples() {
				if x := get(t, s.Train, int64(e)*s.TrainSamples()+g, 4); x.labels[0] != 0 {
					seen[x.tokens[0]]++
					total[x.tokens[0]]++
				}
			}
			for x := int32(0); x < 40; x += 4 {
				if c := seen[x]; c < want.low || c > want.high {
					t.Errorf("weight %g, epoch %d: sample %d appears %d times, want %d to %d", weight, e, x, c,
						want.low, want.high)
				}
			}
		}
		for x := int32(0); x < 40; x += 4 {
			if c := total[x]; c != epochs*want.epoch/10 {
				t.Errorf("weight %g: sample %d appears %d times in %d epochs, want %d", weight, x, c, epochs,
					epochs*want.epoch/10)
			}
		}
	}
}

func TestID(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, dir, "a.bin", u16(count(41)...)), write(t, dir, "b.bin", u16(count(43)...))
	base := Spec{Train: one(a, b), SeqLen: 4, Vocab: 256, Seed: 1}
	id := func(change func(*Spec)) string {
		spec := base
		change(&spec)
		return open(t, spec).ID()
	}
	same := id(func(*Spec) {})
	if other := id(func(s *Spec) { s.Vocab = 999; s.Dir = "x" }); other != same {
		t.Error("the ID depends on what does not decide the samples")
	}
	for name, change := range map[string]func(*Spec){
		"order": func(s *Spec) { s.Train = one(b, a) }, "seed": func(s *Spec) { s.Seed = 2 },
		"seq_len": func(s *Spec) { s.SeqLen = 5 }, "fraction": func(s *Spec) { s.ValidFraction = 0.1 },
		"weight":   func(s *Spec) { s.Train = []Source{{a, 2}, {b, 1}} },
		"share":    func(s *Spec) { s.Train, s.Weights = []Source{{a, 2}, {b, 1}}, Shares },
		"sampling": func(s *Spec) { s.Sampling = Random }, "files": func(s *Spec) { s.Train = one(a) },
	} {
		if id(change) == same {
			t.Errorf("another %s leaves the ID as it is", name)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, dir, "a.bin", u16(count(41)...)), write(t, dir, "b.bin", u16(count(43)...))
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Train: one(a)}, "41 tokens in 1 file"},
		{Spec{Train: []Source{{a, 2}, {b, 1}}, ValidFraction: 0.1},
			"41 tokens in 1 file of weight 2 and 43 tokens in 1 file, data.valid 0.1"},
		{Spec{Train: []Source{{filepath.Join(dir, "*.bin"), 1}}}, "84 tokens in 2 files"},
	} {
		c.spec.SeqLen, c.spec.Vocab = 4, 256
		if got := open(t, c.spec).Files(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Ranks are goroutines that share a Set.
func TestConcurrentReaders(t *testing.T) {
	path := write(t, t.TempDir(), "t.bin", u16(count(401)...))
	s := open(t, Spec{Train: one(path), SeqLen: 16, Vocab: 401})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for g := range int64(200) {
				if x := get(t, s.Train, g, 16); x.labels[0] != x.tokens[0]+1 {
					t.Errorf("sample %d: %v", g, x)
				}
			}
		})
	}
	wg.Wait()
}

func TestLLMCShards(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "gpt2.bin", shard(20240520, 1, 9, u16(count(9)...)))
	var wide []byte
	for i := range 9 {
		wide = append(wide, byte(i), 0, 1, 0) // 65536 + i
	}
	write(t, dir, "llama.bin", shard(20240801, 7, 9, wide))
	write(t, dir, "gpt.BIN", u16(count(9)...))
	for name, want := range map[string]int32{"gpt2.bin": 4, "llama.bin": 65540, "gpt.BIN": 4} {
		s := open(t, Spec{Train: one(name), Valid: one(name), Dir: dir, SeqLen: 4, Vocab: 1 << 17, Tokenizer: "gpt2"})
		if x := get(t, s.Valid, 1, 4); x.tokens[0] != want || x.labels[3] != want+4 {
			t.Errorf("%s: sample 1 is %v, want tokens from %d on", name, x, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name    string
		content []byte
		spec    Spec
		want    string
	}{
		{"empty.bin", nil, Spec{}, "data: DIR/empty.bin is empty"},
		{"empty.txt", nil, Spec{}, "data: DIR/empty.txt is empty"},
		{"odd.bin", make([]byte, 7), Spec{},
			"data: DIR/odd.bin has an odd length, 7 bytes: 16-bit tokens were cut off, or it holds something else"},
		{"short.bin", u16(1, 2, 3, 4), Spec{},
			"data: DIR/short.bin is too short: it has 4 tokens, but one sample needs 5 (train.seq_len 4 plus the " +
				"last label)"},
		{"cut.bin", shard(20240520, 1, 9, make([]byte, 17)), Spec{},
			"data: DIR/cut.bin is truncated: its header says 9 tokens, which take 1042 bytes, but it has 1041"},
		{"long.bin", shard(20240801, 7, 2, make([]byte, 9)), Spec{},
			"data: DIR/long.bin is too long: its header says 2 tokens, which take 1032 bytes, but it has 1033"},
		{"none.bin", shard(20240520, 1, 0, nil), Spec{}, "data: DIR/none.bin is empty: its header says 0 tokens"},
		{"old.bin", shard(20240520, 2, 1, u16(1)), Spec{},
			"data: DIR/old.bin is an llm.c token file of version 2; it must be version 1"},
		{"model.bin", shard(20240326, 3, 1, nil), Spec{},
			"data: DIR/model.bin is llm.c's model checkpoint, not tokens"},
		{"all.bin", u16(count(5)...), Spec{ValidFraction: 0.1},
			"data: nothing is left to train on: the files have 1 sample of 4 tokens, and data.valid 0.1 holds it " +
				"out; use more data, a shorter train.seq_len, or data.valid: 0"},
		{"two.bin", u16(count(9)...), Spec{ValidFraction: 0.99},
			"data: nothing is left to train on: the files have 2 samples of 4 tokens, and data.valid 0.99 holds all " +
				"of them out; use more data, a shorter train.seq_len, or data.valid: 0"},
		{"f.bin", u16(count(9)...), Spec{ValidFraction: 1},
			"data: data.valid is 1; it must be at least 0 and below 1"},
		{"w.bin", u16(count(9)...), Spec{Train: []Source{{"w.bin", 0}}},
			"data: the weight of w.bin is 0; it must be above 0 (1 reads each sample once per epoch)"},
		{"x.bin", u16(count(9)...), Spec{Train: []Source{}}, "data: data.train names no files"},
	}
	for _, tt := range tests {
		path := write(t, dir, tt.name, tt.content)
		spec := tt.spec
		spec.SeqLen, spec.Vocab = 4, 100
		if spec.Train == nil {
			spec.Train = one(path)
		}
		_, err := Open(spec)
		wantInputError(t, err, dir, tt.want)
	}
}

func TestTokenOutsideVocabulary(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "t.bin", u16(1, 2, 3, 4, 5, 6, 50257, 8, 9))
	s := open(t, Spec{Train: one(path), Valid: one(path), SeqLen: 4, Vocab: 50257})
	x, y := make([]int32, 4), make([]int32, 4)
	_, err := s.Valid(1, x, y)
	wantInputError(t, err, dir, "data: DIR/t.bin: token 6 is 50257, but the model's vocabulary is 50257 (0 to "+
		"50256); was the file made by another tokenizer?")
	if _, err := s.Valid(0, x, y); err != nil {
		t.Error(err)
	}
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte{}, int64(0), true)
	f.Add([]byte("hello"), int64(5), false)
	f.Add(u16(count(600)...), int64(1200), true)
	f.Add(shard(20240520, 1, 3, nil)[:12], int64(1030), true)
	f.Add(shard(20240801, 7, 1<<31-1, nil)[:12], int64(1024+4<<31-4), true)
	f.Fuzz(func(t *testing.T, head []byte, size int64, isBin bool) {
		if size < 0 {
			return
		}
		name := "a.txt"
		if isBin {
			name = "a.bin"
		}
		format, err := detect(padded(head), size, name)
		if err != nil {
			return
		}
		if format.Tokens <= 0 || format.Width <= 0 || format.Offset+format.Tokens*int64(format.Width) != size {
			t.Errorf("size %d is read as %+v", size, format)
		}
	})
}

// padded is a file that goes on with zeros.
type padded []byte

func (p padded) ReadAt(b []byte, off int64) (int, error) {
	clear(b)
	if off < int64(len(p)) {
		copy(b, p[off:])
	}
	return len(b), nil
}

func ExampleSet() {
	dir, _ := os.MkdirTemp("", "data")
	defer os.RemoveAll(dir)
	os.WriteFile(filepath.Join(dir, "fox.txt"), []byte("The quick brown fox"), 0o666)

	s, err := Open(Spec{Train: []Source{{"fox.txt", 1}}, Dir: dir, ValidFraction: 0.25, SeqLen: 5, Vocab: 256})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	fmt.Println(s)
	tokens, labels := make([]int32, 5), make([]int32, 5)
	n, _ := s.Valid(0, tokens, labels)
	fmt.Printf("%q -> %q\n", tokenizer.Decode(tokenizer.Bytes{}, tokens[:n]),
		tokenizer.Decode(tokenizer.Bytes{}, labels[:n]))
	// Output:
	// 1 file, 19 tokens: 3 samples of 5 an epoch, 1 to validate
	// " fo" -> "fox"
}
