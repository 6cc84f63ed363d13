package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/ir/spec"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "a commented job file to begin with",
		Long: "init writes planc.yaml into DIR, or here: a small model that learns from a text which comes with " +
			"Go, with a\n" +
			"line on every field that a job can have. It runs as it is, on this machine's CPU. Nothing is overwritten.",
		Example: "planc init first && planc run first",
		Args:    oneName("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, job := ".", ""
			if len(args) > 0 {
				dir, job = args[0], " "+shellPath(args[0])
			}
			if dir == "-" { // elsewhere standard output, which is no folder
				return inputErrorf(BadFlag, "",
					"planc init writes %s into a folder, and - is none; planc init ./- is for one of that name",
					jobFile)
			}
			if info, err := os.Stat(dir); err == nil && !info.IsDir() {
				return inputErrorf(FileExists, "", "%s is a file; planc init takes a folder, in which it writes %s",
					dir, jobFile)
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return fmt.Errorf("make the folder of the job: %w", err)
			}
			return a.writeNew(filepath.Join(dir, jobFile), initFile(),
				fmt.Sprintf("planc plan%s · planc run%s", job, job))
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
}

// initValues are the fields that init's job has. All others are commented out, each with an example.
var initValues = map[string]string{
	"name":                  "opticks",
	"model":                 "",
	"data.train":            "[goroot:src/testdata/Isaac.Newton-Opticks.txt]",
	"data.valid":            "0.05",
	"data.tokenizer":        "bytes",
	"train.seq_len":         "64",
	"train.global_batch":    "16",
	"train.steps":           "300",
	"train.precision":       "f32",
	"train.optimizer.kind":  "adamw",
	"train.optimizer.lr":    "3e-3",
	"train.schedule.kind":   "cosine",
	"train.schedule.warmup": "20",
	"train.eval.every":      "100",
	"train.eval.batches":    "8",
	"train.eval.sample":     `"The light"`,
	"cluster.node":          "cpu",
	"cluster.devices":       "2",
}

// initModel is the model of init's job, in the words of a config.json.
const initModel = `  model_type: gpt2
  vocab_size: 256               # a token is a byte
  n_positions: 64
  n_embd: 64
  n_layer: 4
  n_head: 4
  embd_pdrop: 0
  resid_pdrop: 0
  attn_pdrop: 0
`

const initHead = `# A job of planc. What is commented out is not needed: it shows what could stand there.
# [d] decides the plan; [r] can be changed when the program runs: ./train --set KEY=VALUE.
# "planc plan" says how this is trained best, "planc run" trains it.
`

// Columns of init's file: where a comment begins, and how wide the file is.
const initComment, initWidth = 34, 100

// initFile is the whole file: a line a field, in the job's order, with what the field means.
func initFile() string {
	var b strings.Builder
	b.WriteString(initHead)
	for _, f := range spec.Fields() {
		if strings.HasPrefix(f.Path, "train.precision.") {
			continue // written as one word
		}
		if !strings.Contains(f.Path, ".") {
			b.WriteString("\n")
		}
		b.WriteString(initLine(f))
		if f.Path == "model" {
			b.WriteString(initModel)
		}
	}
	return b.String()
}

// initLine is a field, its value, and what it means.
func initLine(f spec.Field) string {
	keys := strings.Split(f.Path, ".")
	left := strings.Repeat("  ", len(keys)-1) + keys[len(keys)-1] + ":"
	value, on := initValues[f.Path]
	if !on && (!f.Group || f.Path == "train.precision") {
		value = f.Example
	}
	if value != "" {
		left += " " + value
	}
	if !on && !initHas(f.Path+".") {
		left = "# " + left
	}
	text := strings.TrimSpace(initMarks[f.Class] + " " + f.Doc)
	switch {
	case f.Group, f.Default == "", f.Default == "searched", f.Default == "not used":
	case strings.HasPrefix(f.Default, "required"):
		text += "; " + f.Default
	default:
		text += "; absent: " + f.Default
	}
	if len(f.Now) == 1 && f.Now[0] == "-" {
		text += " (not there yet)"
	}
	if width(left) >= initComment {
		return left + "\n" + comment(strings.Repeat(" ", initComment), text)
	}
	return comment(pad(left, initComment), text)
}

// initHas says whether init's job has a field of this mapping.
func initHas(prefix string) bool {
	for path := range initValues {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// initMarks are the classes of fields.
var initMarks = map[string]string{"d": "[d]", "r": "[r]"}

// comment is a text after a #, on further lines below it.
func comment(left, text string) string {
	return strings.ReplaceAll(flowTo(left+"# ", width(left)+2, initWidth, " ", strings.Fields(text)),
		"\n"+strings.Repeat(" ", width(left)+2), "\n"+strings.Repeat(" ", width(left))+"# ")
}
