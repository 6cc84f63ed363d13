package shell

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Files that a script reads by "source FILE" or ". FILE". Their text follows the script's in one buffer, so that spans
// work in them, too. Only the script itself is edited.

// Open returns a file that a script sources, and its name in messages. name is as the script writes it, without a
// folder that planc does not know: "env.sh" for $(dirname "$0")/env.sh. ok is false if the file is not given.
type Open func(name string) (shown string, data []byte, ok bool)

// Source is a command that reads a file.
type Source struct {
	At   Span
	Path Word
	// File is the name of the file that was read; "" if it is not given.
	File string
	// Wanted is the name with which the file can be given; "" if planc does not know it.
	Wanted string
}

// lineName returns the name under which a user defines what happens on a line: "line12", or "env.sh:line12".
func (b *buffer) lineName(offset int) string {
	pos := b.At(offset)
	if pos.File == b.files[0].name {
		return fmt.Sprint("line", pos.Line)
	}
	return fmt.Sprintf("%s:line%d", pos.File, pos.Line)
}

// isLineName reports whether a name stands for a line, and not for a variable.
func isLineName(name string) bool {
	name = name[strings.LastIndexByte(name, ':')+1:]
	number, ok := strings.CutPrefix(name, "line")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// mayBeSet says which file that is not given may set a variable that has no value at an offset; "" if there is none.
func (s *Script) mayBeSet(offset int) string {
	i := slices.IndexFunc(s.Sources, func(c Source) bool {
		return c.File == "" && c.Wanted != "" && c.At.Start < offset
	})
	if i < 0 {
		return ""
	}
	return fmt.Sprintf(", or give %s too, which line %d sources", s.Sources[i].Wanted, s.At(s.Sources[i].At.Start).Line)
}

// isEnvironment reports whether a file prepares a person's shell or Python, and sets nothing of a plan.
func isEnvironment(name string) bool {
	base := path.Base(name)
	return slices.Contains([]string{"activate", ".bashrc", ".bash_profile", ".profile", "profile", "conda.sh", "bashrc",
		"modules.sh", "setvars.sh", "set_env.sh"}, base) || base == "bash" && strings.Contains(name, "/init/")
}

// wanted returns the name of the file that a word names, without a leading folder that is not known; "" if its name is
// not known.
func wanted(w *Word) string {
	last := -1
	for i := range w.Pieces {
		if w.Pieces[i].Unknown != nil {
			last = i
		}
	}
	if last < 0 {
		return w.Text()
	}
	rest := Word{w.Pieces[last+1:]}
	name, ok := strings.CutPrefix(rest.Text(), "/")
	if !ok {
		return ""
	}
	return name
}

// sourceFile evaluates a file that the script reads. A file that is not given is noted.
func (e *evaluator) sourceFile(n *simple, words []Word) status {
	if len(words) == 0 || isEnvironment(wanted(&words[0])) {
		return success
	}
	s := e.script
	c := Source{At: n.span, Path: words[0], Wanted: wanted(&words[0])}
	body, ok := e.openFile(&c)
	if e.sources == 0 || !ok {
		s.Sources = append(s.Sources, c)
	}
	const deepest = 20
	if !ok || e.sources >= deepest {
		return success
	}
	e.sources++
	outer := e.positional
	if len(words) > 1 {
		e.setArguments(words[1:])
	}
	last := e.run(body)
	e.returned = false
	e.positional = outer
	e.sources--
	if e.undecided != nil {
		e.forgetAssigned(e.undecided, body)
	}
	return last
}

// openFile returns the commands of a sourced file, and sets the file's name.
func (e *evaluator) openFile(c *Source) (body []node, ok bool) {
	if c.Wanted == "" || e.open == nil {
		return nil, false
	}
	shown, data, ok := e.open(c.Wanted)
	if !ok {
		return nil, false
	}
	c.File = shown
	body, isParsed := e.parsed[shown]
	if !isParsed {
		e.script.add(shown, data)
		body = parse(e.script, len(e.script.files)-1)
		e.parsed[shown] = body
	}
	return body, true
}

// isGiven reports whether a file is one that the script can source.
func (e *evaluator) isGiven(w *Word) bool {
	name := wanted(w)
	if name == "" || e.open == nil {
		return false
	}
	_, _, ok := e.open(name)
	return ok
}
