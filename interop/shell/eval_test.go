package shell

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// commands returns the commands of a script, one a line, with words separated by "|".
func commands(t *testing.T, text string, define map[string]string) string {
	t.Helper()
	s := Eval("run.sh", []byte(text), define)
	var lines []string
	for i := range s.Commands {
		c := &s.Commands[i]
		var words []string
		for _, a := range c.Env {
			words = append(words, a.Name+"="+a.Value.Text())
		}
		for j := range c.Words {
			words = append(words, s.Shown(&c.Words[j]))
		}
		lines = append(lines, strings.Join(words, "|"))
	}
	if s.Diags != nil {
		lines = append(lines, s.Diags.Error())
	}
	return strings.Join(lines, "\n")
}

func TestEval(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"assignments", "A=4\nB=\"$A\"\nrun --x $A --y ${B}0", "run|--x|4|--y|40"},
		{"defaults", "X=${1:-8}\nrun $X ${Y:-2} ${Z-3} ${X:+set} ${Q:+set} ${W:=5} $W", "run|8|2|3|set|5|5"},
		{"arithmetic", "A=3\nrun $((A*2+1)) $(( (A+1) ** 2 )) $(($A<4 ? 10/3 : 7%4)) $((16#f))",
			"run|7|16|3|$((16#f))"},
		{"arrays", "A=(\n  --a 1 # one\n  --b \"2 3\"\n)\nA+=(--c)\nrun \"${A[@]}\" ${#A[@]} ${A[0]}",
			"run|--a|1|--b|2 3|--c|5|--a"},
		{"strings", "X=\"--a 1 \\\n  --b 2\"\nX+=\" --c\"\nX=\"$X --d\"\nrun $X \"$X\"",
			"run|--a|1|--b|2|--c|--d|--a 1   --b 2 --c --d"},
		{"quotes", `run 'a $b' "c \"d\" \$e" f\ g ""`, `run|a $b|c "d" $e|f g|`},
		{"continuation", "A=1 B=x torchrun --n 2 \\\n   x.py \\\n   --flag # end\nnext",
			"A=1|B=x|torchrun|--n|2|x.py|--flag\nnext"},
		{"heredoc", "cat <<EOF > x\n--not \"an argument\nEOF\nrun --a", "cat\nrun|--a"},
		{"cat of a here-document", "N=2\nA=$(cat <<EOF\n  --a $N (it's)\n  --b \\\n 3\nEOF\n)\nrun $A \"$A\"",
			"run|--a|2|(it's)|--b|3|  --a 2 (it's)\n  --b  3"},
		{"cat of a quoted here-document", "run \"$(cat <<-'E'\n\t--a $N\n\tE\n)\" --z", "run|--a $N|--z"},
		{"cat of a here-document in a word", "run x$(cat <<E\na b\n\nE\n)y", "run|xa|by"},
		{"cat with other commands", "run $(cat <<E | sort\na\nE\n) $(cat <<E\nb\nE\nls) $(cat x) $(cat <<<c)",
			"run|$(cat <<E | sort\na\nE\n)|$(cat <<E\nb\nE\nls)|$(cat x)|$(cat <<<c)"},
		{"cat of a here-document without an end", "A=1\nX=$(cat <<E\na\n",
			"run.sh:2:3: the $( here has no end: end the text with a line E, and add the closing ) [BadScript]"},
		{"cat of a here-document that ends with a parenthesis", "X=$(cat <<E\na\nE)\nrun $X \"$(cat <<-E\n\tb\n\tE)\"",
			"run|a|b"},
		{"if",
			"A=1\nif [ \"$A\" = 1 ]; then\n X=\"--one\"\nelif [[ $A == 2 ]]; then X=--two\nelse X=--other; fi\nrun $X",
			"run|--one"},
		{"else", "A=3\nif [ $A -gt 4 -a 1 = 1 ]; then X=--big; else X=--small; fi\nrun $X", "run|--small"},
		{"and", "[ -z \"$N\" ] && N=2\n[[ -n $N && $N -lt 5 ]] || exit 1\nrun $N", "run|2"},
		{"case", "S=70b\ncase $S in\n 7b) L=32 ;;\n 70b|72b) L=80 ;;\n *) exit 1 ;;\nesac\nrun $L", "run|80"},
		{"case with classes",
			"S=7B\ncase $S in\n [!0-9]*) L=1 ;;\n [0-9]B) L=32 ;;\n *) L=80 ;;\nesac\nrun $L", "run|32"},
		{"lists", "[ 1 = 2 ] && A=1 || A=2\n[ 1 = 1 ] || A=3 && B=4\nrun $A $B", "run|2|4"},
		{"return", "f() { if [ $1 = a ]; then X=2; return; fi\n X=8; }\nf a\nrun $X\nf b\nrun $X", "run|2\nrun|8"},
		{"subshells", "X=2\nA=(1)\n(X=8; A+=(2); A[0]=3; run $X)\nrun $X ${A[@]}", "run|8\nrun|2|1"},
		{"changes by arithmetic", "X=1\n((X*=2))\nY=1\n((Y++))\nZ=$((++Q))\n((W==3))\nW=3\nrun $X $Y $Z $W",
			"run|$X|$Y|$Z|3"},
		{"undecided", "if [ -f x ]; then A=1; fi\nrun $A", "run|$A"},
		{"functions", "f() { run \"$1\" ${2:-9}; }\nf a b\nfunction g { X=1; }\ng\nrun $X", "run|a|b\nrun|1"},
		{"eval", "CMD=\"torchrun x.py --a 'b c' > log 2>&1\"\neval $CMD\n$CMD",
			"torchrun|x.py|--a|b c\ntorchrun|x.py|--a|'b|c'|>|log|2>&1"},
		{"bash -c", "O=\"--a 1\nsrun -N 4 bash -c \"A=1\"",
			"run.sh:2:23: the \" here has no end: add the closing \" [BadScript]"},
		{"srun", "O=\"--a 1\"\nsrun -N 4 bash -c \"cd /x && F=1 python x.py ${O}\"",
			"srun|-N|4|cd|/x\nF=1|srun|-N|4|python|x.py|--a|1"},
		{"ssh", "O='--a 1'\nssh -p 22 u@h \"cd /x; python x.py $O\" &", "cd|/x\npython|x.py|--a|1"},
		{"ssh without a command", "ssh -N h", "ssh|-N|h"},
		{"ssh with a here-document", "O=1\nssh h bash -s <<E\n# don't\nexport B=2\npython x.py --a $O\nE",
			"B=2|python|x.py|--a|1"},
		{"pdsh", "pdsh -w n[1-2] 'export A=1; docker exec c bash -lc \"python x.py --b 2\"'",
			"A=1|docker|exec|c|python|x.py|--b|2"},
		{"variables of inner shells", "A=1\nexport B=2\nbash -c 'C=3; run $A $B ${C} ${D:-4}'\nssh h 'run $B'\n" +
			"X='run $A'\neval $X", "run|$A|2|3|4\nrun|$B\nrun|1"},
		{"loops", "for i in 1 2; do A=\"$A $i\"; done\nwhile [[ $# -gt 0 ]]; do B=$1; shift; done\nrun $A $B.",
			"run|$A|$B."},
		{"unknown", "run $HOME/x $(nproc) `date` \"$@\"", "run|$HOME/x|$(nproc)|`date`|$@"},
		{"env", "env A=1 python x.py b=2\nexport C=3", "A=1|python|x.py|b=2"},
		{"pipes", "run --a 1 2>&1 | tee log.txt &", "run|--a|1\ntee|log.txt"},
	} {
		if diff := cmp.Diff(c.want, commands(t, c.script, nil)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
