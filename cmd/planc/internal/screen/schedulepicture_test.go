package screen

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
)

// drawn is a small program on stages.
func drawn(t *testing.T, schedule string, pp, vpp, micro int) *ir.Program {
	t.Helper()
	c := spec.Config{Family: spec.GPT2, Vocab: 61, Hidden: 16, Layers: pp * vpp, Heads: 8, KVHeads: 8, HeadDim: 2,
		FFN: 32, MaxPositions: 10,
		Activation: "gelu_new", NormEps: 1e-5, InitStd: 0.2, AttentionBias: true, QKVBias: true, MLPBias: true}
	p := ir.SerialPlan(c.Layers, 1, ir.FullPrecision(ir.F32))
	p.PP, p.VPP, p.MicroBatches, p.Schedule, p.AxisOrder = pp, vpp, micro, schedule, "tp,dp,pp"
	p.StageLayers = strings.TrimSuffix(strings.Repeat("1,", pp*vpp), ",")
	prog, err := passes.Compile(zoo.Build("tiny", c, zoo.Options{SeqLen: 8, Batch: 1, Elem: ir.F32}), p,
		ir.Recipe{Optimizer: "sgd"}, passes.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// golden compares with a file of testdata, which PLANC_UPDATE=1 rewrites.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("PLANC_UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// Each schedule's table of actions, for a terminal.
func TestPictureText(t *testing.T) {
	var all strings.Builder
	for _, c := range []struct {
		schedule       string
		pp, vpp, micro int
	}{{"gpipe", 4, 1, 4}, {"1f1b", 4, 1, 4}, {"interleaved", 4, 2, 4}, {"zb-h1", 4, 1, 4}, {"zb-v", 4, 2, 7}} {
		pic, err := NewPicture(drawn(t, c.schedule, c.pp, c.vpp, c.micro))
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(pic.Text() + "\n")
	}
	for line := range strings.Lines(all.String()) {
		if w := layout.Width(strings.TrimSuffix(line, "\n")); w > layout.ScreenWidth {
			t.Errorf("%d columns: %q", w, line)
		}
	}
	golden(t, "schedules.txt", all.String())
}

// The same as SVG, which is XML.
func TestPictureSVG(t *testing.T) {
	pic, err := NewPicture(drawn(t, "zb-v", 2, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	got := pic.SVG()
	boxes := 0
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "g" {
			boxes++
		}
	}
	if want := 3 * 4 * 3; boxes != want {
		t.Errorf("%d passes are drawn, want %d", boxes, want)
	}
	golden(t, "schedule.svg", got)
}
