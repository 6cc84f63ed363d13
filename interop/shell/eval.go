package shell

import (
	"maps"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// Eval evaluates a script that sources no other files. define has values of variables that the script takes from its
// environment ("NNODES") or its arguments ("1"), and decisions of conditions ("line12": "true"). It runs nothing.
func Eval(file string, source []byte, define map[string]string) *Script {
	return EvalWith(file, source, define, nil)
}

// EvalWith evaluates a script. open returns the files that it sources; if it is nil, none are given.
func EvalWith(file string, source []byte, define map[string]string, open Open) *Script {
	s := newScript(file, source)
	e := &evaluator{expander: &expander{script: s, define: define, vars: map[string]*value{}, budget: maxPieces,
		read: map[string]bool{}},
		functions: map[string]*function{}, open: open, parsed: map[string][]node{}}
	e.run(parse(s, 0))
	s.vars, s.read = e.vars, e.read
	for name, v := range e.vars {
		if v.exported && !v.isArray && len(v.elems) == 1 {
			s.Exported[name] = Word{v.elems[0]}
		}
	}
	return s
}

// maxPieces bounds the pieces of all values, so that a script of a few lines cannot take all memory.
const maxPieces = 2_000_000

// expander has the variables of a script, and expands words with them.
type expander struct {
	script     *Script
	define     map[string]string
	vars       map[string]*value
	positional [][]Piece // of a function or after set --; nil: the script's own, which define has
	budget     int
	stopped    bool            // because the budget is spent
	read       map[string]bool // definitions that the script reads
	locals     locals          // of the functions that run
}

// evaluator evaluates commands.
type evaluator struct {
	*expander
	functions map[string]*function
	depth     int       // of function calls
	returned  bool      // from the function or the sourced file that runs
	exited    bool      // from the script or the subshell
	last      status    // of the last command
	held      []decided // the conditions on which the command runs, the outermost first
	undecided *Unknown  // the condition that encloses what is evaluated, if it is not known

	open    Open              // returns sourced files; nil if none are given
	parsed  map[string][]node // commands of the sourced files, by name
	sources int               // depth of sourced files
}

// value is a variable's value.
type value struct {
	elems    [][]Piece // one for a scalar
	isArray  bool
	exported bool
	unknown  *Unknown // why the value is not known; nil if it is
}

// spend takes pieces from the budget. It stops the evaluation if none are left.
func (e *expander) spend(pieces int) {
	e.budget -= pieces
	if e.budget < 0 && !e.stopped {
		e.stopped = true
		e.script.Diags = append(e.script.Diags, ir.Diag{Pos: e.script.At(0), Code: BadScript,
			Msg: "the script expands to more text than planc evaluates: give the command line alone"})
	}
}

// status is the exit status of a command, as far as it is known.
type status struct {
	ok  bool
	why *Unknown // not known; nil if it is
}

// success is the status of commands that are not tests: scripts are written so that these succeed.
var success = status{ok: true}

// run evaluates commands. The status is that of the last.
func (e *evaluator) run(list []node) status {
	last := success
	for _, n := range list {
		if e.isEnded() {
			break
		}
		last = e.node(n)
		e.last = last
	}
	return last
}

// isEnded reports whether no further command of a list runs.
func (e *evaluator) isEnded() bool { return e.stopped || e.returned || e.exited }

// defined returns the user's definition of a name.
func (e *expander) defined(name string) (text string, ok bool) {
	text, ok = e.define[name]
	if ok {
		e.read[name] = true
	}
	return text, ok
}

// holds evaluates commands that run because of a condition.
func (e *evaluator) holds(condition decided, body []node) status {
	e.held = append(e.held, condition)
	last := e.run(body)
	e.held = e.held[:len(e.held)-1]
	return last
}

func (e *evaluator) node(n node) status {
	e.spend(1)
	switch n := n.(type) {
	case *simple:
		return e.simple(n)
	case *conditional:
		return e.conditional(n)
	case *loop:
		return e.loop(n)
	case *choice:
		return e.choice(n)
	case *group:
		if n.subshell {
			return e.subshell(n.body)
		}
		return e.run(n.body)
	case *andOr:
		return e.andOr(n)
	case *pipeline:
		return e.pipeline(n)
	case *test:
		return e.decide(n.span, func() status { return e.testWords(n.words, n.span) })
	case *arithmetic:
		return e.arithmeticStatus(n)
	case *function:
		e.functions[n.name] = n
	}
	return success
}

// subshell evaluates commands in parentheses: variables keep their values. Variables that are new stay, because a
// launcher in parentheses has an environment that is set there.
func (e *evaluator) subshell(body []node) status {
	before := make(map[string]*value, len(e.vars))
	for name, v := range e.vars {
		saved := *v
		saved.elems = slices.Clone(v.elems)
		before[name] = &saved
		e.spend(1 + len(v.elems))
	}
	returned := e.returned
	top := len(e.locals) - 1
	var hidden map[string]*value
	if top >= 0 {
		hidden = maps.Clone(e.locals[top])
	}
	last := e.run(body)
	if top >= 0 {
		e.locals[top] = hidden
	}
	if e.exited && !e.stopped {
		e.script.Exit = nil
	}
	e.returned, e.exited = returned, false
	maps.Copy(e.vars, before)
	return last
}

func (e *evaluator) pipeline(n *pipeline) status {
	last := success
	exited := e.exited
	for _, part := range n.parts {
		last = e.node(part)
	}
	if len(n.parts) > 1 && !exited { // each command has a shell of its own, which exit ends
		e.exited, e.script.Exit = false, nil
	}
	if n.negated && last.why == nil {
		last.ok = !last.ok
	}
	return last
}

func (e *evaluator) andOr(n *andOr) status {
	last := e.node(n.first)
	for _, next := range n.rest {
		switch {
		case last.why != nil:
			e.maybe(last.why, []node{next.node})
		case e.isEnded():
			return last
		case last.ok != next.isOr:
			last = e.holds(decided{spanOf(n.first), !next.isOr}, []node{next.node})
		}
	}
	return last
}

// decide returns a condition's status: what the user has defined for its line, or what it evaluates to.
func (e *evaluator) decide(at Span, evaluate func() status) status {
	if text, ok := e.defined(e.script.lineName(at.Start)); ok && (text == "true" || text == "false") {
		return status{ok: text == "true"}
	}
	return evaluate()
}

// conditional evaluates an if: the branch whose condition holds, or all that may.
func (e *evaluator) conditional(n *conditional) status {
	for i := range n.branches {
		b := &n.branches[i]
		if b.condition == nil {
			return e.run(b.body)
		}
		cond := e.decide(b.span, func() status { return e.run(b.condition) })
		if cond.why != nil {
			for _, rest := range n.branches[i:] {
				e.maybe(cond.why, rest.body)
			}
			return cond
		}
		if cond.ok && !e.isEnded() {
			return e.holds(decided{b.span, true}, b.body)
		}
	}
	return success
}

// spanOf returns where a command stands; the zero span if it is compound.
func spanOf(n node) Span {
	switch n := n.(type) {
	case *simple:
		return n.span
	case *test:
		return n.span
	case *andOr:
		return spanOf(n.first)
	}
	return Span{}
}

// maybe evaluates commands that may not run. The variables that they assign are not known afterwards.
func (e *evaluator) maybe(why *Unknown, body []node) {
	outer := e.undecided
	if outer == nil {
		e.undecided = why
	}
	e.run(body)
	e.undecided = outer
	if text, _ := e.defined(why.Name); text != "" && !isLineName(why.Name) {
		return
	}
	e.forgetAssigned(why, body)
}

// forgetAssigned makes the variables unknown that commands assign which may not run.
func (e *evaluator) forgetAssigned(why *Unknown, body []node) {
	for _, name := range assigned(body) {
		u := *why
		u.Why += ", and it decides about $" + name
		e.forget(name, &u)
	}
}

// forget makes a variable's value unknown.
func (e *expander) forget(name string, why *Unknown) {
	v := &value{unknown: why}
	if old := e.vars[name]; old != nil {
		v.exported, v.isArray = old.exported, old.isArray
	}
	e.vars[name] = v
}

// loop evaluates a loop's body once, because only commands that do not depend on the iteration are of interest.
func (e *evaluator) loop(n *loop) status {
	if n.condition != nil {
		cond := e.decide(n.span, func() status { return e.run(n.condition) })
		if cond.why == nil && cond.ok == n.until {
			return success
		}
	}
	names := assigned(n.body)
	changes := func(name string) *Unknown {
		return &Unknown{Name: name, At: n.span, Why: "changes in a loop, which planc does not follow"}
	}
	if n.variable != "" {
		e.forget(n.variable, changes(n.variable))
	}
	for _, name := range names {
		e.forget(name, changes(name))
	}
	e.run(n.body)
	for _, name := range names {
		e.forget(name, changes(name))
	}
	return success
}

// choice evaluates a case.
func (e *evaluator) choice(n *choice) status {
	subject := Word{e.text(&n.subject)}
	if why := subject.Unknown(); why != nil {
		for i := range n.arms {
			e.maybe(why, n.arms[i].body)
		}
		return success
	}
	for i := range n.arms {
		a := &n.arms[i]
		matches := slices.ContainsFunc(a.patterns, func(p word) bool {
			pattern := Word{e.text(&p)}
			return glob(pattern.pattern(), subject.Text())
		})
		if matches {
			return e.holds(decided{}, a.body)
		}
	}
	return success
}

// assigned returns the variables that commands assign.
func assigned(list []node) (names []string) {
	for _, n := range list {
		switch n := n.(type) {
		case *simple:
			for i := range n.assigns {
				names = append(names, n.assigns[i].name)
			}
		case *conditional:
			for i := range n.branches {
				names = append(names, assigned(n.branches[i].body)...)
			}
		case *loop:
			names = append(names, assigned(n.body)...)
			if n.variable != "" {
				names = append(names, n.variable)
			}
		case *choice:
			for i := range n.arms {
				names = append(names, assigned(n.arms[i].body)...)
			}
		case *group:
			names = append(names, assigned(n.body)...)
		case *andOr:
			names = append(names, assigned([]node{n.first})...)
			for _, next := range n.rest {
				names = append(names, assigned([]node{next.node})...)
			}
		case *pipeline:
			names = append(names, assigned(n.parts)...)
		}
	}
	return names
}
