package settings

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// specialSetters are the settings whose text is more than a value of their field's type.
var specialSetters = map[string]func(s *program.Settings, v any) error{
	"data.valid":                 setValid,
	DataOnly:                     holdOutValidation,
	"train.steps":                setSteps,
	"train.epochs":               setEpochs,
	"train.tokens":               setTokens,
	"train.seed":                 setSeed,
	"train.eval.temperature":     setTemperature,
	"train.precision.loss_scale": setLossScale,
}

// Change sets the setting at a path of the job file to a value: a Go value, or text as planc's --set takes it. nil
// and "null" restore the compiled value.
type Change struct {
	Path  string
	Value any
}

// Apply makes changes to a program's settings and checks the result.
func Apply(s *program.Settings, p *program.Program, changes []Change) error {
	if err := oneLength(changes); err != nil {
		return err
	}
	for _, c := range changes {
		if err := Set(s, c.Path, c.Value, &p.Settings); err != nil {
			return err
		}
	}
	return errors.Join(Check(s), checkBias(p, s.Train.Experts.BiasRate),
		checkMomentum(p, s.Train.Optimizer.Momentum))
}

// CommonText lists the changes that all processes of a launch must have in common, for people. Paths of data may differ
// between machines.
func CommonText(changes []Change) string {
	words := []string{}
	for _, c := range changes {
		if !strings.HasPrefix(c.Path, "data.") && c.Path != DataOnly {
			words = append(words, fmt.Sprintf("%s=%v", c.Path, c.Value))
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, " ")
}

// setter returns the function that sets a setting; nil if there is no such setting.
func setter(path string) func(s *program.Settings, v any) error {
	if set, ok := specialSetters[path]; ok {
		return set
	}
	if program.FindSetting(path) == nil {
		return nil
	}
	return func(s *program.Settings, v any) error { return setField(s.Field(path), v) }
}

// setField sets the value to which a field points.
func setField(field, v any) error {
	switch to := field.(type) {
	case *float64:
		return setNumber(to, v)
	case *int:
		return setInt(to, v)
	case *bool:
		return setBool(to, v)
	case *string:
		return setString(to, v)
	case *[2]float64:
		return setPair(to, v)
	case *[]program.File:
		return setFiles(to, v)
	}
	panic(fmt.Sprintf("runtime: a setting of type %T cannot be set", field))
}

// DataOnly is not a setting of jobs: the flag --data adds it.
const DataOnly = "--data"

// holdOutValidation replaces validation files, which belong to other data, by the last 5 % of the training file.
func holdOutValidation(s *program.Settings, _ any) error {
	if len(s.Data.Valid) > 0 {
		s.Data.Valid, s.Data.ValidFraction = nil, 0.05
	}
	return nil
}

// Set changes one setting. The value null restores the value that the program was compiled with.
func Set(s *program.Settings, path string, value any, compiledIn *program.Settings) error {
	for _, c := range program.CompiledPaths {
		if setter(path) != nil {
			break
		}
		if path == c || strings.HasPrefix(path, c+".") {
			return fmt.Errorf("%s is compiled into the program; change the job and compile again", path)
		}
	}
	set := setter(path)
	if set == nil {
		return fmt.Errorf("there is no setting %s%s", path, suggestSetting(path))
	}
	if text, ok := value.(string); ok && strings.TrimSpace(text) == "null" {
		value = nil
	}
	if value == nil && path != DataOnly {
		resetSetting(s, path, compiledIn)
		return nil
	}
	if err := set(s, value); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// lengths are the settings for the length of training. A job has one of them.
var lengths = []string{"train.steps", "train.epochs", "train.tokens"}

// resetSetting gives a setting its value in was.
func resetSetting(s *program.Settings, path string, was *program.Settings) {
	switch {
	case path == "data.valid":
		s.Data.Valid, s.Data.ValidFraction = was.Data.Valid, was.Data.ValidFraction
		return
	case slices.Contains(lengths, path):
		s.Train.Steps, s.Train.Epochs, s.Train.Tokens = was.Train.Steps, was.Train.Epochs, was.Train.Tokens
		return
	}
	reflect.ValueOf(s.Field(path)).Elem().Set(reflect.ValueOf(was.Field(path)).Elem())
}

// oneLength refuses changes that set the length of training in two ways.
func oneLength(changes []Change) error {
	first := ""
	for _, c := range changes {
		switch {
		case !slices.Contains(lengths, c.Path), c.Path == first:
		case first == "":
			first = c.Path
		default:
			return fmt.Errorf("%s and %s are both given, but only one can set the length of training (--steps sets "+
				"train.steps): leave one out", first, c.Path)
		}
	}
	return nil
}

// DidYouMean suggests the known name nearest to name, or returns "" if none is near. For a dotted name only the last
// part is compared, because names in one section share the rest. The last part alone also matches a full name.
func DidYouMean(name string, known []string) string {
	slices.Sort(known)
	last := name[strings.LastIndexByte(name, '.')+1:]
	best, least := "", len(last)/2+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	for _, k := range known {
		if least > 1 && strings.HasSuffix(k, "."+last) {
			best, least = k, 1
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance returns the number of bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
