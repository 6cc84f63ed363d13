package shell

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writer writes random scripts of what Eval follows: each command "run" shows what its words are.
type writer struct {
	*rand.Rand
	out       strings.Builder
	functions int // that are defined
	inside    bool
}

func (w *writer) pick(words ...string) string { return words[w.IntN(len(words))] }

// word returns a word, which may be empty, have several values, or be a pattern.
func (w *writer) word() string {
	switch w.IntN(16) {
	case 0:
		return `"${A[@]}"`
	case 1:
		return "${A[@]}"
	case 2:
		return "${#A[@]}"
	case 3:
		return fmt.Sprintf("${A[%d]}", w.IntN(3))
	case 4:
		return "${" + w.pick("X", "Y", "U") + w.pick(":-", "-", ":+", "+") + w.pick("d", "*e", "$Y", `"f g"`) + "}"
	case 5:
		return `"${` + w.pick("X", "Y", "U") + w.pick(":-", "-", ":+", "+") + w.pick("d", "*e", "$Y", "f g") + `}"`
	case 6:
		return "$((" + w.sum() + "))"
	case 7:
		if w.IntN(3) == 0 {
			return w.catOutput()
		}
		return w.pick("$1", `"$1"`, "$#", `"$@"`, "$@", `"$2"`)
	case 8:
		return "${#" + w.pick("X", "Y") + "}"
	case 9:
		return w.pick("'a b'", `"a  $X"`, `\*`, "''", `""`, `a\ b`, `'$X'`)
	}
	return w.pick("a", "ab*", "b", "--x", "a=1", "$X", `"$X"`, "$Y", `"$Y"z`, "${X}c", "7", "1")
}

func (w *writer) words() string {
	var out []string
	for range w.IntN(4) {
		out = append(out, w.word())
	}
	return strings.Join(out, " ")
}

// value returns the value of an assignment.
func (w *writer) value() string {
	return w.pick("a", "ab", "'a b'", `"x*"`, "$X", `"$Y c"`, "${U:-ab}", `""`, "b$X", "'[a]b'", `\?b`, "$1",
		"$((N+1))")
}

// sum returns an arithmetic expression.
func (w *writer) sum() string {
	return w.pick("N", "M", "3", "$N", "${M}", "(N+1)") + w.pick("+", "-", "*", "%", "/", "<", "==", "&&", "||", "**") +
		w.pick("2", "3", "M*0+1", "(1+1)", "1")
}

func (w *writer) pattern() string {
	return w.pick("a*", `"a*"`, `a"*"`, "$X", `"$X"`, "?b", `\?b`, "[ab]*", "'[a]b'", `[!a]`, "*", `"$Y"*`, "ab",
		"[]a]b", `"x"\*`, `''`)
}

// catOutput returns the output of cat with a here-document.
func (w *writer) catOutput() string {
	end := w.pick("E", "'E'")
	text := w.pick("a  $X", "it's (b", "$((N+1)) \\\n c", "\"$Y\"", "") + w.pick("\n", "\n\n", "")
	quote := w.pick("", `"`)
	return quote + "$(cat <<" + end + "\n" + text + w.pick("\nE\n)", "\nE)") + quote
}

// condition returns a command whose status is known.
func (w *writer) condition() string {
	switch w.IntN(10) {
	case 0:
		return "(( " + w.sum() + " ))"
	case 1:
		return `[ "$X" ` + w.pick("=", "!=", "==") + " " + w.pick(`"$Y"`, `"a*"`, "ab", "a") + " ]"
	case 2:
		return "[ " + w.pick("-z", "-n") + ` "` + w.pick("$X", "$Y", "$U", "$1") + `" ]`
	case 3:
		return "! " + w.condition()
	case 4:
		return "[ $N " + w.pick("-eq", "-lt", "-ge", "-ne") + " $M ]"
	case 5:
		return "[[ " + w.pick("-z", "-n") + " $X " + w.pick("&&", "||") + " $Y == " + w.pattern() + " ]]"
	case 6:
		if !w.inside && w.functions > 0 {
			return w.call()
		}
	}
	return "[[ " + w.pick("$X", `"$Y"`, "ab", "'a*'") + " " + w.pick("==", "!=", "=") + " " + w.pattern() + " ]]"
}

func (w *writer) call() string {
	return fmt.Sprintf("f%d %s", w.IntN(w.functions), w.words())
}

// line writes a line.
func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

// list writes commands.
func (w *writer) list(depth int) {
	for range 1 + w.IntN(3) {
		w.command(depth)
	}
}

