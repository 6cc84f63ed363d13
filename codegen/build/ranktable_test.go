package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/tiktoken-go/tokenizer" // so that go mod download gets what the program needs

	"github.com/planc-dev/planc/runtime/tokenizer"
)

// The tables are OpenAI's, bit for bit, and with them the tokenizers give the IDs of OpenAI's tiktoken. (The module
// that the tables come from gives others: v0.10.0 splits line ends in another way.)
func TestRankTablesAreOpenAIs(t *testing.T) {
	emptyCache(t)
	text, err := os.ReadFile("../../golden/reference/testdata/encodings.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Tokenizers []struct {
			Name  string
			Cases []struct {
				Text string
				IDs  []int32
			}
		}
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Tokenizers) != len(tokenizer.Encodings) {
		t.Fatalf("%d encodings are recorded", len(want.Tokenizers))
	}
	for i, e := range tokenizer.Encodings {
		table, err := RankTable(t.Context(), e.Published)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(table); hex.EncodeToString(sum[:]) != e.SHA256 {
			t.Fatalf("the table of %s has the SHA-256 %x", e.Name, sum)
		}
		b, err := tokenizer.ParseRanks(e, table)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range want.Tokenizers[i].Cases {
			got, err := b.Encode(nil, []byte(c.Text), true)
			if err != nil || !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %q is %v; tiktoken has %v", e.Name, c.Text, got, c.IDs)
			}
			if text := tokenizer.Decode(b, got); text != c.Text {
				t.Errorf("%s: %q decodes to %q", e.Name, c.Text, text)
			}
		}
	}
}

// emptyCache gives the test a cache folder of its own, and Go's cache as it is.
func emptyCache(t *testing.T) {
	t.Helper()
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

// The program that prints tables has the versions that go.mod and go.sum have.
func TestRankProgramHasTheVersionsOfGoMod(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), rankModule) {
		t.Errorf("go.mod does not require %s", rankModule)
	}
	for line := range strings.Lines(ranksSums) {
		if !strings.Contains(string(sum), line) {
			t.Errorf("go.sum does not have %s", line)
		}
	}
}

func TestRankTableNeedsGo(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	_, err := RankTable(t.Context(), "r50k_base")
	if err == nil || !strings.Contains(err.Error(), ErrNoGo.Error()) ||
		!strings.Contains(err.Error(), filepath.Join("tokenizers", "r50k_base.tiktoken")) {
		t.Error(err)
	}
}
