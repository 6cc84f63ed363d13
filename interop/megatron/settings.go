package megatron

import (
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/ir"
)

// argument is an option of a file.
type argument struct {
	option  *Option // nil if Megatron-LM has no such option
	spelled string  // as in the file
	values  []string
	pos     ir.Pos
	unknown *shell.Unknown // the first value that cannot be resolved; nil if all are
	name    shell.Word     // of a script: the option's word
	words   []shell.Word   // of a script: the values' words
	on      bool           // a flag's value: what it sets if it is on-off
}

// text returns the values as one text.
func (a *argument) text() string { return strings.Join(a.values, " ") }

// settings are the arguments of a file, the last of each setting.
type settings struct {
	arguments []*argument          // all, in order
	byDest    map[string]*argument // the one that holds
	defaults  map[string]string    // of the dialect, where they differ from Megatron-LM's
}

func newSettings(arguments []*argument) *settings {
	s := &settings{arguments: arguments, byDest: map[string]*argument{}}
	for _, a := range arguments {
		if a.option != nil {
			s.byDest[a.option.Dest] = a
		}
	}
	return s
}

// has reports whether the file sets a setting.
func (s *settings) has(dest string) bool { return s.byDest[dest] != nil }

// text returns a setting's value: the file's or the default; "" if there is neither.
func (s *settings) text(dest string) string {
	if a := s.byDest[dest]; a != nil {
		return a.text()
	}
	if text, ok := s.defaults[dest]; ok {
		return text
	}
	if list := options().byDest[dest]; len(list) > 0 {
		return list[0].defaultText()
	}
	return ""
}

// number returns an integer setting; 0 if it has no value.
func (s *settings) number(dest string) int {
	n, err := strconv.Atoi(s.text(dest))
	if err != nil {
		return 0
	}
	return n
}

// float returns a number; 0 if it has no value.
func (s *settings) float(dest string) float64 {
	x, err := strconv.ParseFloat(s.text(dest), 64)
	if err != nil {
		return 0
	}
	return x
}

// steps returns the number of steps, and the setting that says it; 0 if none does.
func (s *settings) steps() (n int, dest string) {
	const iterations, samples = "train_iters", "train_samples"
	batch := s.number(globalDest)
	switch {
	case s.number(iterations) > 0:
		return s.number(iterations), iterations
	case s.number(samples) > 0 && batch > 0:
		return max(1, s.number(samples)/batch), samples
	}
	return 0, iterations
}

// flag returns a setting that is true or false.
func (s *settings) flag(dest string) bool {
	if a := s.byDest[dest]; a != nil {
		return a.on
	}
	if text, ok := s.defaults[dest]; ok {
		return text == "true"
	}
	list := options().byDest[dest]
	return len(list) > 0 && list[0].Default == "true"
}

// spelled returns how the file writes the option of a setting; if it does not, Megatron-LM's name.
func (s *settings) spelled(dest string) string {
	if a := s.byDest[dest]; a != nil {
		return a.spelled
	}
	if list := options().byDest[dest]; len(list) > 0 {
		return list[0].Name
	}
	return dest
}

// pos returns where the file sets a setting.
func (s *settings) pos(dest string) ir.Pos {
	if a := s.byDest[dest]; a != nil {
		return a.pos
	}
	return ir.Pos{}
}
