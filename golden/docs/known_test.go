package docs_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/validate"
)

// knownFile lists runs that are often quoted, with their published figures.
const knownFile = "testdata/known_runs.csv"

// knownRun is a row of knownFile with its prediction.
type knownRun struct {
	name, published, about string
	gpus                   int
	tokens                 float64 // of a step
	priced                 validate.Priced
}

// figure returns the prediction in the unit of the published figure, and the relative difference to it. base is the
// step time on one GPU, to which speed-ups are relative.
func (k *knownRun) figure(base float64) (text string, off float64) {
	step := k.priced.Predicted
	word, _, _ := strings.Cut(k.published, " ")
	published, err := strconv.ParseFloat(strings.ReplaceAll(word, ",", ""), 64)
	if err != nil {
		panic(knownFile + ": " + k.published)
	}
	got := 0.0
	switch {
	case strings.HasSuffix(k.published, "tokens/s a GPU"):
		got = k.tokens / step / float64(k.gpus)
		text = fmt.Sprintf("%.0f tokens/s a GPU", got)
	case strings.HasSuffix(k.published, "tokens/s"):
		got = k.tokens / step
		text = fmt.Sprintf("%.0f tokens/s", got)
	case strings.HasSuffix(k.published, "ms a step"):
		got = 1000 * step
		text = fmt.Sprintf("%.0f ms a step", got)
	default:
		got = float64(k.gpus) * base / step
		text = fmt.Sprintf("%.2f times", got)
	}
	return text, got/published - 1
}

// knownRuns predicts the runs of knownFile.
func knownRuns() []knownRun {
	data, err := os.ReadFile(knownFile)
	if err != nil {
		panic(err)
	}
	cells, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		panic(err)
	}
	rows, err := validate.Parse(knownFile, data)
	if err != nil {
		panic(err)
	}
	report := validate.Run(rows)
	if len(report.Skipped) > 0 {
		panic(fmt.Sprint(report.Skipped))
	}
	at := map[string]int{}
	for i, name := range cells[0] {
		at[name] = i
	}
	var out []knownRun
	for i, p := range report.Rows {
		row := cells[i+1]
		number := func(name string) float64 { v, _ := strconv.ParseFloat(row[at[name]], 64); return v }
		out = append(out, knownRun{row[at["source"]], row[at["published"]], row[at["note"]], int(number("num_gpus")),
			number("global_batch") * number("seq_len"), p})
	}
	return out
}

// speedUpBase returns the predicted step time of the one-GPU run that speed-ups are relative to.
func speedUpBase(runs []knownRun) float64 {
	for i := range runs {
		if runs[i].published == "135 ms a step" {
			return runs[i].priced.Predicted
		}
	}
	panic(knownFile + ": no run of one GPU")
}

// knownTable returns the table of published and predicted figures, and of the memory for model states of 175 B
// parameters.
func knownTable(string) []string {
	out := table("run", "runtime", "plan", "published", "predicted", "difference", "source and reason")
	runs := knownRuns()
	for i := range runs {
		k := &runs[i]
		text, off := k.figure(speedUpBase(runs))
		out = append(out, harness.TableRow(k.name, k.priced.Engine, k.priced.Plan, k.published, text,
			fmt.Sprintf("%+.0f %%",
				100*off), k.about))
	}
	for _, s := range states175() {
		out = append(out, harness.TableRow("GPT-3 175B, model states", "any", s.what, s.published,
			fmt.Sprintf("%.1f TB",
				s.terabytes), "", s.about))
	}
	return out
}

// states175 returns the size of GPT-3 175B's model states under Adam, for three ways of counting them.
func states175() (out []struct {
	what, published, about string
	terabytes              float64
}) {
	cfg, err := spec.LoadModel("gpt3-175b", nil)
	if err != nil {
		panic(err)
	}
	params := float64(cfg.Params())
	for _, x := range []struct {
		p                ir.Precision
		published, about string
	}{
		{ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.BF16, Reduce: ir.BF16, Master: ir.BF16,
			Moments: ir.F32}, "2.1 TB",
			"guides: 2 bytes of weights, 2 of gradients, 8 of moments. They omit the master copy, without which " +
				"updates below 1/256 of a weight are lost"},
		{ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.BF16, Reduce: ir.BF16, Master: ir.F32,
			Moments: ir.F32}, "", "with a master copy in FP32, as ZeRO's paper counts"},
		{spec.Presets["bf16"].IR(), "", "planc's preset bf16: gradients are summed in FP32"},
	} {
		n := x.p.BytesPerParam()
		out = append(out, struct {
			what, published, about string
			terabytes              float64
		}{fmt.Sprintf("%d bytes per parameter", n), x.published, x.about, float64(n) * params / 1e12})
	}
	return out
}

// Predictions of often quoted runs match the published figures, or the table gives the reason. DeepSeek-V3 is within
// the error bar that is assumed for runs without similar measurements. GPT-2's step matches nanoGPT's measurement, not
// the guides. Its speed-ups are at least the published ones and at most linear. 2.1 TB is 12 bytes per parameter.
func TestKnownRuns(t *testing.T) {
	runs := knownRuns()
	base := speedUpBase(runs)
	seen := map[string]bool{}
	for i := range runs {
		k := &runs[i]
		text, off := k.figure(base)
		seen[k.published] = true
		switch {
		case k.priced.Engine == "planc":
			if off > -0.5 {
				t.Errorf("%s: %s, %+.2f; the reason beside it says that planc's own runtime is slower",
					k.name, text, off)
			}
		case strings.HasSuffix(k.published, "times"):
			if linear := float64(k.gpus) * base / k.priced.Predicted; off < 0 || off > 0.1 || linear > float64(k.gpus) {
				t.Errorf("%s: %s, published %s", k.name, text, k.published)
			}
		case k.published == "500 ms a step":
			if rate := k.priced.Predict.ModelTFLOPS * k.priced.Predicted / 0.5; math.Abs(rate-20) > 1 || off > -0.7 {
				t.Errorf("%s: %s; 500 ms are %.1f TFLOP/s, the reason says 20", k.name, text, rate)
			}
		case k.published == "200,000 tokens/s":
			if off < 3 {
				t.Errorf("%s: %s", k.name, text)
			}
		case k.priced.Error == nil || math.Abs(*k.priced.Error) > 0.33:
			t.Errorf("%s: %s, published %s", k.name, text, k.published)
		}
		if k.about == "" {
			t.Errorf("%s has no source", k.name)
		}
	}
	for _, want := range []string{"1,543 tokens/s a GPU", "500 ms a step", "1.9 times", "3.7 times", "7.3 times"} {
		if !seen[want] {
			t.Errorf("%s: nothing is published as %q", knownFile, want)
		}
	}
	if deepSeek := runs[0].priced; math.Abs(*deepSeek.Error) > 0.3 || deepSeek.Engine != "hai-llm" {
		t.Errorf("DeepSeek-V3 takes %v s a step, %v were measured", deepSeek.Predicted, *deepSeek.Measured)
	}
	for i, want := range []float64{12, 16, 18} {
		if s := states175()[i]; math.Abs(s.terabytes/(want*0.175)-1) > 0.01 ||
			s.what != fmt.Sprintf("%v bytes per parameter", want) {
			t.Errorf("%s: %v TB", s.what, s.terabytes)
		}
	}
}
