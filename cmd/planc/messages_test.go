package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
)

// Messages on stderr are wrapped to the screen's width, and their words stay the same. Each input error begins a line.
func TestMessagesFitTheScreen(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{
		"plan", "plan --model gpt2-124m --cluster nowhere --global-batch 8 --seq-len 128",
		"plan --model llama3-8b --cluster dgx-h100 --global-batch 8 --seq-len 8192 --set plan.tp=6 --set plan.dp=3",
		"plan --model gpt2-124m --cluster 12xh100 --global-batch 8 --seq-len 128", "validate", "clusters 3xfoo",
		"calibrate --from nothing.csv", "plan --days 3 --model gpt2-124m --cluster h100 --global-batch 8 --seq-len 128",
	} {
		say := func(columns int) string {
			defer func(old int) { layout.MessageWidth = old }(layout.MessageWidth)
			layout.MessageWidth = columns
			var out, failed bytes.Buffer
			if code := run(strings.Fields(args), strings.NewReader(""), &out, &failed); code == exitDone {
				t.Fatalf("planc %s fails not", args)
			}
			return failed.String()
		}
		text, whole := say(layout.ScreenWidth), say(1<<20)
		for line := range strings.Lines(text) {
			if w := layout.Width(strings.TrimSuffix(line, "\n")); w > layout.ScreenWidth {
				t.Errorf("planc %s: %d columns: %s", args, w, line)
			}
		}
		if joined := strings.ReplaceAll(text, "\n    ", " "); joined != whole {
			t.Errorf("planc %s says\n%son one line\n%s", args, text, whole)
		}
	}
}
