package ir

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// String prints the model; ParseModel reads it back.
func (m *Model) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model %s\n", m.Name)
	m.print(&b)
	return b.String()
}

func (m *Model) print(b *strings.Builder) {
	for _, s := range m.Segments {
		fmt.Fprintf(b, "segment %s x%d\n", s.Name, s.Count)
		for _, v := range []*Segment{s, s.Remat} {
			for _, f := range v.Funcs() {
				f.print(b)
			}
		}
	}
}

// String prints the function in the form that it has in a model.
func (f *Func) String() string {
	var b strings.Builder
	f.print(&b)
	return b.String()
}

func (f *Func) print(b *strings.Builder) {
	fmt.Fprintf(b, "func %s\n", f.Name)
	for _, v := range f.Inputs {
		fmt.Fprintf(b, "  %s %s : %s%s%s\n", inputWord(v), v.Name, v.Type, paramWords(v.Param), v.Place.words(" at"))
	}
	for _, n := range f.Nodes {
		fmt.Fprintf(b, "  %s\n", n)
		for _, body := range n.Body {
			fmt.Fprintf(b, "    %s\n", body)
		}
	}
	fmt.Fprintln(b, strings.TrimRight("  return "+names(f.Outputs), " "))
}

func inputWord(v *Value) string {
	if v.Kind == Weight {
		return "param"
	}
	return "input"
}

func paramWords(p *Param) string {
	if p == nil {
		return ""
	}
	s := " init=" + p.Init
	if p.Init == "normal" {
		s += "(" + float(p.Std) + ")"
	}
	if p.First > 0 {
		s += " first=" + strconv.Itoa(p.First)
	}
	if p.Zero > 0 {
		s += " zero=" + strconv.Itoa(p.Zero)
	}
	if p.Decay {
		s += " decay"
	}
	if p.LRMultiplier != 0 {
		s += " lr=" + float(p.LRMultiplier)
	}
	if p.Balance {
		s += " balance"
	}
	if p.Tied != "" {
		s += " tied=" + p.Tied
	}
	if len(p.Sides) > 0 {
		s += " sides=" + strings.Join(p.Sides, ",")
	}
	return s
}

func (p Place) words(prefix string) string {
	if p.Region == "" {
		return ""
	}
	return fmt.Sprintf("%s %s+%d", prefix, p.Region, p.Offset)
}

func names(vs []*Value) string {
	s := make([]string, len(vs))
	for i, v := range vs {
		s[i] = v.Name
	}
	return strings.Join(s, ", ")
}

// String returns the node's line: results = op operands {attributes} : types !region <- origin at place.
func (n *Node) String() string {
	var b strings.Builder
	if len(n.Outs) > 0 {
		b.WriteString(names(n.Outs) + " = ")
	}
	b.WriteString(n.Op.String())
	if len(n.Args) > 0 {
		b.WriteString(" " + names(n.Args))
	}
	if a := n.Attr.String(); a != "" {
		b.WriteString(" {" + a + "}")
	}
	for i, o := range n.Outs {
		b.WriteString([]string{" : ", ", "}[min(i, 1)] + o.Type.String())
	}
	if n.Region != "" {
		b.WriteString(" !" + string(n.Region))
	}
	if n.From != "" {
		b.WriteString(" <- " + n.From)
	}
	if len(n.Outs) > 0 && n.Outs[0].Place.Region != "" {
		for i, o := range n.Outs {
			b.WriteString(o.Place.words([]string{" at", ","}[min(i, 1)]))
		}
	}
	return b.String()
}

