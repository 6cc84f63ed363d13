package docs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir/spec"
)

const migratingPage = "docs/migrating.md"

var (
	quotedKey  = regexp.MustCompile("`((?:train|data|plan|cluster|objective)\\.[a-z_.]+)(?:: ([^`]+))?`")
	exampleJob = regexp.MustCompile("(?ms)^```yaml file=(\\S+)\n(.*?)^```$")
)

// settableJob is a job in which every key can be set.
const settableJob = "model: gpt2-124m\ntrain: {seq_len: 1024, global_batch: 480, precision: {compute: " +
	"bf16}}\ncluster: " +
	"{node: dgx-a100, nodes: 1}\n"

// Keys that pages name exist. planc accepts the values that they show, and refuses what a line calls not supported yet.
func TestPagesNameJobKeys(t *testing.T) {
	paths := map[string]bool{}
	for _, f := range spec.Fields() {
		paths[f.Path] = true
	}
	read := func(string) ([]byte, error) { return []byte(settableJob), nil }
	for name, page := range harness.DocPages(t) {
		if name == outputPage {
			continue // its keys are those of documents
		}
		for line := range strings.Lines(page) {
			for _, m := range quotedKey.FindAllStringSubmatch(line, -1) {
				if strings.HasSuffix(m[1], ".yaml") || strings.HasSuffix(m[1], ".bin") {
					continue
				}
				if !paths[m[1]] {
					t.Errorf("%s: the job file has no key %s", name, m[1])
				} else if m[2] != "" {
					holdSetting(t, name, line, settings(m[1], m[2]), read)
				}
			}
		}
	}
}

// quotedBlock matches a key of the job with a mapping, as in the tables of docs/job.md: `plan: {tp: 8}`.
var quotedBlock = regexp.MustCompile("`(train|data|plan|cluster|objective): (\\{[^`]*\\})`")

// planc accepts a mapping in backquotes, unless its line says that it is not supported yet.
func TestPagesShowMappings(t *testing.T) {
	read := func(string) ([]byte, error) { return []byte(settableJob), nil }
	shown := 0
	for name, page := range harness.DocPages(t) {
		for line := range strings.Lines(page) {
			for _, m := range quotedBlock.FindAllStringSubmatch(line, -1) {
				if name != "docs/errors.md" {
					holdSetting(t, name, line, settings(m[1], m[2]), read)
					shown++
				}
			}
		}
	}
	if shown < 3 {
		t.Errorf("the pages show %d mappings", shown)
	}
}

var inMapping = regexp.MustCompile(`([a-z_]+): (\[[^\]]*\]|[^,}]+)`)

// settings returns the overrides that set a key to a value; a mapping is set key by key.
func settings(key, value string) (out []spec.Override) {
	switch {
	case strings.HasPrefix(key, "train.experts"):
		out = append(out, spec.SetFlag("model=qwen3-30b-a3b"))
	case key == "train.padding_row":
		out = append(out, spec.SetFlag("model=opt-125m")) // a model with such a row
	case key == "train.early_stop":
		out = append(out, spec.SetFlag("train.eval.every=250"))
	}
	if !strings.HasPrefix(value, "{") {
		return append(out, spec.SetFlag(key+"="+value))
	}
	for _, m := range inMapping.FindAllStringSubmatch(value, -1) {
		out = append(out, spec.SetFlag(key+"."+m[1]+"="+m[2]))
	}
	return out
}

// holdSetting fails unless planc accepts a setting, or refuses it if the line says that it is not supported yet.
func holdSetting(t *testing.T, page, line string, set []spec.Override, read func(string) ([]byte, error)) {
	t.Helper()
	j, err := spec.Load("job.yaml", read, set...)
	if err == nil {
		j.SetDevice("sm_80")
	}
	later := strings.Contains(line, "ot supported yet")
	if later != (err != nil) {
		t.Errorf("%s: %+v: %v\n%s", page, set, err, line)
	}
}

// The jobs of the page have plans that fit, and nanoGPT's job reads nanoGPT's files and trains.
func TestMigratingJobs(t *testing.T) {
	bin := harness.Planc(t)
	w := newWorld(t, bin, "migrating")
	planc := func(args ...string) []byte {
		cmd := exec.Command(bin, args...)
		cmd.Dir, cmd.Env = w.dir, w.env
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("planc %v: %v\n%s", args, err, stderrOf(err))
		}
		return out
	}
	jobs := exampleJob.FindAllStringSubmatch(harness.DocPages(t)[migratingPage], -1)
	if len(jobs) < 6 {
		t.Errorf("%s has %d jobs; it needs one for each of the six projects", migratingPage, len(jobs))
	}
	for _, m := range jobs {
		if err := os.WriteFile(filepath.Join(w.dir, m[1]), []byte(m[2]), 0o666); err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Fits bool
			Plan map[string]any
		}
		if err := json.Unmarshal(planc("plan", "--json", m[1]), &doc); err != nil || !doc.Fits ||
			doc.Plan["dp"] == nil {
			t.Errorf("%s: %v, fits %v, plan %v", m[1], err, doc.Fits, doc.Plan)
		}
	}
	data := filepath.Join(w.dir, "data", "shakespeare_char")
	writeTokens(t, filepath.Join(data, "train.bin"), 9000)
	writeTokens(t, filepath.Join(data, "val.bin"), 1000)
	planc("run", "shakespeare.yaml", "--", "--steps", "2")
	if text, err := os.ReadFile(filepath.Join(w.dir, "runs", "shakespeare", "metrics.jsonl")); !strings.Contains(
		string(text), "valid_loss") {
		t.Errorf("nanoGPT's job left no valid_loss: %v\n%s", err, text)
	}
}

func stderrOf(err error) string {
	if e, ok := err.(*exec.ExitError); ok {
		return string(e.Stderr)
	}
	return ""
}

// writeTokens writes n tokens below 65 as nanoGPT's prepare.py does: 16 bits each, without a header.
func writeTokens(t *testing.T, path string, n int) {
	t.Helper()
	text := make([]byte, 2*n)
	for i := range n {
		text[2*i] = byte(i * i % 65)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
}
