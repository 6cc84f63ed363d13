package ir

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// ParseProgram reads the text that Program.String prints. Errors name the line.
func ParseProgram(text string) (*Program, error) {
	p := &parser{lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	rest, err := p.header("program ")
	if err != nil {
		return nil, err
	}
	prog := &Program{Name: rest, Layouts: map[Region]Layout{}}
	prog.Model = &Model{Name: prog.Name}
	if err := p.programBody(prog); err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	if got := prog.String(); got != text && got != text+"\n" {
		return nil, fmt.Errorf("the program is not in the form that planc prints")
	}
	return prog, nil
}

func (p *parser) programBody(prog *Program) error {
	var err error
	for _, line := range []struct {
		prefix string
		parse  func(string) error
	}{
		{"plan ", func(s string) error { prog.Plan, err = ParsePlan(s); return err }},
		{"mesh ", func(s string) error { prog.Mesh, err = ParseMesh(s); return err }},
		{"recipe ", func(s string) error { return prog.Recipe.parse(s) }},
	} {
		rest, ok := p.cut(line.prefix)
		if !ok {
			return p.errorf("must start with %q", line.prefix)
		}
		if err := line.parse(rest); err != nil {
			return p.errorf("%v", err)
		}
	}
	prog.Mesh.VocabMultiple = prog.Recipe.VocabMultiple
	for {
		rest, ok := p.cut("region ")
		if !ok {
			break
		}
		if err := prog.parseLayout(rest); err != nil {
			return p.errorf("%v", err)
		}
	}
	if err := p.segments(prog.Model); err != nil {
		return err
	}
	return p.tables(prog)
}

func (prog *Program) parseLayout(s string) error {
	name, dims, _ := strings.Cut(s, " ")
	l := Layout{}
	for _, d := range strings.Fields(dims) {
		dim, axes, ok := strings.Cut(d, "@")
		if !ok || checkName(dim) != nil {
			return fmt.Errorf("region %q: want dim@axis", s)
		}
		l[Dim(dim)] = splitAxes(axes, "@")
		if err := checkAxes(l[Dim(dim)]); err != nil {
			return err
		}
	}
	prog.Layouts[Region(name)] = l
	return checkName(name)
}

// tables reads the lines after the functions. The first word of a line selects its table.
func (p *parser) tables(prog *Program) error {
	for p.at < len(p.lines) {
		if endFunc(p.peek()) {
			f, err := p.function(nil)
			if err != nil {
				return err
			}
			switch {
			case f.Name == BeginName:
				prog.Begin = f
			case len(prog.Stages) > 0:
				st := &prog.Stages[len(prog.Stages)-1]
				*map[string]**Func{GatherParamsName: &st.GatherParams, ScatterGradsName: &st.ScatterGrads,
					UpdateName: &st.Update}[f.Name] = f
			default:
				return p.errorf("func %s belongs to a stage, but it precedes all stages", f.Name)
			}
			continue
		}
		word, rest, _ := strings.Cut(p.peek(), " ")
		parse := tableLines[word]
		if parse == nil {
			return p.errorf("unexpected %q", p.peek())
		}
		if err := parse(prog, rest); err != nil {
			return p.errorf("%s: %v", word, err)
		}
		p.at++
	}
	return nil
}

// tableLines parse one line of a program's tables, without its first word.
var tableLines = map[string]func(*Program, string) error{
	"class": (*Program).parseClass, "slot": (*Program).parseSlot, "stream": (*Program).parseStream,
	"saved": (*Program).parseSaved,
	"stage": (*Program).parseStage, "chunk": inStage((*Stage).parseChunk), "bucket": inStage((*Stage).parseBucket),
	"transient": inStage((*Stage).parseTransient), "do": inStage((*Stage).parseSchedule),
	"arena": inStage((*Stage).parseArena),
}

// inStage returns the parser of a line that belongs to the last stage.
func inStage(parse func(*Stage, string) error) func(*Program, string) error {
	return func(prog *Program, s string) error {
		if len(prog.Stages) == 0 {
			return fmt.Errorf("it belongs to a stage, but it precedes all stages")
		}
		return parse(&prog.Stages[len(prog.Stages)-1], s)
	}
}

func (prog *Program) parseStage(s string) error {
	prog.Stages = append(prog.Stages, Stage{})
	_, err := fmt.Sscanf(s, "%d", new(int))
	return err
}

func (prog *Program) parseClass(s string) error {
	var c Class
	dst := map[string]*[]Axis{"reduce": &c.Reduce, "replicas": &c.Replicas, "shard": &c.Shard, "repeat": &c.Repeat}
	flags := map[string]*bool{
		"sharded_grads": &c.ShardedGrads, "sharded_params": &c.ShardedParams, "tied_stages": &c.TiedStages,
	}
	words := strings.Fields(s)
	for _, w := range words[min(1, len(words)):] {
		if flag := flags[w]; flag != nil {
			*flag = true
			continue
		}
		name, axes, _ := strings.Cut(w, "=")
		if dst[name] == nil {
			return fmt.Errorf("unknown field %q", name)
		}
		*dst[name] = splitAxes(axes, "@")
		if err := checkAxes(*dst[name]); err != nil {
			return err
		}
	}
	prog.Classes = append(prog.Classes, c)
	return nil
}

func (prog *Program) parseSlot(s string) error {
	var x Slot
	_, err := fmt.Sscanf(s, "%s %s class=%d offset=%d elems=%d", &x.Segment, &x.Param, &x.Class, &x.Offset, &x.Elems)
	prog.Slots = append(prog.Slots, x)
	return err
}

func (st *Stage) parseBucket(s string) error {
	var n int
	var k Bucket
	head, pieces, _ := strings.Cut(s, " :")
	if _, err := fmt.Sscanf(head, "%d class=%d offset=%d elems=%d state=%d", &n, &k.Class, &k.Offset, &k.Elems,
		&k.State); err != nil {
		return err
	}
	for _, w := range strings.Fields(pieces) {
		var c Piece
		name, rest, _ := strings.Cut(w, "[")
		c.Segment = name
		if _, err := fmt.Sscanf(rest, "%d]@%d", &c.Layer, &c.Offset); err != nil {
			return err
		}
		k.Pieces = append(k.Pieces, c)
	}
	st.Buckets = append(st.Buckets, k)
	return nil
}

func (st *Stage) parseChunk(s string) error {
	var c Chunk
	head, runs, _ := strings.Cut(s, " :")
	if _, err := fmt.Sscanf(head, "%d offset=%d size=%d buffers=%d", &c.Index, &c.Offset, &c.Size,
		&c.Buffers); err != nil {
		return err
	}
	for _, w := range strings.Fields(runs) {
		var r Run
		var to int
		name, rest, _ := strings.Cut(w, "[")
		r.Segment = name
		rest, words, _ := strings.Cut(rest, "/")
		if _, err := fmt.Sscanf(rest, "%d:%d]@%d+%d", &r.From, &to, &r.Offset, &r.Stride); err != nil {
			return err
		}
		r.Count = to - r.From
		if err := r.parseKeep(words); err != nil {
			return err
		}
		c.Runs = append(c.Runs, r)
	}
	st.Chunks = append(st.Chunks, c)
	return nil
}

func (st *Stage) parseTransient(s string) error {
	_, err := fmt.Sscanf(s, "gather=%d scatter=%d", &st.Gather, &st.Scatter)
	return err
}

// parseKeep reads the text that keepWords writes, without the first slash.
func (r *Run) parseKeep(words string) error {
	for _, w := range strings.FieldsFunc(words, func(c rune) bool { return c == '/' }) {
		switch every, ok := strings.CutPrefix(w, "every="); {
		case ok:
			if _, err := fmt.Sscanf(every, "%d+%d", &r.Every, &r.Inner); err != nil {
				return err
			}
		case w == "remat":
			r.Remat = true
		case w == "split":
			r.Split = true
		default:
			return fmt.Errorf("unknown property %q of a run", w)
		}
	}
	return nil
}

func (st *Stage) parseSchedule(s string) (err error) {
	st.Schedule, err = program.ParseSchedule(s)
	return err
}

func (prog *Program) parseStream(s string) error {
	_, err := fmt.Sscanf(s, "size=%d", &prog.Stream)
	return err
}

func (prog *Program) parseSaved(s string) error {
	var x SavedPart
	s, x.Gradient = strings.CutSuffix(s, " gradient")
	_, err := fmt.Sscanf(s, "%s bytes=%d", &x.Segment, &x.Bytes)
	prog.Saved = append(prog.Saved, x)
	return err
}

func (st *Stage) parseArena(s string) error {
	var x ArenaRegion
	_, err := fmt.Sscanf(s, "%s offset=%d size=%d", &x.Name, &x.Offset, &x.Size)
	st.Arena = append(st.Arena, x)
	return err
}