func float(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// String prints the program; ParseProgram reads it back.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "program %s\n", p.Name)
	fmt.Fprintf(&b, "plan %s\n", p.Plan.Text())
	fmt.Fprintf(&b, "mesh %s\n", p.Mesh)
	fmt.Fprintf(&b, "recipe %s\n", p.Recipe)
	for _, r := range sortedRegions(p.Layouts) {
		fmt.Fprintf(&b, "region %s %s\n", r, p.Layouts[r])
	}
	p.Model.print(&b)
	for i, c := range p.Classes {
		fmt.Fprintf(&b, "class %d%s%s%s%s%s%s%s\n", i, axisWords("reduce", c.Reduce), axisWords("replicas", c.Replicas),
			axisWords("shard", c.Shard), axisWords("repeat", c.Repeat),
			flagWord("sharded_grads", c.ShardedGrads), flagWord("sharded_params", c.ShardedParams),
			flagWord("tied_stages", c.TiedStages))
	}
	for _, s := range p.Slots {
		fmt.Fprintf(&b, "slot %s %s class=%d offset=%d elems=%d\n", s.Segment, s.Param, s.Class, s.Offset, s.Elems)
	}
	if p.Begin != nil {
		p.Begin.print(&b)
	}
	if p.Stream > 0 {
		fmt.Fprintf(&b, "stream size=%d\n", p.Stream)
	}
	for _, s := range p.Saved {
		fmt.Fprintf(&b, "saved %s bytes=%d%s\n", s.Segment, s.Bytes, flagWord("gradient", s.Gradient))
	}
	for i := range p.Stages {
		fmt.Fprintf(&b, "stage %d\n", i)
		p.Stages[i].print(&b)
	}
	return b.String()
}

func (s *Stage) print(b *strings.Builder) {
	for _, c := range s.Chunks {
		fmt.Fprintf(b, "chunk %d offset=%d size=%d buffers=%d :%s\n", c.Index, c.Offset, c.Size, c.Buffers,
			runWords(c.Runs))
	}
	for i, k := range s.Buckets {
		fmt.Fprintf(b, "bucket %d class=%d offset=%d elems=%d state=%d :%s\n", i, k.Class, k.Offset, k.Elems, k.State,
			pieceWords(k.Pieces))
	}
	for _, f := range s.Funcs() {
		f.print(b)
	}
	if s.Gather+s.Scatter > 0 {
		fmt.Fprintf(b, "transient gather=%d scatter=%d\n", s.Gather, s.Scatter)
	}
	if len(s.Schedule) > 0 {
		fmt.Fprintf(b, "do %s\n", program.ScheduleText(s.Schedule))
	}
	for _, r := range s.Arena {
		fmt.Fprintf(b, "arena %s offset=%d size=%d\n", r.Name, r.Offset, r.Size)
	}
}

// Funcs returns the stage's functions that exist.
func (s *Stage) Funcs() []*Func {
	var fs []*Func
	for _, f := range []*Func{s.GatherParams, s.ScatterGrads, s.Update} {
		if f != nil {
			fs = append(fs, f)
		}
	}
	return fs
}

func flagWord(name string, set bool) string {
	if !set {
		return ""
	}
	return " " + name
}

func runWords(runs []Run) string {
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, " %s[%d:%d]@%d+%d%s", r.Segment, r.From, r.From+r.Count, r.Offset, r.Stride, r.keepWords())
	}
	return b.String()
}

// keepWords describes what a run saves, if it does not save everything: "/remat", "/remat/split", "/every=2+4096".
func (r *Run) keepWords() string {
	s := ""
	if r.Remat {
		s += "/remat"
	}
	if r.Split {
		s += "/split"
	}
	if r.Every > 0 {
		s += fmt.Sprintf("/every=%d+%d", r.Every, r.Inner)
	}
	return s
}

func axisWords(name string, axes []Axis) string {
	if len(axes) == 0 {
		return ""
	}
	return " " + name + "=" + joinAxes(axes, "@")
}

func pieceWords(pieces []Piece) string {
	var b strings.Builder
	for _, c := range pieces {
		fmt.Fprintf(&b, " %s[%d]@%d", c.Segment, c.Layer, c.Offset)
	}
	return b.String()
}
