package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/ir/spec"
)

func initCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "write a commented job file to start from",
		Long: `init writes planc.yaml into DIR (default: this folder): a small model that trains on a text that comes with
Go, and a comment for every field of a job. It runs as it is on this machine's CPU. Nothing is overwritten.`,
		Example: "planc init first && planc run first",
		Args:    oneName("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, job := ".", ""
			if len(args) > 0 {
				dir, job = args[0], " "+shell.QuotePath(args[0])
			}
			if dir == "-" { // standard output for other commands
				return inputErrorf(BadFlag, "",
					"planc init writes %s into a folder, and - is not one; for a folder of that name use "+
						"planc init ./-",
					jobFile)
			}
			if info, err := os.Stat(dir); err == nil && !info.IsDir() {
				return inputErrorf(FileExists, "", "%s is a file; planc init takes a folder and writes %s into it",
					dir, jobFile)
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return fmt.Errorf("create the folder of the job: %w", err)
			}
			return writeNewFile(a.Console, filepath.Join(dir, jobFile), initFile(),
				fmt.Sprintf("planc plan%s · planc run%s", job, job))
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
}

// initValues maps the fields that init's job sets to their values. All other fields are commented out, each with an
// example.
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

// initModel is the model of init's job, with the keys of a config.json.
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

const initHead = `# A planc job. Fields that are commented out are optional; their values are examples.
# [d] fields decide the plan; [r] fields can be changed when the program runs: ./train --set KEY=VALUE.
# "planc plan" finds the best plan for this job, "planc run" trains it.
`

// initComment is the column where comments of init's file begin; initWidth is the width of the file in columns.
const initComment, initWidth = 34, 100

// initFile returns the whole file: one line per field, in the job's order, with the field's meaning as a comment.
func initFile() string {
	var b strings.Builder
	b.WriteString(initHead)
	for _, f := range spec.Fields() {
		if strings.HasPrefix(f.Path, "train.precision.") {
			continue // train.precision is written as one preset
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

// initLine returns the line of one field: its key, its value and its meaning.
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
		text += "; default: " + f.Default
	}
	if len(f.Supported) == 1 && f.Supported[0] == spec.NoneSupported {
		text += " (not supported yet)"
	}
	if layout.Width(left) >= initComment {
		return left + "\n" + comment(strings.Repeat(" ", initComment), text)
	}
	return comment(layout.Pad(left, initComment), text)
}

// initHas reports whether init's job sets a field whose path has this prefix.
func initHas(prefix string) bool {
	for path := range initValues {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// initMarks maps the class of a field to its mark in the file.
var initMarks = map[string]string{"d": "[d]", "r": "[r]"}

// comment returns a text as a comment behind left, wrapped at initWidth.
func comment(left, text string) string {
	return strings.ReplaceAll(layout.FlowTo(left+"# ", layout.Width(left)+2, initWidth, " ", strings.Fields(text)),
		"\n"+strings.Repeat(" ", layout.Width(left)+2), "\n"+strings.Repeat(" ", layout.Width(left))+"# ")
}
