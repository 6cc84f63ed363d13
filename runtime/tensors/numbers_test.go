package tensors

import (
	"maps"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/program"
)

// A device's table of numbers is the checkpoints' map of a rank's elements to those of the whole.
func TestNumbersAreThoseOfTheWhole(t *testing.T) {
	programs := maps.Clone(splits)
	programs["three dims"] = split(2, 2, []string{"tp"}, nil, false)
	programs["three dims"].Params[0].Dims = []program.Dim{{Name: "a", Size: 5, Axes: []string{"dp"}},
		{Name: "b", Size: 3, Axes: nil}, {Name: "c", Size: 4, Axes: []string{"tp"}},
		{Name: "d", Size: 2, Axes: nil}}
	for name, p := range programs {
		for rank, s := range start(p).All {
			for _, part := range Of(p, s.Coord) {
				for _, from := range []int{0, part.Local / 3} {
					numbers := part.Numbers(from)
					part.Runs(from, part.Local, func(local, logical, n int) {
						for j := range n {
							if got, want := numberAt(numbers, local+j-from), part.Number+logical+j; got != want {
								t.Fatalf("%s, rank %d, %s: element %d has number %d, want %d", name, rank, part.Name,
									local+j, got, want)
							}
						}
					})
				}
			}
		}
	}
}

// numberAt is what the comment of Numbers says.
func numberAt(n *Numbers, i int) int {
	i += n.From
	out := n.First
	for _, d := range n.Digits {
		out += i % d.Width * d.Stride
		i /= d.Width
	}
	return out
}

// No two of the model's elements have one number, and the order of the table does not matter.
func TestNumbersOfParameters(t *testing.T) {
	p := splits["whole"]
	if got := numberParams(p.Params); !slices.Equal(got, []int{0, 70}) {
		t.Errorf("parameters begin at %v, want 0 and 70", got)
	}
	if got := numberParams([]program.Param{p.Params[1], p.Params[0]}); !slices.Equal(got, []int{70, 0}) {
		t.Errorf("in the other order they begin at %v, want 70 and 0", got)
	}
}
