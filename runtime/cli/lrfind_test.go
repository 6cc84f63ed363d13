package cli

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/report"
)

// The test of a curve that falls around step 50 and rises from step 75 on ends and suggests as Lightning's does: the
// figures are those of its formulas in PyTorch, with torch.gradient.
func TestLRFind(t *testing.T) {
	f := &lrFinder{}
	var err error
	for i := 0; i < lrFindSteps && err == nil; i++ {
		x := float64(i)
		loss := 5 - 3/(1+math.Exp(-(x-50)/4))
		if i >= 75 {
			loss += 0.5 * (x - 75) * (x - 75)
		}
		err = f.add(report.Step{Loss: loss, LR: lrFindFrom * math.Pow(lrFindTo/lrFindFrom, (x+1)/lrFindSteps)})
	}
	if !errors.Is(err, driver.ErrStop) || len(f.rates) != 89 {
		t.Fatalf("%v after %d steps", err, len(f.rates))
	}
	if got, want := f.suggestion(), 0.0005248074602497723; math.Abs(got-want) > 1e-9*want {
		t.Errorf("suggests %v, want %v", got, want)
	}
	var out bytes.Buffer
	f.print(&out)
	for _, want := range []string{"\n1.20e-08  5.0000\n", "tried     89 steps", "the loss diverged above 1.32e-01",
		"suggested --set train.optimizer.lr=0.00052, where"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}

// A loss that never falls has no suggestion, and one that is not finite ends the test.
func TestLRFindWithoutSuggestion(t *testing.T) {
	f := &lrFinder{}
	for i := range 40 {
		if err := f.add(report.Step{Loss: 5 + float64(i)/100, LR: float64(i+1) / 1e4}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.add(report.Step{Loss: math.NaN(), LR: 1}); !errors.Is(err, driver.ErrStop) {
		t.Error(err)
	}
	var out bytes.Buffer
	f.print(&out)
	if f.suggestion() != 0 || !strings.Contains(out.String(), "suggested nothing: the loss does not fall") {
		t.Errorf("%v\n%s", f.suggestion(), out.String())
	}
}
