package main

import (
	"bytes"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/planc-dev/planc/passes/validate"
)

// plotted is the maximum of rows of a source that are drawn, at equal distances.
const plotted = 60

var colors = map[string]color.RGBA{"megatron": {118, 185, 0, 255}, "deepspeed": {0, 90, 200, 255},
	"fsdp": {238, 76, 44, 255}}

// scatter plots predicted over measured seconds on logarithmic axes, by engine, with lines at 10 % error.
func scatter(rows []*validate.Priced) ([]byte, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "measured, seconds a step", "predicted"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	byEngine, low, high := points(rows)
	for _, name := range []string{"megatron", "deepspeed", "fsdp"} {
		if len(byEngine[name]) == 0 {
			continue
		}
		s, err := plotter.NewScatter(byEngine[name])
		if err != nil {
			return nil, err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: colors[name], Radius: vg.Points(1.5), Shape: draw.PlusGlyph{}}
		p.Add(s)
		p.Legend.Add(name, s)
	}
	for _, factor := range []float64{0.9, 1, 1.1} {
		l, err := plotter.NewLine(plotter.XYs{{X: low, Y: factor * low}, {X: high, Y: factor * high}})
		if err != nil {
			return nil, err
		}
		l.Width = vg.Points(0.4)
		p.Add(l)
	}
	p.Legend.Top, p.Legend.Left = true, true
	w, err := p.WriterTo(10*vg.Centimeter, 10*vg.Centimeter, "svg")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = w.WriteTo(&b)
	return b.Bytes(), err
}

// points returns the points to draw, by engine, and the range of measured values.
func points(rows []*validate.Priced) (byEngine map[string]plotter.XYs, low, high float64) {
	byEngine = map[string]plotter.XYs{}
	total, seen := map[string]int{}, map[string]int{}
	for _, p := range rows {
		total[p.Source]++
	}
	low, high = *rows[0].Measured, *rows[0].Measured
	for _, p := range rows {
		n := seen[p.Source]
		seen[p.Source]++
		if step := (total[p.Source] + plotted - 1) / plotted; n%step != 0 {
			continue
		}
		low, high = min(low, *p.Measured), max(high, *p.Measured)
		byEngine[p.Engine] = append(byEngine[p.Engine], plotter.XY{X: *p.Measured, Y: p.Predicted})
	}
	return byEngine, low, high
}
