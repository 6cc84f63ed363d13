package golden_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// shorter are changes to the jobs of an example, so that the test takes seconds.
var shorter = []struct {
	was *regexp.Regexp
	is  string
}{
	{regexp.MustCompile(`\bsteps: \d+`), "steps: 4"}, {regexp.MustCompile(`\bwarmup: \d+`), "warmup: 1"},
	{regexp.MustCompile(`\bevery: \d+`), "every: 2"}, {regexp.MustCompile(`\bbatches: \d+`), "batches: 1"},
}

// The commands of an example's README run as they are, one after the other, and leave the files that it names.
func TestExamplesRun(t *testing.T) {
	planc := harness.Planc(t)
	for name, made := range map[string][]string{
		"shakespeare": {"char.tokenizer.json", "runs/char/metrics.jsonl", "runs/bpe/metrics.jsonl"},
		"gpt2":        {"gpt2-mini/config.json", "gpt2-mini/model.safetensors"},
		"finetune":    {"base/model.safetensors", "finetuned/config.json", "finetuned/model.safetensors"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "shakespeare" {
				harness.OnlyLong(t) // each builds two or three programs
			}
			dir := shortExample(t, name)
			writeText(t, filepath.Join(dir, "input.txt"))
			commands := readmeCommands(t, dir)
			if len(commands) < 7 {
				t.Fatalf("README.md has %d commands", len(commands))
			}
			for _, command := range commands {
				cmd := exec.Command("sh", "-c", command)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(planc)+":"+os.Getenv("PATH"))
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", command, err, out)
				}
			}
			for _, file := range made {
				if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", file, err)
				}
			}
		})
	}
}

// shortExample copies an example with shorter jobs, and returns its folder.
func shortExample(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "examples", name))); err != nil {
		t.Fatal(err)
	}
	jobs, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		text, err := os.ReadFile(job)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range shorter {
			text = s.was.ReplaceAll(text, []byte(s.is))
		}
		if err := os.WriteFile(job, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// writeText writes a text of some thousand words.
func writeText(t *testing.T, path string) {
	t.Helper()
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "The %d. sentence says that %d and %d are %d.\n", i, i, i*i%7, i+i*i%7)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// readmeCommands returns the indented lines of an example's README.
func readmeCommands(t *testing.T, dir string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}
