package shell

import (
	"slices"
	"strings"
)

// simple evaluates a simple command.
func (e *evaluator) simple(n *simple) status {
	if len(n.words) == 0 {
		e.assignAll(n.assigns)
		return success
	}
	words := e.fields(n.words...)
	if len(words) == 0 { // an empty variable as command
		return success
	}
	name := words[0].Text()
	if f := e.functions[name]; f != nil {
		return e.call(f, words[1:])
	}
	switch name {
	case "export", "declare", "typeset", "local", "readonly":
		e.declare(name, n.assigns, words[1:])
		return success
	case "[", "test":
		texts := words[1:]
		if name == "[" && len(texts) > 0 {
			texts = texts[:len(texts)-1]
		}
		return e.decide(n.span, func() status { return e.test(texts, n.span, false) })
	case "true", ":":
		return success
	case "false":
		return status{}
	case "exit":
		e.exit(n)
		return statusOf(words[1:], e.last)
	case "return":
		e.returned = e.undecided == nil && (e.depth > 0 || e.sources > 0)
		return statusOf(words[1:], e.last)
	case "unset":
		for i := range words[1:] {
			delete(e.vars, words[1+i].Text())
		}
		return success
	case "source", ".":
		return e.sourceFile(n, words[1:])
	case "set":
		e.setPositional(words[1:])
		return success
	case "shift":
		if len(e.positional) > 0 {
			e.positional = e.positional[1:]
		}
		return success
	case "read":
		if n.heredoc != nil && e.readHeredoc(n, words[1:]) {
			return status{} // read has reached the end of its input
		}
		fallthrough
	case "mapfile", "readarray", "getopts", "let":
		for i := range words[1:] {
			name := words[1+i].Text()
			e.forget(name, &Unknown{Name: name, At: n.span, Why: "is read when the script runs"})
		}
		return success
	}
	e.command(n, words)
	if name == "command" || name == "which" || name == "grep" || name == "type" {
		return status{why: &Unknown{Name: e.script.lineName(n.span.Start), At: n.span, Values: "true or false",
			Why: "is a command, and planc runs none"}}
	}
	return success
}

// call evaluates a function's body.
func (e *evaluator) call(f *function, args []Word) status {
	const maxCalls = 50
	if e.depth > maxCalls {
		return success
	}
	outer := e.positional
	e.setArguments(args)
	e.depth++
	e.locals = append(e.locals, nil)
	last := e.run(f.body)
	e.locals.end(e.vars)
	e.depth--
	e.returned = false
	if e.undecided != nil {
		e.forgetAssigned(e.undecided, f.body)
	}
	e.positional = outer
	return last
}

// exit ends the script, unless it is not known whether the command runs.
func (e *evaluator) exit(n *simple) {
	if e.undecided != nil {
		return
	}
	e.exited = true
	e.script.Exit = &Exit{At: n.span}
	if len(e.held) > 0 {
		e.script.Exit.because = e.held[len(e.held)-1]
	}
}

// statusOf returns the status that exit and return give: their argument, or that of the last command.
func statusOf(words []Word, last status) status {
	if len(words) == 0 {
		return last
	}
	if why := words[0].Unknown(); why != nil {
		return status{why: why}
	}
	return status{ok: words[0].Text() == "0"}
}

// declare evaluates export, declare, local, typeset and readonly. All values are expanded before the first is assigned.
func (e *expander) declare(name string, assigns []assign, words []Word) {
	exports, isLocal := name == "export", name == "local" || name == "declare" || name == "typeset"
	for i := range words {
		text := words[i].Text()
		if strings.HasPrefix(text, "-") {
			exports = exports || strings.Contains(text, "x")
			isLocal = isLocal && !strings.Contains(text, "g")
		}
	}
	values := make([]*value, len(assigns))
	for i := range assigns {
		values[i] = e.evaluate(&assigns[i])
	}
	for i := range assigns {
		if isLocal {
			e.locals.hide(e.vars, assigns[i].name)
		}
		e.vars[assigns[i].name] = values[i]
		values[i].exported = values[i].exported || exports
	}
	for i := range words {
		name := words[i].Text()
		if isLocal && isName(name) {
			e.locals.hide(e.vars, name)
		}
		if v := e.vars[name]; v != nil && exports {
			v.exported = true
		}
	}
}

// isName reports whether a text can be a variable's name.
func isName(text string) bool {
	for i := range len(text) {
		if !isNameByte(text[i], i == 0) {
			return false
		}
	}
	return text != ""
}

// setPositional evaluates set -- a b. Options such as -x are ignored.
func (e *expander) setPositional(words []Word) {
	at := slices.IndexFunc(words, func(w Word) bool { return w.Text() == "--" })
	if at >= 0 {
		e.setArguments(words[at+1:])
	}
}

// setArguments sets the positional parameters.
func (e *expander) setArguments(words []Word) {
	e.positional = [][]Piece{}
	for i := range words {
		e.positional = append(e.positional, words[i].Pieces)
	}
}

