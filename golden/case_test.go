package golden_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/golden/internal/harness"
)

// A case is a txtar archive: a job, and what every stage makes of it: the plan, the program after each pass, the
// generated Go, and the losses that the built program printed. A case holds excerpts of one block that can be reviewed,
// and the digest of each whole text. With -update a case is recorded, which builds the program and runs it twice;
// without, the stages are compared, which needs neither a build nor a run. The long run builds the program too. With
// -whole DIR the whole texts are written into a folder, to compare them with those of another commit.

var wholeDir = flag.String("whole", "", "write the whole texts of recorded cases into this folder")

// caseSteps is how long a recorded program trains.
const caseSteps = 5

func TestCases(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("cases", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	planc := harness.Planc(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runCase(t, planc, file) })
	}
}

func runCase(t *testing.T, planc, file string) {
	old, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &goldenCase{t: t, planc: planc, dir: t.TempDir(), old: old, now: &txtar.Archive{Comment: old.Comment}}
	for _, f := range old.Files {
		if !strings.HasPrefix(f.Name, "out/") {
			c.now.Files = append(c.now.Files, f)
			c.must(os.WriteFile(filepath.Join(c.dir, f.Name), f.Data, 0o644))
		}
	}
	c.stages()
	c.add("out/digests.txt", []byte(c.digests.String()))
	if harness.Updating() {
		c.add("out/losses.txt", c.record())
		c.must(os.WriteFile(file, txtar.Format(c.now), 0o644))
		return
	}
	c.add("out/losses.txt", c.recorded("out/losses.txt"))
	c.compare()
}

// goldenCase is one case under way.
type goldenCase struct {
	t          *testing.T
	planc, dir string
	old, now   *txtar.Archive
	digests    strings.Builder
}

func (c *goldenCase) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *goldenCase) add(name string, data []byte) {
	c.now.Files = append(c.now.Files, txtar.File{Name: name, Data: data})
}

func (c *goldenCase) recorded(name string) []byte {
	for _, f := range c.old.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// run is planc's standard output in the case's folder.
func (c *goldenCase) run(args ...string) []byte {
	c.t.Helper()
	cmd := exec.Command(c.planc, args...)
	cmd.Dir = c.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("planc %v: %v\n%s", args, err, stderr.Bytes())
	}
	return out
}

// stages adds what the compiler makes of the job.
func (c *goldenCase) stages() {
	c.add("out/plan.json", c.plan())
	for _, f := range txtar.Parse(c.run("ir", "--all")).Files {
		c.whole(f.Name, f.Data)
		switch f.Name {
		case "model.ir", "after/partition.ir":
			c.add("out/"+f.Name, excerptOf(f.Data, "func block.forward\n", "func ", maxExcerpt))
		case "after/memory.ir":
			c.add("out/"+f.Name, slices.Concat(excerptOf(f.Data, "func block.forward\n", "func ", maxExcerpt),
				excerptOf(f.Data, "func block.backward\n", "segment ", maxExcerpt),
				excerptOf(f.Data, "stage 0\n", "stage 1\n", maxExcerpt)))
		}
	}
	c.emit()
	src, err := filepath.Glob(filepath.Join(c.dir, "emitted", "*.go"))
	c.must(err)
	for _, path := range src {
		text, err := os.ReadFile(path)
		c.must(err)
		text = predictions.ReplaceAll(text, nil)
		name := "gen/" + filepath.Base(path)
		c.whole(name, text)
		c.add("out/"+name, excerptOf(text, "func blockForward(", "}\n", maxExcerpt))
	}
	c.vet()
}

// emit writes the generated code. It builds the program only to record it and in the long run. Otherwise planc finds no
// go command, and stops after it has written the code.
func (c *goldenCase) emit() {
	c.t.Helper()
	args := []string{"compile", "-o", "train", "--emit", "emitted"}
	if harness.Updating() || harness.Long() {
		c.run(args...)
		return
	}
	cmd := exec.Command(c.planc, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "PATH="+c.t.TempDir())
	if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte(build.ErrNoGo.Error())) {
		c.t.Fatalf("planc %v without a go command: %v\n%s", args, err, out)
	}
}

// maxExcerpt is how many lines an excerpt of a text has at most.
const maxExcerpt = 40

// whole notes the digest of a whole text, and writes the text if that was asked for.
func (c *goldenCase) whole(name string, text []byte) {
	c.t.Helper()
	fmt.Fprintf(&c.digests, "%-20s %5d lines  sha256 %x\n", name, bytes.Count(text, []byte("\n")), sha256.Sum256(text))
	if *wholeDir != "" {
		path := filepath.Join(*wholeDir, filepath.Base(c.t.Name()), filepath.FromSlash(name))
		c.must(os.MkdirAll(filepath.Dir(path), 0o777))
		c.must(os.WriteFile(path, text, 0o666))
	}
}

