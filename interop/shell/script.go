package shell

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// BadScript is the code of what makes a script unreadable.
const BadScript ir.Code = "BadScript"

// Script is what a script would run.
type Script struct {
	// Commands are those that are reached, in order.
	Commands []Command
	// Exported are the environment variables that the script sets for its commands, by name.
	Exported map[string]Word
	// Sources are the files that the script reads by "source FILE" or ". FILE", in the order of the commands.
	Sources []Source
	// Exit is the exit that ends the script before its last command; nil if there is none.
	Exit *Exit
	// Empty are variables without a value that conditions take as empty, by name.
	Empty []Unknown
	// Diags are what makes the script unreadable: quotes without an end, or more text than the limits allow.
	Diags ir.Diags

	buffer
	vars map[string]*value
	read map[string]bool // definitions that the script reads
	uses map[string]int  // references to each variable in the text
}

// Command is a command with its words.
type Command struct {
	// Env are the variables set in front of the command: CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun ...
	Env   []Assignment
	Words []Word
	// Undecided is the condition on which the command depends, if it cannot be evaluated; else nil.
	Undecided *Unknown
}

// Exit is an exit of the script.
type Exit struct {
	At      Span
	because decided // the condition on which the exit runs
}

// decided is a condition whose value decides that a command runs.
type decided struct {
	span  Span // the zero span if there is none, or if it is a compound command
	value bool
}

// Assignment is a variable with its value.
type Assignment struct {
	Name  string
	Value Word
	Start int // offset of the name
}

// Word is one argument: a sequence of pieces.
type Word struct {
	Pieces []Piece
}

// Piece is a part of a word that stands in the script as one text.
type Piece struct {
	Text string
	// Span is where Text stands. Its length differs from Text's if the text is computed. It is empty if the text is
	// not in the script: a definition by the user.
	Span Span
	// Unknown says why the text is not known; nil if it is.
	Unknown *Unknown

	via    *reference // the variable that the piece comes from; nil if it stands in the command itself
	quoted bool       // Span is inside quotes
}

// Span is a range of bytes of a script.
type Span struct{ Start, End int }

// Unknown is something that the evaluator cannot know.
type Unknown struct {
	// Name is what the user can define: "1", "NNODES", "line12".
	Name string
	// At is where it is used.
	At Span
	// Why completes the sentence "NAME ...": "has no value here".
	Why string
	// Values says what can be defined; "" means VALUE.
	Values string
}

// reference is a use of a variable.
type reference struct {
	name   string
	span   Span       // of $NAME or ${NAME...}
	quoted bool       // span is inside quotes
	scalar bool       // the value is one word
	inner  *reference // in the variable's own value
}

// Text returns the word's text. Unknown pieces are empty.
func (w *Word) Text() string {
	if len(w.Pieces) == 1 {
		return w.Pieces[0].Text
	}
	var b strings.Builder
	for i := range w.Pieces {
		b.WriteString(w.Pieces[i].Text)
	}
	return b.String()
}

// Variable returns the name of the innermost variable that gives a word its whole text; "" if there is none.
func (w *Word) Variable() string {
	name := ""
	for i := range w.Pieces {
		r := w.Pieces[i].via
		for r != nil && r.inner != nil {
			r = r.inner
		}
		if r == nil || i > 0 && r.name != name {
			return ""
		}
		name = r.name
	}
	return name
}

// Unknown returns the first unknown piece's reason; nil if the text is known.
func (w *Word) Unknown() *Unknown {
	for i := range w.Pieces {
		if w.Pieces[i].Unknown != nil {
			return w.Pieces[i].Unknown
		}
	}
	return nil
}

// Variable returns the value that a variable has at the script's end. ok is false if the script does not set it, or to
// an array.
func (s *Script) Variable(name string) (w Word, ok bool) {
	v := s.vars[name]
	if v == nil || v.unknown != nil || v.isArray || len(v.elems) != 1 {
		return w, false
	}
	return Word{v.elems[0]}, true
}

// Explain returns the message for the exit that ends a script, and its position.
func (x *Exit) Explain(s *Script) (ir.Pos, string) {
	why := x.because
	if why.span == (Span{}) {
		return s.At(x.At.Start), "the script ends here"
	}
	holds := map[bool]string{true: "holds", false: "does not hold"}[why.value]
	condition := strings.TrimSpace(string(s.source[why.span.Start:why.span.End]))
	return s.At(x.At.Start), fmt.Sprintf("the script ends here, because %s %s: type --define %s=%t if it is otherwise",
		condition, holds, s.lineName(why.span.Start), !why.value)
}

// Reads reports whether a script reads a variable.
func Reads(s *Script, name string) bool { return s != nil && s.uses[name] > 0 }

// Unread returns the definitions of a user that a script does not read, by name, with why.
func Unread(s *Script, define map[string]string) map[string]string {
	out := map[string]string{}
	for name := range define {
		switch {
		case s.read[name]:
		case s.vars[name] != nil:
			out[name] = "the script sets $" + name + " itself"
		case isLineName(name):
			out[name] = "the line has no condition that planc evaluates"
		default:
			out[name] = "nothing reads $" + name
		}
	}
	return out
}

// Shown returns the word with its unknown pieces as the script writes them: "$HOME/data".
func (s *Script) Shown(w *Word) string {
	var b strings.Builder
	for i := range w.Pieces {
		p := &w.Pieces[i]
		if p.Unknown == nil {
			b.WriteString(p.Text)
			continue
		}
		at := p.Span
		if p.via != nil {
			at = p.via.span
		}
		b.Write(s.source[at.Start:at.End])
	}
	return b.String()
}

// Offset returns where a word stands, in the innermost text that it comes from; -1 if that is not in the script.
func (w *Word) Offset() int {
	for i := range w.Pieces {
		if sp := w.Pieces[i].Span; sp != (Span{}) {
			return sp.Start
		}
		if r := w.Pieces[i].via; r != nil {
			return r.span.Start
		}
	}
	return -1
}

// Pos returns the position of a word.
func (s *Script) Pos(w *Word) ir.Pos { return s.At(w.Offset()) }

// Explain returns the message for something unknown, and its position.
func (s *Script) Explain(u *Unknown) (ir.Pos, string) {
	name := "$" + u.Name
	if isLineName(u.Name) {
		name = string(s.source[u.At.Start:u.At.End])
	}
	text := fmt.Sprintf("%s %s: type --define %s=%s", name, u.Why, u.Name, cmp.Or(u.Values, "VALUE"))
	if u.Why == noValue {
		text += s.mayBeSet(u.At.Start)
	}
	return s.At(u.At.Start), text
}

// newScript returns an empty result for a source.
func newScript(file string, source []byte) *Script {
	s := &Script{uses: map[string]int{}, Exported: map[string]Word{}}
	s.add(file, source)
	return s
}
