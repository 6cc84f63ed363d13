package shell

// The syntax tree. Its nodes keep offsets into the source.

// node is a command or a list of commands.
type node interface{}

// simple is a command of words, possibly with assignments in front, or assignments alone.
type simple struct {
	assigns []assign
	words   []word
	heredoc *heredoc // the last; nil if there is none
	span    Span
}

// assign is NAME=value, NAME+=value, NAME[index]=value or NAME=(values).
type assign struct {
	name    string
	index   *word
	appends bool
	isArray bool
	value   word
	values  []word
	start   int
}

// conditional is an if with its branches. The last may have no condition: else.
type conditional struct{ branches []branch }

type branch struct {
	condition []node // nil: else
	body      []node
	span      Span // of the condition
}

// loop is for, select, while or until.
type loop struct {
	variable  string // of for
	condition []node // of while and until
	until     bool
	body      []node
	span      Span
}

// choice is a case.
type choice struct {
	subject word
	arms    []arm
	span    Span
}

type arm struct {
	patterns []word
	body     []node
}

// function is a definition.
type function struct {
	name string
	body []node
}

// group is { list; } or ( list ).
type group struct {
	body     []node
	subshell bool
}

// andOr is first && node ..., or first || node ...
type andOr struct {
	first node
	rest  []joined
}

// joined is a command after && or ||.
type joined struct {
	isOr bool
	node node
}

// pipeline is left | right ..., or ! command.
type pipeline struct {
	parts   []node
	negated bool
}

// test is [[ ... ]]; words include the operators.
type test struct {
	words []word
	span  Span
}

// arithmetic is (( ... )).
type arithmetic struct{ expr Span }

// word is a sequence of parts.
type word struct {
	parts []part
	span  Span
}

type partKind uint8

const (
	literal      partKind = iota
	variable              // $NAME, ${NAME...}
	calculation           // $((...))
	substitution          // $(...), `...`, <(...)
	hereText              // $(cat <<EOF), whose output is arg
)

// part is a piece of a word. The text of a literal is what stands at its span.
type part struct {
	kind       partKind
	quoted     bool
	span       Span
	*expansion // of a variable, a calculation or a here-document; most parts are literals, which have none
}

// expansion is what determines the text of a part that is not literal.
type expansion struct {
	name   string // of a variable
	index  string // of an array: "@", "*", or a subscript; "" without one
	length bool   // ${#NAME}
	op     string // "", ":-", "-", ":=", "=", ":+", "+", ":?", "?", or "other"
	arg    *word  // of op; the text of a here-document
	inner  Span   // of a calculation: its expression
}
