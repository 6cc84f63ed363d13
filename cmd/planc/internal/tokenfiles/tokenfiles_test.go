package tokenfiles

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/tokenizer"
)

// list is a sink that keeps everything.
type list struct {
	tokens []int32
	ends   []int
}

func (l *list) Write(tokens []int32, ends []int) error {
	for _, e := range ends {
		l.ends = append(l.ends, len(l.tokens)+e)
	}
	l.tokens = append(l.tokens, tokens...)
	return nil
}

// gpt2 returns a small tokenizer of GPT-2's kind.
func gpt2(t *testing.T) *tokenizer.Subword {
	t.Helper()
	text, err := os.ReadFile("../../../../golden/reference/testdata/tokenizers.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Tokenizers []struct{ File json.RawMessage }
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	b, err := tokenizer.ParseJSON(all.Tokenizers[0].File)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write writes a file into a folder of the test.
func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// prose returns text of about that many bytes.
func prose(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		b.WriteString("It was the ")
		b.WriteString(strings.Repeat("very ", i%7))
		b.WriteString("best of times (no. ")
		binary.Write(&b, binary.LittleEndian, []byte{byte('0' + i%10), byte('0' + i/10%10)})
		b.WriteString("),\n\n  é 你好 end.\n")
	}
	return b.Bytes()
}

// Text of many chunks, which all cores encode, has the tokens of the whole.
func TestChunksHaveTheTokensOfTheWhole(t *testing.T) {
	b := gpt2(t)
	text := prose(5 * chunkBytes / 2)
	whole, err := b.Encode(nil, text, true)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := b.Special("<|endoftext|>")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(text)
	z.Close()
	files := []string{write(t, "a.txt", text), write(t, "empty.txt", nil), write(t, "b.txt.gz", packed.Bytes())}
	e := Encoding{Tokenizer: b, EndOfText: end}
	var got list
	if err := e.Encode(t.Context(), &Reader{Files: files, Cut: b.Cut}, &got); err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(whole), end)
	if !slices.Equal(got.tokens, append(want, want...)) {
		t.Errorf("%d tokens, not twice %d", len(got.tokens), len(want))
	}
	if !slices.Equal(got.ends, []int{len(want), 2 * len(want)}) {
		t.Errorf("documents end at %v", got.ends)
	}
}

func TestLinesKeepTheirOrder(t *testing.T) {
	var text bytes.Buffer
	var want []byte
	for i := range 300000 {
		c := byte('a' + i%26)
		text.WriteString(`{"id":1,"text":"` + string(c) + `"}` + "\n")
		want = append(want, c, '\n')
	}
	path := write(t, "docs.jsonl", text.Bytes())
	if text.Len() < 5*chunkBytes {
		t.Fatal("too few chunks")
	}
	e := Encoding{Tokenizer: tokenizer.Bytes{}, EndOfText: -1, Separator: '\n', Key: "text"}
	var got list
	if err := e.Encode(t.Context(), &Reader{Files: []string{path}, Cut: e.Tokenizer.Cut}, &got); err != nil {
		t.Fatal(err)
	}
	if tokenizer.Decode(e.Tokenizer, got.tokens) != string(want) || len(got.ends) != 300000 {
		t.Errorf("%d tokens of %d documents", len(got.tokens), len(got.ends))
	}
}

func TestWrongFilesAreNamed(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(prose(1 << 20))
	z.Close()
	valid := strings.Repeat(`{"text":"a"}`+"\n", 200000)
	for _, c := range []struct {
		name, text, message string
	}{
		{"cut.txt.gz", packed.String()[:packed.Len()-20], "is truncated or damaged: unexpected EOF"},
		{"plain.gz", "text", "is named as compressed by gzip, but is not: "},
		{"late.jsonl", valid + `{"text":}`, ":200001:9: the line is not JSON: invalid character '}' looking for"},
		{"array.jsonl", "[1]\n", ":1:1: the line is not a JSON object"},
		{"null.jsonl", "{\"text\": null}\n", `:1:10: the value of "text" must be text`},
		{"long.jsonl", `{"text":"` + strings.Repeat("a", 5<<20) + `"}`, ":1:1: the line is longer than 4 MiB"},
		{"long.txt", "one\n" + strings.Repeat(".", 5<<20), ":1:1: the next 4 MiB of text cannot be cut"},
		{"late.txt", string(prose(3<<20)) + "x\n\xff", ":1: the byte 0xFF is not UTF-8"},
	} {
		path := write(t, c.name, []byte(c.text))
		b := gpt2(t)
		e := Encoding{Tokenizer: b, EndOfText: -1, Separator: -1, Key: "text"}
		err := e.Encode(t.Context(), &Reader{Files: []string{path}, Cut: b.Cut, limit: 4 << 20}, &list{})
		if err == nil || !strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestShardsAreNumbered(t *testing.T) {
	dir := t.TempDir()
	out, err := Create("llmc", filepath.Join(dir, "a.bin"), 70000, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range [][]int32{{1, 2, 3}, {4, 5, 66000}, {7, 8, 9, 10}} {
		if err := out.Write(tokens, nil); err != nil {
			t.Fatal(err)
		}
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*.bin")); len(names) > 0 {
		t.Errorf("%v exist before they are complete", names)
	}
	names, err := out.Finish()
	if err != nil {
		t.Fatal(err)
	}
	out.Discard()
	var sizes []int64
	for i, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		want := []int32{1, 2, 3, 4, 5, 66000, 7, 8, 9, 10}[4*i : min(4*i+4, 10)]
		if !bytes.Equal(text[headerBytes:], appendTokens(nil, want, 4)) ||
			!bytes.Equal(text[:12], appendTokens(nil, []int32{20240801, 7, int32(len(want))}, 4)) {
			t.Errorf("%s: %v", n, text[headerBytes:])
		}
		sizes = append(sizes, int64(len(text)))
	}
	if !slices.Equal(sizes, []int64{1040, 1040, 1032}) || filepath.Base(names[2]) != "a_000003.bin" {
		t.Error(names, sizes)
	}
}

func TestNothingStaysOfWhatIsDiscarded(t *testing.T) {
	dir := t.TempDir()
	for _, format := range Formats {
		out, err := Create(format, filepath.Join(dir, "a.bin"), 100, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Write([]int32{1, 2, 3}, []int{3}); err != nil {
			t.Fatal(err)
		}
		out.Discard()
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v stay", left)
	}
}
