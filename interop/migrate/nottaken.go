package migrate

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/interop"
)

// mostNamed is the number of keys without effect on the plan that a note names.
const mostNamed = 8

// mostNotes is the number of keys that have a note of their own.
const mostNotes = 100

// NotTaken returns notes about the keys that are not in the imported job: one for each that would change the training,
// and one for all that do not decide the plan.
func (s *Source) NotTaken() (notes []string) {
	more := 0
	var others []string
	for i := range s.Keys {
		k := &s.Keys[i]
		name := strings.TrimSpace(k.Name + " " + k.Value)
		at := interop.Note{Pos: k.Pos}
		switch k.Use {
		case interop.Unsupported:
			at.Text = name + " is not in the job: " + k.Note
		case interop.IgnoredByTool:
			at.Text = fmt.Sprintf("%s is not in the job: %s ignores it", name, s.Format.Tool)
			if k.Note != "" {
				at.Text += ": " + k.Note
			}
		case interop.NoEffect:
			if k.Note == "" || k.Note == "the default" {
				others = append(others, k.Name)
			} else {
				others = append(others, k.Name+" ("+k.Note+")")
			}
			continue
		case interop.Taken, interop.Planned:
			if k.Note != "" && k.Pos.Line > 0 {
				at.Text = name + ": " + k.Note
			}
		}
		switch {
		case at.Text == "":
		case len(notes) == mostNotes:
			more++
		default:
			notes = append(notes, at.String())
		}
	}
	if more > 0 {
		notes = append(notes, fmt.Sprintf("%d more keys have notes (planc check %s --keys lists them)", more, s.Main()))
	}
	if len(others) == 0 {
		return notes
	}
	text := strings.Join(others[:min(len(others), mostNamed)], ", ")
	if n := len(others) - mostNamed; n > 0 {
		text += fmt.Sprintf(" and %d more (planc check %s --keys lists them)", n, s.Main())
	}
	return append(notes, "these keys do not change which plan is best, and are not in the job: "+text)
}
