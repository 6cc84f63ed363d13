package ir

import (
	"fmt"
	"strings"
)

// ParseProgram reads what Program.String prints. Errors name the line.
func ParseProgram(text string) (*Program, error) {
	p := &parser{lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	rest, err := p.header("program ")
	if err != nil {
		return nil, err
	}
	prog := &Program{Layouts: map[Region]Layout{}}
	i := strings.LastIndex(rest, " stage ")
	if i < 0 {
		return nil, p.errorf("want program NAME stage N")
	}
	prog.Name = rest[:i]
	if _, err := fmt.Sscanf(rest[i:], " stage %d", &prog.Stage); err != nil {
		return nil, p.errorf("stage: %v", err)
	}
	prog.Model = &Model{Name: prog.Name}
	if err := p.programBody(prog); err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	if got := prog.String(); got != text && got != text+"\n" {
		return nil, fmt.Errorf("the program does not read as planc prints it")
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
		{"recipe optimizer=", func(s string) error { prog.Recipe.Optimizer = s; return checkName(s) }},
	} {
		rest, ok := p.cut(line.prefix)
		if !ok {
			return p.errorf("want %q", line.prefix)
		}
		if err := line.parse(rest); err != nil {
			return p.errorf("%v", err)
		}
	}
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

// tables reads what follows the functions: a line's first word says which table it belongs to.
func (p *parser) tables(prog *Program) error {
	for p.at < len(p.lines) {
		if endFunc(p.peek()) {
			f, err := p.function(nil)
			if err != nil {
				return err
			}
			*map[string]**Func{BeginName: &prog.Begin, UpdateName: &prog.Update}[f.Name] = f
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
	"class": (*Program).parseClass, "slot": (*Program).parseSlot, "bucket": (*Program).parseBucket,
	"do": (*Program).parseAction, "stream": (*Program).parseStream, "stack": (*Program).parseStack, "arena": (*Program).parseArena,
}

func (prog *Program) parseClass(s string) error {
	var c Class
	dst := map[string]*[]Axis{"reduce": &c.Reduce, "replicas": &c.Replicas, "shard": &c.Shard, "repeat": &c.Repeat}
	words := strings.Fields(s)
	for _, w := range words[min(1, len(words)):] {
		name, axes, _ := strings.Cut(w, "=")
		if dst[name] == nil {
			return fmt.Errorf("no field %q", name)
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

func (prog *Program) parseBucket(s string) error {
	var n int
	var k Bucket
	head, chunks, _ := strings.Cut(s, " :")
	if _, err := fmt.Sscanf(head, "%d class=%d offset=%d elems=%d state=%d", &n, &k.Class, &k.Offset, &k.Elems, &k.State); err != nil {
		return err
	}
	for _, w := range strings.Fields(chunks) {
		var c Chunk
		name, rest, _ := strings.Cut(w, "[")
		c.Segment = name
		if _, err := fmt.Sscanf(rest, "%d]@%d", &c.Layer, &c.Offset); err != nil {
			return err
		}
		k.Chunks = append(k.Chunks, c)
	}
	prog.Buckets = append(prog.Buckets, k)
	return nil
}

func (prog *Program) parseAction(s string) error {
	var a Action
	var err error
	switch {
	case s == "U":
		a.Kind = Finish
	case strings.HasPrefix(s, "R "):
		a.Kind = Reduce
		var after string
		_, err = fmt.Sscanf(s, "R bucket=%d after=%s micro=%d", &a.Bucket, &after, &a.Micro)
		name, layer, _ := strings.Cut(after, "[")
		a.Segment = name
		if err == nil {
			_, err = fmt.Sscanf(layer, "%d]", &a.Layer)
		}
	default:
		_, err = fmt.Sscanf(s, "%c micro=%d", &a.Kind, &a.Micro)
	}
	prog.Schedule = append(prog.Schedule, a)
	return err
}

func (prog *Program) parseStream(s string) error {
	_, err := fmt.Sscanf(s, "size=%d", &prog.Stream)
	return err
}

func (prog *Program) parseStack(s string) error {
	var x StackPart
	_, err := fmt.Sscanf(s, "%s offset=%d slot=%d", &x.Segment, &x.Offset, &x.Slot)
	prog.Stack = append(prog.Stack, x)
	return err
}

func (prog *Program) parseArena(s string) error {
	var x ArenaRegion
	_, err := fmt.Sscanf(s, "%s offset=%d size=%d", &x.Name, &x.Offset, &x.Size)
	prog.Arena = append(prog.Arena, x)
	return err
}
