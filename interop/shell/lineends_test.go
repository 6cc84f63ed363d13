package shell

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Bash does not continue a line that ends in a backslash and CR LF, so a script with such lines is refused, also one
// that another script sources.
func TestWindowsLinesAreRefused(t *testing.T) {
	const why = " this line ends in CR LF, as on Windows, and bash takes the CR as a part of the command: remove it " +
		"from all lines with sed "
	for _, c := range []struct{ name, file, script, sourced, want string }{
		{"all lines", "run.sh", "A=1\r\nrun \\\r\n --z\r\n", "", "run.sh:1:4:" + why +
			`-i 's/\r$//' run.sh [BadScript]`},
		{"one line", "run.sh", "A=1\nrun \\\r\n --z\n", "", "run.sh:2:6:" + why + `-i 's/\r$//' run.sh [BadScript]`},
		{"standard input", "-", "run\r\n", "", "-:1:4:" + why + `'s/\r$//' [BadScript]`},
		{"a sourced file", "run.sh", "source env.sh\nrun $A\n", "A=1\r\n", "env.sh:1:4:" + why +
			`-i 's/\r$//' env.sh [BadScript]`},
	} {
		open := func(name string) (string, []byte, bool) { return name, []byte(c.sourced), c.sourced != "" }
		s := EvalWith(c.file, []byte(c.script), nil, open)
		if diff := cmp.Diff(c.want, s.Diags.Error()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if c.sourced == "" && len(s.Commands) > 0 {
			t.Errorf("%s: the script has commands", c.name)
		}
	}
}