// assignAll evaluates assignments.
func (e *expander) assignAll(assigns []assign) {
	for i := range assigns {
		e.vars[assigns[i].name] = e.evaluate(&assigns[i])
	}
}

// evaluate returns the value that an assignment gives. A value that begins with the variable itself is appended to, so
// that a script that collects 10^5 options this way is evaluated in linear time.
func (e *expander) evaluate(a *assign) *value {
	old := e.vars[a.name]
	v := &value{isArray: a.isArray}
	if old != nil {
		v.exported = old.exported
	}
	switch {
	case a.index != nil:
		e.assignElement(a, old, v)
	case a.isArray:
		values := a.values
		appends := a.appends
		if !appends && len(values) > 0 && isWhole(&values[0], a.name) {
			values, appends = values[1:], true
		}
		if appends && old != nil {
			v.elems, v.unknown = old.elems, old.unknown
		}
		for i := range values {
			for _, w := range e.fields(values[i]) {
				v.elems = append(v.elems, w.Pieces)
			}
		}
	default:
		e.assignScalar(a, old, v)
	}
	return v
}

// assignScalar evaluates NAME=value and NAME+=value.
func (e *expander) assignScalar(a *assign, old, v *value) {
	w := a.value
	appends := a.appends
	if !appends && len(w.parts) > 0 && isWholePart(&w.parts[0], a.name) {
		w.parts, appends = w.parts[1:], true
	}
	if appends && old == nil {
		if text, ok := e.defined(a.name); ok {
			old = &value{elems: [][]Piece{{{Text: text}}}}
		}
	}
	pieces := e.text(&w)
	if appends && old != nil {
		v.isArray, v.unknown = old.isArray, old.unknown
		v.elems = old.elems
		if len(v.elems) == 0 {
			v.elems = [][]Piece{nil}
		}
		v.elems[0] = append(v.elems[0], pieces...)
		return
	}
	if len(pieces) == 1 && pieces[0].Unknown != nil && isLineName(pieces[0].Unknown.Name) {
		u := *pieces[0].Unknown
		u.Name = a.name
		pieces[0].Unknown = &u
	}
	v.elems = [][]Piece{pieces}
}

// assignElement evaluates NAME[index]=value. The elements of associative arrays are not kept apart.
func (e *expander) assignElement(a *assign, old, v *value) {
	v.isArray = true
	if old != nil {
		v.elems, v.unknown = slices.Clone(old.elems), old.unknown
	}
	index := Word{e.text(a.index)}
	i, ok := decimal(index.Text())
	const maxElements = 1 << 16
	if !ok || i < 0 || i > maxElements {
		v.unknown = &Unknown{Name: a.name, At: a.index.span,
			Why: "is an array with names, which planc does not evaluate"}
		return
	}
	for int64(len(v.elems)) <= i {
		v.elems = append(v.elems, nil)
	}
	v.elems[i] = e.text(&a.value)
}

// isWhole reports whether a word is all elements of an array, which quotes keep as they are: "${NAME[@]}".
func isWhole(w *word, name string) bool {
	return len(w.parts) == 1 && w.parts[0].kind == variable && w.parts[0].name == name && w.parts[0].op == "" &&
		!w.parts[0].length && w.parts[0].index == "@" && w.parts[0].quoted
}

// isWholePart reports whether a part is a scalar variable: $NAME or ${NAME}.
func isWholePart(p *part, name string) bool {
	return p.kind == variable && p.name == name && p.index == "" && p.op == "" && !p.length
}

// command records a command. Commands in the text of eval and of bash -c are recorded by themselves.
func (e *evaluator) command(n *simple, words []Word) {
	var env []Assignment
	for i := range n.assigns {
		a := &n.assigns[i]
		env = append(env, Assignment{a.name, Word{e.text(&a.value)}, a.start})
	}
	if words[0].Text() == "env" {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	var heredoc func() []Piece
	if n.heredoc != nil {
		heredoc = func() []Piece { return e.text(&n.heredoc.text) }
	}
	t, ok := innerTextOf(words, heredoc)
	if !ok {
		e.record(Command{Env: env, Words: words})
		return
	}
	recordInner(e, t, env, 0)
}

// record adds a command to the script's.
func (e *evaluator) record(c Command) {
	c.Undecided = e.undecided
	commands := e.script.Commands
	if len(commands) == cap(commands) { // append would copy long scripts several times as often
		commands = slices.Grow(commands, len(commands)+1)
	}
	e.script.Commands = append(commands, c)
}

// takeAssignment adds a word NAME=value to the command's variables, and reports whether it is one.
func (c *Command) takeAssignment(w *Word) bool {
	name, _, ok := strings.Cut(w.Text(), "=")
	if !ok || !isName(name) {
		return false
	}
	c.Env = append(c.Env, Assignment{name, w.cut(len(name)+1, len(w.Text())), max(0, w.Offset())})
	return true
}