func (w *writer) command(depth int) {
	if depth == 0 {
		w.simple()
		return
	}
	switch w.IntN(14) {
	case 0, 1:
		w.line("if %s; then", w.condition())
		w.list(depth - 1)
		if w.IntN(2) == 0 {
			w.line("elif %s; then", w.condition())
			w.list(depth - 1)
		}
		if w.IntN(2) == 0 {
			w.line("else")
			w.list(depth - 1)
		}
		w.line("fi")
	case 2:
		w.line("case %s in", w.pick("$X", `"$Y"`, "a$X", "'a*'"))
		w.line("%s|%s)", w.pattern(), w.pattern())
		w.list(depth - 1)
		w.line(";;\n%s) ", w.pattern())
		w.list(depth - 1)
		w.line(";;\nesac")
	case 3:
		w.line("%s && {", w.condition())
		w.list(depth - 1)
		w.line("}")
	case 4:
		w.line("%s || X=%s", w.condition(), w.value())
	case 5:
		w.line("(")
		w.list(depth - 1)
		w.line(")")
	case 6:
		w.line("%s && exit %d", w.condition(), w.IntN(2))
	case 7:
		w.line("read -r -d '' X <<%s || true\n%s\n $Y \"q\" b*\nE", w.pick("E", "'E'"),
			w.pick("", "-a 1", "$X", "${A[0]}x"))
	default:
		w.simple()
	}
}

// simple writes a simple command.
func (w *writer) simple() {
	switch w.IntN(12) {
	case 0, 1:
		w.line("%s=%s", w.pick("X", "Y"), w.value())
	case 2:
		w.line("%s+=%s", w.pick("X", "Y"), w.value())
	case 3:
		w.line("A=(%s)", w.words())
	case 4:
		w.line("A+=(%s)", w.words())
	case 5:
		w.line("%s=%d", w.pick("N", "M"), w.IntN(5))
	case 6:
		w.line("%s %s=%s", w.pick("export", "declare"), w.pick("X", "Y"), w.value())
	case 7:
		if w.inside {
			w.line(w.pick("local X=%s Y=$X", "local X=%s", "return 0 %.0s", "return 1 %.0s", "local N=2 # %s"),
				w.value())
			return
		}
		fallthrough
	case 8:
		if w.functions > 0 && !w.inside {
			w.line("%s", w.call())
			return
		}
		fallthrough
	default:
		w.line("run %s", w.words())
	}
}

// script returns a random script.
func (w *writer) script() string {
	w.line("X=a Y='a b' N=2 M=3\nA=(1 '2 3')\nset -- p 'q r'")
	for i := range w.IntN(3) {
		w.line("f%d() {", i)
		w.inside = true
		w.list(2)
		w.inside = false
		w.line("}")
		w.functions++
	}
	for range 8 {
		w.command(2)
	}
	w.line(`run end "$X" "$Y" "$N" "$M" "${A[@]}"`)
	return w.out.String()
}

// prelude prints the words of each command "run".
const prelude = "run() { printf run; for a in \"$@\"; do printf '|%s' \"$a\"; done; printf '\\n'; }\n"

// runAll returns what bash prints for scripts, and which of them it reports errors for.
func runAll(t *testing.T, bash string, scripts []string) (outputs []string, wrong []bool) {
	t.Helper()
	folder := t.TempDir()
	path := func(i int, ext string) string { return filepath.Join(folder, fmt.Sprint(i)+ext) }
	for i, text := range scripts {
		if err := os.WriteFile(path(i, ".sh"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const all = "for ((i = 0; i < $2; i++)); do (. $1/$i.sh) > $1/$i.out 2> $1/$i.err; done; true"
	c := exec.Command(bash, "-c", prelude+all, "bash", folder, fmt.Sprint(len(scripts)))
	c.Dir, c.Env = t.TempDir(), []string{"LC_ALL=C"} // in a folder in which no pattern matches a file
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	for i := range scripts {
		out, err := os.ReadFile(path(i, ".out"))
		if err != nil {
			t.Fatal(err)
		}
		errs, err := os.ReadFile(path(i, ".err"))
		if err != nil {
			t.Fatal(err)
		}
		outputs, wrong = append(outputs, string(out)), append(wrong, len(errs) > 0)
	}
	return outputs, wrong
}

// What Eval knows is what bash does.
func TestEvalIsBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	var scripts []string
	const many = 400
	for seed := range uint64(many) {
		w := &writer{Rand: rand.New(rand.NewPCG(seed, 24))}
		scripts = append(scripts, w.script())
	}
	want, wrong := runAll(t, bash, scripts)
	compared := 0
	for i, script := range scripts {
		s := Eval("run.sh", []byte(script), nil)
		isUnknown := slices.ContainsFunc(s.Commands, func(c Command) bool {
			return c.Undecided != nil || slices.ContainsFunc(c.Words, func(w Word) bool { return w.Unknown() != nil })
		})
		if wrong[i] || isUnknown { // wrong is such as a comparison of numbers that are none
			continue
		}
		compared++
		var got strings.Builder
		for _, c := range s.Commands {
			var words []string
			for _, w := range c.Words {
				words = append(words, w.Text())
			}
			got.WriteString(strings.Join(words, "|") + "\n")
		}
		if got.String() != want[i] {
			t.Fatalf("seed %d:\n%s\ngot\n%s\nbash\n%s", i, script, got.String(), want[i])
		}
	}
	t.Logf("%d of %d scripts compared", compared, many)
	if compared < many/2 {
		t.Errorf("only %d of %d scripts are evaluated", compared, many)
	}
}
