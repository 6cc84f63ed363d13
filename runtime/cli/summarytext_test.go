package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/fold"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// A run says where its steps took as long as the prediction excludes, and there alone.
func TestUnexpectedSteps(t *testing.T) {
	for _, c := range []struct {
		predicted, part, measured float64
		says                      bool
	}{
		{0.1, 0.5, 0.06, false}, {0.1, 0.5, 0.149, false}, {0.1, 0.5, 0.04, true}, {0.1, 0.5, 0.2, true},
		{0.1, 0, 0.2, false}, {0, 0.5, 0.2, false},
	} {
		off := predictionNote(&program.Predict{StepSeconds: c.predicted, StepError: c.part},
			&report.Result{Timing: report.Timing{StepSeconds: c.measured}})
		if got := strings.HasPrefix(off,
			"outside the predicted 50.0 ms to 150.0 ms:\n        other load on this machine can explain it; "+
				"else\n        planc calibrate"); got != c.says {
			t.Errorf("%v ± %v, measured %v: %q", c.predicted, c.part, c.measured, off)
		}
	}
}

// A cluster that was measured before gets no advice to measure it.
func TestUnexpectedStepsOfAMeasuredCluster(t *testing.T) {
	p, r := &program.Predict{StepSeconds: 0.1, StepError: 0.5, Measured: true},
		&report.Result{Timing: report.Timing{StepSeconds: 0.2}, Metrics: "runs/x/metrics.jsonl"}
	const want = "outside the predicted 50.0 ms to 150.0 ms:\n        the job's cluster has measurements already; " +
		"other load on this machine\n" +
		"        can explain it, else fit them to this run:\n" +
		"        planc calibrate --from runs/x JOB.yaml -o here.yaml"
	if got := predictionNote(p, r); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	r.StepSeconds = 0.1
	if predictionNote(p, r) != "" {
		t.Error("a step as predicted is explained")
	}
}

// The output of a training binary fits a screen: its flags, its input errors, and its summary with the longest figures.
func TestWhatBinariesSayFitsTheScreen(t *testing.T) {
	p := &rank.Program{ProgramData: program.Program{Name: strings.Repeat("name", 10),
		Plan: program.Plan{Text: "dp 1024 · tp 8 · pp 16 × vpp 4 · sp · zero 1 in groups of 128 · micro_batch 1×64 · " +
			"recompute full 4 blocks"}},
	}
	p.Predict = program.Predict{StepSeconds: 1234.567, StepError: 0.2, MemoryBytes: 999 << 30}
	r := &report.Result{FirstStep: 1, Steps: 1e6, FirstLoss: 12.3456, Loss: 12.3456, ValidLoss: 12.3456,
		Timing: report.Timing{StepSeconds: 9999.99, TokensPerSecond: 999e9},
		Memory: report.Memory{ArenaBytes: 999 << 30, PeakBytes: 8 * 999 << 30},
		Ranks:  8, Here: 8, Metrics: "runs/metrics.jsonl"}
	var out bytes.Buffer
	usage(&out, p)
	if strings.Contains(out.String(), "GPU") {
		t.Errorf("on a CPU:\n%s", out.String())
	}
	onGPUs := *p
	onGPUs.Devices = struct{ rank.Devices }{}
	usage(&out, &onGPUs)
	if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), " as planc compiled it, for 1 NVIDIA GPU: ") {
		t.Errorf("on GPUs:\n%s", out.String())
	}
	summary(&out, p, r)
	report.NewPrinter(&out, true, nil).Warn(strings.Repeat("a long warning, ", 20))
	out.WriteString(report.Message(strings.Repeat("a long reason, ", 20), true))
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if fold.Width(line) > fold.Columns && strings.Contains(strings.TrimPrefix(line, "binary  "), " ") {
			t.Errorf("%d columns: %s", fold.Width(line), line)
		}
	}
	stack := "\ngoroutine 1 [running]:\n" + strings.Repeat("f(0x1, 0x2) ", 20)
	if got := report.Message("it broke"+stack, true); got != "it broke"+stack {
		t.Errorf("a stack is folded: %s", got)
	}
	if long := strings.Repeat("a long reason, ", 20); report.Message(long, false) != long {
		t.Error("a log's line is folded")
	}
	for _, want := range []string{"\n  --help                    print this help\n",
		"\n  --resume auto|never|STEP|DIR\n                            checkpoint to start from"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// What a model of bytes draws is shown as it is where it is print, and escaped where it is not; what is shown tells
// what was drawn.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"The light\n\tof day": "The light\n\tof day", `a\b "c" 'd'`: `a\\b "c" 'd'`, "é日\u00a0": `é日\u00a0`,
		"\x1b[2J\a\x00\x7f": `\x1b[2J\a\x00\x7f`, "\xff\xe6\x97": `\xff\xe6\x97`,
		"\u202e\u0085\ufffd": "\\u202e\\u0085\ufffd", "\r'": `\r'`,
		"\x07": `\a`, `\a`: `\\a`, `\\`: `\\\\`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q is shown as %s, want %s", in, got, want)
		}
	}
}
