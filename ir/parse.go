package ir

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// ParseModel reads the text that Model.String prints. Errors name the line.
func ParseModel(text string) (*Model, error) {
	p := &parser{lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	rest, err := p.header("model ")
	if err != nil {
		return nil, err
	}
	m := &Model{Name: rest}
	if err := p.segments(m); err != nil {
		return nil, err
	}
	return m, p.end()
}

// ParseFunc reads the text that Func.String prints.
func ParseFunc(text string) (*Func, error) {
	p := &parser{lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	f, err := p.function(nil)
	if err != nil {
		return nil, err
	}
	return f, p.end()
}

// parser reads lines; at is the index of the next one.
type parser struct {
	lines []string
	at    int
}

func (p *parser) peek() string {
	if p.at < len(p.lines) {
		return p.lines[p.at]
	}
	return ""
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", p.at+1, fmt.Sprintf(format, args...))
}

// cut returns the next line without prefix, and moves past it, if it starts with prefix.
func (p *parser) cut(prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(p.peek(), prefix)
	if ok && p.at < len(p.lines) {
		p.at++
		return rest, true
	}
	return "", false
}

func (p *parser) header(prefix string) (string, error) {
	rest, ok := p.cut(prefix)
	if !ok {
		return "", p.errorf("must start with %q", prefix)
	}
	if err := checkText(rest); err != nil {
		return "", p.errorf("%v", err)
	}
	return rest, nil
}

// checkText accepts names of models and jobs: one line without spaces at its ends.
func checkText(s string) error {
	if s == "" || strings.TrimSpace(s) != s {
		return fmt.Errorf("%q is not a valid name", s)
	}
	return nil
}

func (p *parser) end() error {
	if p.at < len(p.lines) {
		return p.errorf("unexpected %q", p.peek())
	}
	return nil
}

func (p *parser) segments(m *Model) error {
	for {
		rest, ok := p.cut("segment ")
		if !ok {
			return nil
		}
		name, count, _ := strings.Cut(rest, " x")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || strconv.Itoa(n) != count || checkName(name) != nil {
			return p.errorf("segment %q must be NAME xCOUNT", rest)
		}
		s := &Segment{Name: name, Count: n}
		m.Segments = append(m.Segments, s)
		if err := p.funcs(s); err != nil {
			return err
		}
	}
}

// funcs reads a segment's functions and assigns them by their names.
func (p *parser) funcs(s *Segment) error {
	params := map[string]*Param{}
	for i := 0; strings.HasPrefix(p.peek(), "func ") && !endFunc(p.peek()); i++ {
		f, err := p.function(params)
		if err != nil {
			return err
		}
		slot := s.place(f.Name)
		if slot == nil || *slot != nil {
			return p.errorf("segment %s cannot have func %s", s.Name, f.Name)
		}
		*slot = f
	}
	if s.Forward == nil {
		return p.errorf("segment %s has no func %s.forward", s.Name, s.Name)
	}
	return nil
}

// place returns the field of the segment for the function of that name; nil if there is none.
func (s *Segment) place(name string) **Func {
	if slot := map[string]**Func{s.Name + ".forward": &s.Forward, s.Name + ".backward": &s.Backward,
		s.Name + ".weights": &s.Weights, s.Name + ".logits": &s.Logits}[name]; slot != nil {
		return slot
	}
	if remat := s.RematName(); s.Remat != nil || name == remat+".forward" {
		if s.Remat == nil {
			s.Remat = &Segment{Name: remat, Count: s.Count}
		}
		return map[string]**Func{remat + ".forward": &s.Remat.Forward, remat + ".backward": &s.Remat.Backward}[name]
	}
	return nil
}

// Names of the functions of the program or of a stage.
const (
	BeginName        = "begin"
	GatherParamsName = "gather_params"
	ScatterGradsName = "scatter_grads"
	UpdateName       = "update"
)

func endFunc(line string) bool {
	name, ok := strings.CutPrefix(line, "func ")
	return ok && slices.Contains([]string{BeginName, GatherParamsName, ScatterGradsName, UpdateName}, name)
}

// function reads one function. Functions of a segment share parameters by name.
func (p *parser) function(params map[string]*Param) (*Func, error) {
	name, ok := p.cut("func ")
	if !ok || checkName(name) != nil {
		return nil, p.errorf("must be func NAME")
	}
	r := &funcReader{parser: p, f: &Func{Name: name}, values: map[string]*Value{}, params: params}
	return r.f, r.body()
}

// funcReader reads the lines of one function.
type funcReader struct {
	*parser
	f      *Func
	values map[string]*Value
	params map[string]*Param
}

func (r *funcReader) body() error {
	for {
		line := r.peek()
		var err error
		switch {
		case strings.HasPrefix(line, "  return"):
			r.at++
			r.f.Outputs, err = r.lookup(strings.TrimPrefix(strings.TrimPrefix(line, "  return"), " "))
			return err
		case strings.HasPrefix(line, "  input "), strings.HasPrefix(line, "  param "):
			err = r.input(line[2:])
		case strings.HasPrefix(line, "    "):
			err = r.bodyLine(line[4:])
		case strings.HasPrefix(line, "  "):
			err = r.nodeLine(line[2:])
		default:
			err = r.errorf("must be a line of func %s or its return", r.f.Name)
		}
		if err != nil {
			return err
		}
		r.at++
	}
}

func (r *funcReader) lookup(list string) ([]*Value, error) {
	if list == "" {
		return nil, nil
	}
	var vs []*Value
	for _, name := range strings.Split(list, ", ") {
		v := r.values[name]
		if v == nil {
			return nil, r.errorf("unknown value %q", name)
		}
		vs = append(vs, v)
	}
	return vs, nil
}

func (r *funcReader) define(v *Value) error {
	if err := checkName(v.Name); err != nil {
		return r.errorf("%v", err)
	}
	if r.values[v.Name] != nil {
		return r.errorf("value %s is defined twice", v.Name)
	}
	r.values[v.Name] = v
	return nil
}

// input reads "input NAME : TYPE words" or "param NAME : TYPE words".
func (r *funcReader) input(line string) error {
	if len(r.f.Nodes) > 0 {
		return r.errorf("inputs must come before the ops")
	}
	head, rest, ok := strings.Cut(line, " : ")
	if !ok {
		return r.errorf("must be input NAME : TYPE")
	}
	word, name, _ := strings.Cut(head, " ")
	v := &Value{Name: name, Kind: Input}
	var err error
	v.Type, v.Place, rest, err = typeAndPlace(rest)
	if err != nil {
		return r.errorf("%v", err)
	}
	if word == "param" {
		v.Kind = Weight
		v.Param, err = parseParam(v.Name, rest)
		if err != nil {
			return r.errorf("%v", err)
		}
		if old := r.params[v.Name]; old != nil && reflect.DeepEqual(old, v.Param) {
			v.Param = old
		} else if r.params != nil {
			r.params[v.Name] = v.Param
		}
	} else if rest != "" {
		return r.errorf("unexpected %q", rest)
	}
	r.f.Inputs = append(r.f.Inputs, v)
	return r.define(v)
}

// typeAndPlace cuts a type from the start and " at region+offset" from the end.
func typeAndPlace(s string) (Type, Place, string, error) {
	s, place, err := cutPlace(s)
	if err != nil {
		return Type{}, place, "", err
	}
	t, rest, err := cutType(s)
	return t, place, rest, err
}

func cutPlace(s string) (string, Place, error) {
	i := strings.LastIndex(s, " at ")
	if i < 0 {
		return s, Place{}, nil
	}
	p, err := parsePlace(s[i+len(" at "):])
	return s[:i], p, err
}

func parsePlace(s string) (Place, error) {
	region, offset, _ := strings.Cut(s, "+")
	n, err := strconv.Atoi(offset)
	if err != nil || n < 0 || strconv.Itoa(n) != offset || checkName(region) != nil {
		return Place{}, fmt.Errorf("place %q must be region+offset", s)
	}
	return Place{region, n}, nil
}

// cutType cuts a type from the start of s. The rest starts with a space or is empty.
func cutType(s string) (Type, string, error) {
	i := strings.IndexByte(s, ']')
	if i < 0 {
		return Type{}, "", fmt.Errorf("type %q has no closing bracket", s)
	}
	end := i + 1
	if word, ok := strings.CutPrefix(s[end:], " "); ok {
		if j := strings.IndexByte(word, '@'); j > 0 {
			if _, known := parseMonoid(word[:j]); known {
				n := strings.IndexAny(word, " ,")
				if n < 0 {
					n = len(word)
				}
				end += 1 + n
			}
		}
	}
	t, err := ParseType(s[:end])
	return t, s[end:], err
}

func parseParam(name, words string) (*Param, error) {
	p := &Param{Name: name}
	init, ok := strings.CutPrefix(words, " init=")
	if !ok {
		return nil, fmt.Errorf("param %s must have init=zeros, ones or normal(STD)", name)
	}
	init, rest, _ := strings.Cut(init, " ")
	p.Init = init
	if std, normal := strings.CutPrefix(init, "normal("); normal {
		f, err := strconv.ParseFloat(strings.TrimSuffix(std, ")"), 64)
		if err != nil {
			return nil, fmt.Errorf("param %s: invalid init %q", name, init)
		}
		p.Init, p.Std = "normal", f
	}
	for _, w := range strings.Fields(rest) {
		if tied, ok := strings.CutPrefix(w, "tied="); ok {
			p.Tied = tied
		} else if first, ok := strings.CutPrefix(w, "first="); ok {
			p.First, _ = strconv.Atoi(first) // text that is not a number is found when comparing with what planc prints
		} else if zero, ok := strings.CutPrefix(w, "zero="); ok {
			p.Zero, _ = strconv.Atoi(zero)
		} else if factor, ok := strings.CutPrefix(w, "lr="); ok {
			p.LRMultiplier, _ = strconv.ParseFloat(factor, 64)
		} else if sides, ok := strings.CutPrefix(w, "sides="); ok {
			p.Sides = strings.Split(sides, ",")
		} else if w == "decay" {
			p.Decay = true
		} else if w == "balance" {
			p.Balance = true
		}
	}
	if paramWords(p) != words {
		return nil, fmt.Errorf("param %s: %q is not in the form that planc prints", name, words)
	}
	return p, nil
}
