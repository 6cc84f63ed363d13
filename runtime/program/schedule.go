package program

import (
	"fmt"
	"strconv"
	"strings"
)

// ActionKind is what a stage does in one step of its schedule.
type ActionKind byte

const (
	// forward pass of a chunk's next micro-batch: receive its input, run its blocks, send its output
	Forward  ActionKind = 'F'
	Backward ActionKind = 'B' // backward pass, in the same way with gradients, from the last block to the first
	// second part of a split backward pass: the remaining gradients of the chunk's parameters
	WeightGrad ActionKind = 'W'
	Finish     ActionKind = 'U' // the optimizer update
)

// Action is one step of a schedule. The micro-batches of a chunk pass through it in order, so an action does not name
// its micro-batch.
type Action struct {
	Kind  ActionKind
	Chunk int // index among the stage's chunks
}

// String returns the action as a schedule prints it: F0 is chunk 0's next forward pass.
func (a Action) String() string {
	if a.Kind == Finish {
		return "U"
	}
	return fmt.Sprintf("%c%d", a.Kind, a.Chunk)
}

// ScheduleText prints a schedule in one line. Repetitions are printed once: F0*3 (F0 B0)*5 B0*3 U.
func ScheduleText(actions []Action) string {
	var words []string
	for i := 0; i < len(actions); {
		j := i
		for j < len(actions) && actions[j] == actions[i] {
			j++
		}
		words = append(words, times(actions[i].String(), j-i))
		i = j
	}
	return strings.Join(fold(words), " ")
}

func times(s string, n int) string {
	if n == 1 {
		return s
	}
	return s + "*" + strconv.Itoa(n)
}

// longestPeriod is the longest pattern that fold looks for: a turn of an interleaved schedule of 64 stages.
const longestPeriod = 256

// fold writes runs of words that repeat as (words)*n.
func fold(words []string) []string {
	var out []string
	for i := 0; i < len(words); {
		period, n := repeated(words[i:])
		if n < 2 {
			out = append(out, words[i])
			i++
			continue
		}
		out = append(out, times("("+strings.Join(words[i:i+period], " ")+")", n))
		i += period * n
	}
	return out
}

// repeated returns the period whose repetitions cover most of the start of words, the shortest of equal ones.
func repeated(words []string) (period, n int) {
	for p := 2; p <= min(longestPeriod, len(words)/2); p++ {
		k := 1
		for (k+1)*p <= len(words) && same(words[:p], words[k*p:(k+1)*p]) {
			k++
		}
		if k > 1 && k*p > period*n {
			period, n = p, k
		}
	}
	return period, n
}

func same(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// ParseSchedule reads the text that ScheduleText prints.
func ParseSchedule(s string) ([]Action, error) {
	var out, group []Action
	in := false
	for _, w := range strings.Fields(s) {
		if rest, ok := strings.CutPrefix(w, "("); ok && !in {
			in, w, group = true, rest, nil
		}
		body, last := w, 1
		closes := in && strings.Contains(w, ")")
		if closes {
			var after string
			body, after, _ = strings.Cut(w, ")")
			n, err := strconv.Atoi(strings.TrimPrefix(after, "*"))
			if err != nil || n < 2 || n > maxRepeat {
				return nil, fmt.Errorf("schedule: %q is not a repeated group", w)
			}
			last = n
		}
		as, err := parseActions(body)
		if err != nil {
			return nil, err
		}
		if !in {
			out = append(out, as...)
			continue
		}
		group = append(group, as...)
		if closes {
			for range last {
				out = append(out, group...)
			}
			in = false
		}
		if len(out) > maxRepeat {
			return nil, fmt.Errorf("schedule: more than %d actions", maxRepeat)
		}
	}
	if in {
		return nil, fmt.Errorf("schedule: a group is not closed")
	}
	return out, nil
}

// maxRepeat keeps an invalid text from filling the memory.
const maxRepeat = 1 << 22

// parseActions reads an action with repetitions, such as F0*3.
func parseActions(w string) ([]Action, error) {
	name, count, repeats := strings.Cut(w, "*")
	n := 1
	if repeats {
		var err error
		n, err = strconv.Atoi(count)
		if err != nil || n < 2 || n > maxRepeat {
			return nil, fmt.Errorf("schedule: %q has an invalid number of repetitions", w)
		}
	}
	var a Action
	switch {
	case name == "U":
		a.Kind = Finish
	case len(name) > 1 && strings.Contains("FBW", name[:1]):
		c, err := strconv.Atoi(name[1:])
		if err != nil || c < 0 || strconv.Itoa(c) != name[1:] {
			return nil, fmt.Errorf("schedule: %q has no valid chunk", w)
		}
		a = Action{ActionKind(name[0]), c}
	default:
		return nil, fmt.Errorf("schedule: unknown action %q", w)
	}
	out := make([]Action, n)
	for i := range out {
		out[i] = a
	}
	return out, nil
}
