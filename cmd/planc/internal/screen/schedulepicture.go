package screen

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner/quantity"
)

// Picture is the pipeline schedule of a program in one step. Stages are rows, and time runs to the right. A
// forward pass takes 1 unit and a backward pass 2 units, in two parts if it is split.
type Picture struct {
	name    string
	line    *costmodel.Timeline
	chunked bool // stages have several chunks
}

// NewPicture returns the schedule of a program, which it simulates.
func NewPicture(p *ir.Program) (*Picture, error) {
	line, err := (&costmodel.Pipeline{Timetable: p.Timetable(), Chunks: costmodel.UnitTimes(p.Plan)}).Simulate()
	if err != nil {
		return nil, err
	}
	return &Picture{name: p.Name + ", " + p.Plan.Schedule, line: line, chunked: p.Plan.VPP > 1}, nil
}

// passKind holds the name and the colours of a kind of pass. Every second chunk has the darker colour.
type passKind struct {
	kind               ir.ActionKind
	word, fill, darker string
}

var passKinds = []passKind{
	{ir.Forward, "forward", "#bcd7f0", "#7fb0de"},
	{ir.Backward, "backward", "#f6d3a3", "#e8ab59"},
	{ir.WeightGrad, "gradients of parameters", "#c8e6bf", "#8cc77c"},
}

// usedPasses returns the kinds of passes that occur in the schedule.
func (p *Picture) usedPasses() (out []passKind) {
	for _, k := range passKinds {
		if slices.ContainsFunc(p.line.Stages[0], func(s costmodel.Span) bool { return s.Kind == k.kind }) {
			out = append(out, k)
		}
	}
	return out
}

// Sizes of the picture in pixels: the width of a unit of time, the height of a row, the width of the labels of rows,
// and the height of the legend.
const unitWidth, rowHeight, labelWidth, headHeight = 22, 24, 70, 30

// SVG returns the picture as an SVG file.
func (p *Picture) SVG() string {
	var b strings.Builder
	rows := len(p.line.Stages)
	width, height := labelWidth+pixels(p.line.End, unitWidth)+80, headHeight+rows*rowHeight+10
	fmt.Fprintf(&b, SVGHead+`xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" `+
		`font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(p.name))
	at := labelWidth
	for _, k := range p.usedPasses() {
		fmt.Fprintf(&b, `<rect x="%d" y="8" width="12" height="12" fill="%s"/><text x="%d" y="18">%s</text>`+"\n", at,
			k.fill, at+16, k.word)
		at += 40 + 7*len(k.word)
	}
	for i, spans := range p.line.Stages {
		y := headHeight + i*rowHeight
		fmt.Fprintf(&b, `<text x="4" y="%d">stage %d</text>`+"\n", y+16, i)
		for _, s := range spans {
			p.box(&b, s, y)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d">idle %s</text>`+"\n", labelWidth+pixels(p.line.End, unitWidth)+6, y+16,
			quantity.Percent(p.line.BubbleFraction(i)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// box draws a pass with the number of its micro-batch.
func (p *Picture) box(b *strings.Builder, s costmodel.Span, y int) {
	x, w := labelWidth+pixels(s.Start, unitWidth), pixels(s.End-s.Start-s.Wait, unitWidth)
	for _, k := range passKinds {
		if k.kind == s.Kind {
			fill := k.fill
			if s.Chunk%2 == 1 {
				fill = k.darker
			}
			fmt.Fprintf(b, `<g><title>%s of micro-batch %d, chunk %d, %v to %v</title><rect x="%d" y="%d" width="%d" `+
				`height="%d" fill="%s" stroke="#fff"/>`,
				k.word, s.Micro, s.ModelChunk, float64(s.Start), float64(s.End-s.Wait), x, y, w, rowHeight-2, fill)
			fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%d</text></g>`+"\n", x+w/2, y+15, s.Micro)
		}
	}
}

func pixels(t costmodel.Seconds, unit int) int { return int(float64(t)*float64(unit) + 0.5) }

// Text returns the picture for terminals. A cell is a unit of time. Long rows are continued below.
func (p *Picture) Text() string {
	cell := 2 + len(strconv.Itoa(p.maxMicroBatch()))
	if p.chunked {
		cell++
	}
	rows := make([][]string, len(p.line.Stages))
	for i, spans := range p.line.Stages {
		for _, s := range spans {
			rows[i] = p.appendPass(rows[i], s)
		}
	}
	label := len("stage ") + len(strconv.Itoa(len(rows)-1)) + layout.ColumnGap
	cells := max(1, (layout.ScreenWidth-label)/cell)
	var b strings.Builder
	for from := 0; from < pixels(p.line.End, 1); from += cells {
		for i, row := range rows {
			line := layout.Pad(fmt.Sprintf("stage %d", i), label)
			for _, c := range row[min(from, len(row)):min(from+cells, len(row))] {
				line += layout.Pad(c, cell)
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		b.WriteString("\n")
	}
	b.WriteString(layout.Prose("", 0, p.legend()))
	for i := range rows {
		fmt.Fprintf(&b, "stage %d is idle for %v of %v units (%s)\n", i, float64(p.line.Bubble(i)), float64(p.line.End),
			quantity.Percent(p.line.BubbleFraction(i)))
	}
	return b.String()
}

// appendPass appends a pass to the cells of its row: F3, then a dash for each further unit. Dots are idle time.
func (p *Picture) appendPass(row []string, s costmodel.Span) []string {
	for len(row) < pixels(s.Start, 1) {
		row = append(row, ".")
	}
	name := fmt.Sprintf("%c%d", s.Kind, s.Micro)
	if p.chunked {
		name += string(rune('a' + s.Chunk%26))
	}
	row = append(row, name)
	for len(row) < pixels(s.End-s.Wait, 1) {
		row = append(row, "-")
	}
	return row
}

func (p *Picture) maxMicroBatch() int {
	n := 0
	for _, s := range p.line.Stages[0] {
		n = max(n, s.Micro)
	}
	return n
}

func (p *Picture) legend() string {
	legend := p.name + ": "
	for _, k := range p.usedPasses() {
		legend += fmt.Sprintf("%c is %s, ", k.kind, k.word)
	}
	legend += "the number is the micro-batch"
	if p.chunked {
		legend += ", the letter is the chunk"
	}
	return legend + ", a dot is idle time."
}

// SVGHead is the beginning of an SVG picture.
const SVGHead = "<svg "
