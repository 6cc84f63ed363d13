package interop_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/tokenizer"
)

// Megatron's own reader reads what planc data tokenize writes.
func TestMegatronReadsTokens(t *testing.T) {
	o := startOracle(t, "indexeddataset")
	bin, dir := harness.Planc(t), t.TempDir()
	var lines strings.Builder
	var documents [][]int
	for i := range 2000 {
		document := strings.Repeat("ab é", i%5) + string(rune('a'+i%26))
		fmt.Fprintf(&lines, "{\"text\": %q}\n", document)
		var tokens []int
		for _, c := range []byte(document + "\n") {
			tokens = append(tokens, int(c))
		}
		documents = append(documents, tokens)
	}
	if err := os.WriteFile(filepath.Join(dir, "docs.jsonl"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range [][2]string{{"uint16", "bytes"}, {"int32", "wide.json"}} { // the second changes the documents
		format, tokenizerName := x[0], x[1]
		if format == "int32" {
			wide := `{"model": {"type": "BPE", "vocab": {"a": 0, "b": 65500}, "merges": []}, "added_tokens": [{"id": 1, ` +
				`"content": "</s>", "special": true}]}`
			if err := os.WriteFile(filepath.Join(dir, "wide.json"), []byte(wide), 0o600); err != nil {
				t.Fatal(err)
			}
			for i := range documents {
				documents[i] = slices.DeleteFunc(documents[i], func(c int) bool { return c != 'a' && c != 'b' })
				for j, c := range documents[i] {
					documents[i][j] = map[int]int{'a': 0, 'b': 65500}[c]
				}
				documents[i] = append(documents[i], 1)
			}
		}
		cmd := exec.Command(bin, "data", "tokenize", "--tokenizer", tokenizerName, "--format", "megatron", "docs.jsonl",
			"-o", format+".bin")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got struct {
			Sequences [][]int
			Documents []int
			Type      string
		}
		if refusal := o.ask(t, map[string]any{"read": filepath.Join(dir, format)}, &got); refusal != "" {
			t.Fatal(refusal)
		}
		if n := len(documents); got.Type != format || len(got.Documents) != n+1 || got.Documents[n] != n {
			t.Errorf("%s: type %s, %d documents", format, got.Type, len(got.Documents)-1)
		}
		if !reflect.DeepEqual(got.Sequences, documents) {
			t.Errorf("%s: Megatron reads other tokens", format)
		}
	}
}

// Training reads what Megatron's builder writes.
func TestTokensOfMegatronAreRead(t *testing.T) {
	o := startOracle(t, "indexeddataset")
	dir := t.TempDir()
	for _, kind := range []string{"uint8", "int16", "uint16", "int32"} {
		var documents [][]int
		var want []int32
		for i := range 300 {
			var tokens []int
			for j := range 1 + i*i%17 {
				tokens = append(tokens, (i*31+j)%200)
				want = append(want, int32((i*31+j)%200))
			}
			documents = append(documents, tokens)
		}
		question := map[string]any{"write": filepath.Join(dir, kind), "type": kind, "documents": documents}
		if refusal := o.ask(t, question, nil); refusal != "" {
			t.Fatal(refusal)
		}
		f, err := data.OpenFile(filepath.Join(dir, kind+".bin"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var got []int32
		err = f.Scan(func(tokens []int32) error { got = append(got, tokens...); return nil })
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d tokens, not %d; %v", kind, len(got), len(want), err)
		}
		count := 0
		for length, err := range f.Sequences() {
			if err != nil || int(length) != len(documents[count]) {
				t.Errorf("%s: sequence %d has %d tokens; %v", kind, count, length, err)
			}
			count++
		}
	}
}

// Random texts have the token IDs that Hugging Face's library gives them. PLANC_TEXTS is the number of texts of each
// tokenizer: a million of each takes about an hour.
func TestRandomTextsHaveHuggingFacesTokens(t *testing.T) {
	o := startOracle(t, "randomtexts")
	tokenizer.NFC, tokenizer.NFD = norm.NFC.Bytes, norm.NFD.Bytes
	text, err := os.ReadFile(filepath.Join(harness.Root, "golden/reference/testdata/tokenizers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Tokenizers []struct {
			Name string
			File json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for seed, k := range all.Tokenizers {
		b, err := tokenizer.ParseJSON(k.File)
		if err != nil {
			t.Fatal(err)
		}
		count := drawsOr(0)
		if n, err := strconv.Atoi(os.Getenv("PLANC_TEXTS")); err == nil {
			count = n
		}
		for first := 0; first < count; first += textsAtOnce {
			question := map[string]any{"file": string(k.File), "seed": 100 + seed + first,
				"count": min(textsAtOnce, count-first)}
			compareTokens(t, o, k.Name, b, question)
		}
		t.Logf("%s: %d texts", k.Name, count)
	}
}

// textsAtOnce is how many texts one answer has.
const textsAtOnce = 20_000

// compareTokens compares the token IDs of the texts that the answer to a question has.
func compareTokens(t *testing.T, o *oracle, name string, b tokenizer.Tokenizer, question map[string]any) {
	t.Helper()
	var got struct {
		Texts []string
		IDs   [][]int32
	}
	if refusal := o.ask(t, question, &got); refusal != "" {
		t.Fatal(refusal)
	}
	for i, s := range got.Texts {
		ids, err := b.Encode(nil, []byte(s), true)
		if err != nil || !slices.Equal(ids, got.IDs[i]) && !isOldUnicode(name, s) {
			t.Errorf("%s: %q is %v (%v); Hugging Face has %v", name, s, ids, err, got.IDs[i])
		}
	}
}

// isOldUnicode reports whether a text has to be normalized. Hugging Face's library does that by the tables of an older
// version of Unicode, which order a few marks in another way.
func isOldUnicode(name, text string) bool { return name == "qwen" && !norm.NFC.IsNormalString(text) }
