//go:build unix

package shell

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time that the tests have taken. Other processes do not change it, as they change the
// time on the clock.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A script with 10^5 variables, and one of 10 MB, are evaluated within about a second. The limit is twice that, because
// the collection of garbage counts too.
func TestLargeScripts(t *testing.T) {
	const many = 100_000
	var variables, appended, long, words strings.Builder
	for i := range many {
		fmt.Fprintf(&variables, "V%d=${V%d:-%d}\nexport E%d=\"$V%d x\"\n", i, i-1, i, i, i)
		fmt.Fprintf(&appended, "ARGS=\"$ARGS --option%d %d\"\nA+=(--x%d)\n", i, i, i)
	}
	appended.WriteString("run $ARGS ${A[@]}\n")
	for long.Len() < 10<<20 {
		long.WriteString("# a comment that is long enough to be read\nrun --one 1 \\\n  --two \"$TWO\" 'three' # end\n")
	}
	words.WriteString("run \"")
	for words.Len() < 10<<20 {
		words.WriteString("--option value $X ")
	}
	words.WriteString("\"\n")
	for name, text := range map[string]string{"variables": variables.String(), "appended": appended.String(),
		"10 MB": long.String(), "10 MB in quotes": words.String()} {
		start := cpuTime(t)
		s := Eval("run.sh", []byte(text), nil)
		took := cpuTime(t) - start
		t.Logf("%s: %v", name, took)
		const limit = 2 * time.Second
		if took > limit {
			t.Errorf("%s: %v", name, took)
		}
		if name == "appended" && len(s.Commands[0].Words) != 3*many+1 {
			t.Errorf("%s: %d words", name, len(s.Commands[0].Words))
		}
	}
}

// Scripts that grow exponentially end, with a message.
func TestExplodingScripts(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString("A=x\n")
	for range 60 {
		doubling.WriteString("A=\"$A $A\"\n")
	}
	for _, text := range []string{
		doubling.String() + "run $A", "f() { f; f; }\nf",
		"A=(x)\n" + strings.Repeat("A+=(\"${A[@]}\")\n", 60),
		strings.Repeat("((", 5000), strings.Repeat("${A:-", 5000), strings.Repeat("if [ -z x ]; then ", 5000),
		strings.Repeat("$((1+", 5000), strings.Repeat("{ ", 9000), strings.Repeat("(", 9000),
		"echo $((" + strings.Repeat("(", 9000) + "1", strings.Repeat("! ", 9000) + "x",
		"[[ " + strings.Repeat("! ", 9000) + "x ]]", "[[ " + strings.Repeat("( ", 9000) + "x ]]",
	} {
		start := cpuTime(t)
		Eval("run.sh", []byte(text), nil)
		const limit = 3 * time.Second
		if took := cpuTime(t) - start; took > limit {
			t.Errorf("%.40s: %v", text, took)
		}
	}
}