// excerptOf returns the lines of a text from the one that begins with from to the one before that which begins with
// until, or as many of these as an excerpt has at most.
func excerptOf(text []byte, from, until string, lines int) []byte {
	var out []byte
	n, skipped := 0, 0
	for line := range strings.Lines(string(text)) {
		if n == 0 && !strings.HasPrefix(line, from) {
			continue
		}
		if n > 0 && strings.HasPrefix(line, until) {
			break
		}
		n++
		if n > lines {
			skipped++
			continue
		}
		out = append(out, line...)
	}
	if skipped > 0 {
		out = fmt.Appendf(out, "... %d more lines\n", skipped)
	}
	return out
}

// predictions are the lines of generated code that change with the cost model.
var predictions = regexp.MustCompile(`(?s)\tPredict: rt\.Predict\{.*?\n\t\},\n|\t+FlopsStep: [^\n]*\n`)

// vet holds the generated code against go vet, as part of a module of its own.
func (c *goldenCase) vet() {
	c.t.Helper()
	root, err := filepath.Abs(harness.Root)
	c.must(err)
	dir := filepath.Join(c.dir, "emitted")
	mod := fmt.Sprintf("module case\n\ngo 1.26.0\n\nrequire github.com/planc-dev/planc v0.0.0\n\nreplace "+
		"github.com/planc-dev/planc => %s\n", root)
	c.must(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	c.must(err)
	c.must(os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644))
	cmd := exec.Command("go", "vet", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Errorf("go vet of the generated code: %v\n%s", err, out)
	}
}

// plan is the chosen plan, without prices: those change with the cost model, the program does not.
func (c *goldenCase) plan() []byte {
	var doc struct {
		Plan json.RawMessage `json:"plan"`
	}
	c.must(json.Unmarshal(c.run("plan", "--json"), &doc))
	var b bytes.Buffer
	c.must(json.Compact(&b, doc.Plan))
	b.WriteByte('\n')
	return b.Bytes()
}

// record trains twice; the same program gives the same bits.
func (c *goldenCase) record() []byte {
	first, second := c.losses("first"), c.losses("second")
	if first != second {
		c.t.Fatalf("the program is not deterministic:\n%s\n%s", first, second)
	}
	return fmt.Appendf(nil, "recorded on %s/%s, %s\n%s", runtime.GOOS, runtime.GOARCH, runtime.Version(), first)
}

func (c *goldenCase) losses(dir string) string {
	c.t.Helper()
	cmd := exec.Command(filepath.Join(c.dir, "train"), "--steps", fmt.Sprint(caseSteps), "--resume", "never",
		"--dir", dir)
	cmd.Dir = c.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("train: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(c.dir, dir, "metrics.jsonl"))
	c.must(err)
	var b strings.Builder
	for _, line := range strings.Split(string(text), "\n") {
		var m struct {
			Step     int
			Loss     *float64
			GradNorm float64 `json:"grad_norm"`
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Loss != nil {
			fmt.Fprintf(&b, "step %d  loss %.9g  grad_norm %.9g\n", m.Step, *m.Loss, m.GradNorm)
		}
	}
	return b.String()
}

// maxCaseLines is how long a recorded case is at most, so that people review a change of it.
const maxCaseLines = 300

// compare wants every section as recorded.
func (c *goldenCase) compare() {
	if n := bytes.Count(txtar.Format(c.old), []byte("\n")); n > maxCaseLines {
		c.t.Errorf("the case has %d lines; the limit is %d", n, maxCaseLines)
	}
	if len(c.now.Files) != len(c.old.Files) {
		c.t.Errorf("%d sections, recorded were %d; to record: go test ./golden/... -run TestCases -update",
			len(c.now.Files), len(c.old.Files))
	}
	for _, f := range c.now.Files {
		if want := c.recorded(f.Name); !bytes.Equal(f.Data, want) {
			c.t.Errorf("%s is not as recorded (go test ./golden/... -run TestCases -update; whole texts: "+
				"-whole DIR):\n%s",
				f.Name, firstDifference(want, f.Data))
		}
	}
	if len(c.recorded("out/losses.txt")) == 0 {
		c.t.Error("no recorded losses: the case was never run")
	}
}

// firstDifference shows where two texts part.
func firstDifference(want, got []byte) string {
	w, g := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range max(len(w), len(g)) {
		at := func(s []string) string {
			if i < len(s) {
				return s[i]
			}
			return "(end)"
		}
		if at(w) != at(g) {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, at(w), at(g))
		}
	}
	return "(equal)"
}
