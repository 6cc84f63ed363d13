package shell

import (
	"runtime/debug"
	"strings"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
)

// Eval never panics. A piece whose text is as long as its span is what stands there.
func FuzzEval(f *testing.F) {
	for _, script := range []string{"A=(1 \"2 3\")\nrun ${A[@]} \"$B\"", "if [ -z \"$X\" ]; then X=1; fi\nrun $((X+1))",
		"case $1 in a) B=2;; *) B=3;; esac\nrun ${B:-4} `x` $(y)", "eval \"a 'b c'\" && bash -c 'run $X > y'",
		"f() { run \"$@\"; }\nf 1 2\nfor i in 1; do A+=\" $i\"; done", "cat <<E\nx\nE\nexport A=1\nA=2 run \\\n -x",
		"A=$(cat <<E\n --a $X \\\n b\n\nE\n)\nrun $A \"$A\" x$(cat <<-'F'\n\tc\n\tF\n)y"} {
		f.Add([]byte(script))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := Eval("run.sh", data, map[string]string{"X": "5", "1": "a"})
		for i := range s.Commands {
			for j := range s.Commands[i].Words {
				holdWord(t, s, &s.Commands[i].Words[j])
			}
		}
		s.Launches()
	})
}

// holdWord checks a word's pieces, and that an edit that changes nothing returns the same bytes.
func holdWord(t *testing.T, s *Script, w *Word) {
	t.Helper()
	s.Pos(w)
	s.Shown(w)
	for i := range w.Pieces {
		p := &w.Pieces[i]
		if p.Span.Start < 0 || p.Span.End > len(s.source) || p.Span.Start > p.Span.End {
			t.Fatalf("piece %+v of %d bytes", p, len(s.source))
		}
	}
	if why := w.Unknown(); why != nil {
		s.Explain(why)
	}
	for _, depth := range Depths {
		edit, ok := s.Replace(w, "x", depth)
		if ok && (edit.Start > edit.End || edit.End > len(s.source)) {
			t.Fatalf("edit %+v of %d bytes", edit, len(s.source))
		}
	}
	words := []Word{*w}
	if edit, ok := s.Insert(words, []string{"--new"}); ok {
		Apply(s.source, edit)
	}
	if edits, ok := s.Remove(words); ok {
		Apply(s.source, edits...)
	}
}

// A script whose nesting no person writes neither exhausts the stack nor takes long.
func TestDeepScripts(t *testing.T) {
	const n, stack = 100_000, 16 << 20
	defer debug.SetMaxStack(debug.SetMaxStack(stack))
	for _, part := range []string{"a&&", "a()", "function a ", "{ ", "( ", "if ", "! ", "a|", "case x in x) "} {
		s := Eval("run.sh", []byte(strings.Repeat(part, n)+"\nrun"), nil)
		if len(s.Commands) > n+2 {
			t.Errorf("%s: %d commands", part, len(s.Commands))
		}
	}
}
