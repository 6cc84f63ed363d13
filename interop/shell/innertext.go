package shell

import (
	"slices"
	"strings"
)

// Texts that a command runs by another shell: of bash -c and eval, and those that ssh and similar commands run on other
// machines. Their commands are recorded as the script's own.

// innerText is a text with commands.
type innerText struct {
	prefix []Word // the words in front of the shell, which launch it: srun -N 4
	text   []Word
	scope  innerScope
}

// innerScope says which variables of the script a shell has that runs a text.
type innerScope int

const (
	allVariables      innerScope = iota // eval
	exportedVariables                   // bash -c
	noVariables                         // a shell on another machine
)

// remoteShells are commands that run the text of their last words on other machines, with their options that have a
// value. A host precedes the text if hasHost is set.
var remoteShells = map[string]struct {
	withValue string
	hasHost   bool
}{
	"ssh":   {"BbcDEeFIiJLlmOopQRSWw", true},
	"pdsh":  {"wxglutfRM", false},
	"clush": {"wxgXftul", false},
	"pssh":  {"hHlpoetOxX", false},
}

// innerTextOf returns the text with commands that a command runs. heredoc is its here-document, nil if it has none.
func innerTextOf(words []Word, heredoc func() []Piece) (t innerText, ok bool) {
	if words[0].Text() == "eval" {
		return innerText{text: words[1:]}, true
	}
	for i := range words {
		name := words[i].Text()
		name = name[strings.LastIndexByte(name, '/')+1:]
		switch remote, isRemote := remoteShells[name]; {
		case isRemote:
			at := afterOptions(words, i+1, remote.withValue)
			if remote.hasHost {
				at++
			}
			if at < len(words) && !isShellForInput(words[at:]) {
				return innerText{text: words[at:], scope: noVariables}, true
			}
			t.scope = noVariables
		case name == "bash" || name == "sh":
			at := i + 1
			for at < len(words) && strings.HasPrefix(words[at].Text(), "-") {
				at++
				if strings.HasSuffix(words[at-1].Text(), "c") && at < len(words) {
					return innerText{words[:i], words[at : at+1], exportedVariables}, true
				}
			}
			t.scope = max(t.scope, exportedVariables)
			t.prefix = words[:i]
			if !isShellForInput(words[i:]) {
				return t, false
			}
		default:
			continue
		}
		if heredoc == nil {
			return t, false
		}
		t.text = []Word{{heredoc()}}
		return t, true
	}
	return t, false
}

// isShellForInput reports whether words start a shell that reads its commands from its input: bash -s.
func isShellForInput(words []Word) bool {
	name := words[0].Text()
	if name != "bash" && name != "sh" {
		return false
	}
	return !slices.ContainsFunc(words[1:], func(w Word) bool {
		return !strings.HasPrefix(w.Text(), "-") || strings.HasSuffix(w.Text(), "c")
	})
}

// afterOptions returns the index of the first word from an index on that is no option. withValue are the letters of
// options that have a value.
func afterOptions(words []Word, at int, withValue string) int {
	for at < len(words) {
		text := words[at].Text()
		if len(text) < 2 || text[0] != '-' {
			break
		}
		isAlone := len(text) == 2 && strings.IndexByte(withValue, text[1]) >= 0
		at++
		if isAlone {
			at++
		}
	}
	return at
}

// recordInner records the commands of a text, and of the texts that these run.
func recordInner(e *evaluator, t innerText, env []Assignment, depth int) {
	const deepest = 8
	for _, list := range splitText(t.text, func(name string, at Span) ([]Piece, *Unknown) {
		return innerVariable(e, t.scope, name, at)
	}) {
		c := Command{Env: slices.Clone(env)}
		for len(list) > 0 && c.takeAssignment(&list[0]) {
			list = list[1:]
		}
		if len(list) > 0 && depth < deepest {
			if inner, ok := innerTextOf(list, nil); ok {
				if inner.scope != noVariables {
					inner.prefix = slices.Concat(t.prefix, inner.prefix)
				}
				inner.scope = max(inner.scope, t.scope)
				recordInner(e, inner, c.Env, depth+1)
				continue
			}
		}
		c.Words = slices.Concat(t.prefix, list)
		e.record(c)
	}
}

// innerVariable returns the value of a variable in a text, or why it is not known.
func innerVariable(e *evaluator, scope innerScope, name string, at Span) ([]Piece, *Unknown) {
	v := e.vars[name]
	isSet := v != nil && v.unknown == nil && !v.isArray && len(v.elems) == 1
	if isSet && (scope == allVariables || scope == exportedVariables && v.exported) {
		return v.elems[0], nil
	}
	if text, ok := e.defined(name); ok {
		return []Piece{{Text: text}}, nil
	}
	why := noValue
	switch {
	case scope == noVariables:
		why = "is a variable of the shell on the other machine"
	case isSet:
		why = "is set without export, so that the inner shell does not have it"
	}
	return nil, &Unknown{Name: name, At: at, Why: why}
}
