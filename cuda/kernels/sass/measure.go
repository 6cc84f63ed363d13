package sass

import "slices"

// Counts are a kernel's numbers.
type Counts struct {
	Kernel string
	// Narrow is the number of 2-byte stores in inner loops that also access 16 bytes at a time: packs that are
	// written element by element.
	Narrow int
	Local  int // loads and stores of spilled registers
	// Loop is the number of instructions of inner loops, per Unit, rounded up.
	Loop int
	Unit string // "16 bytes", "HMMA" or "iteration"
}

// loop is a range of instructions that ends with a branch to its first one.
type loop struct{ first, last int }

// loops returns a function's loops. Branches to the same instruction make one loop.
func (f *Function) loops() (all []loop) {
	index := map[int]int{}
	for i := range f.Code {
		index[f.Code[i].Address] = i
	}
	last := map[int]int{} // of the loops that start at an instruction
	for i := range f.Code {
		first, found := index[f.Code[i].Target]
		if found && first < i {
			last[first] = i
		}
	}
	for first, end := range last {
		all = append(all, loop{first, end})
	}
	return all
}

// inner returns the loops with instructions of a kind that contain no other such loop.
func (f *Function) inner(is func(*Instruction) bool) (all []loop) {
	loops := slices.DeleteFunc(f.loops(), func(l loop) bool { return count(f.Code[l.first:l.last+1], is) == 0 })
	for _, l := range loops {
		inside := func(o loop) bool { return o != l && o.first >= l.first && o.last <= l.last }
		if !slices.ContainsFunc(loops, inside) {
			all = append(all, l)
		}
	}
	return all
}

// Measure counts what a function contains. Loop is measured over the inner loops with tensor core instructions. If
// there are none, it is measured over those with accesses of 16 bytes, else over the longest.
func Measure(f *Function) Counts {
	c := Counts{Kernel: f.Name, Local: count(f.Code, (*Instruction).isLocal)}
	wide := f.share((*Instruction).isWide)
	for _, l := range f.inner((*Instruction).isWide) {
		c.Narrow += count(f.Code[l.first:l.last+1], (*Instruction).isNarrow)
	}
	matmul := f.share((*Instruction).isMatMul)
	switch {
	case matmul.units > 0:
		c.Loop, c.Unit = matmul.perUnit(), "HMMA"
	case wide.units > 0:
		c.Loop, c.Unit = wide.perUnit(), "16 bytes"
	default:
		c.Loop, c.Unit = f.longest(), "iteration"
	}
	return c
}

// longest returns the length of the longest loop that contains no other loop.
func (f *Function) longest() (n int) {
	for _, l := range f.inner(func(*Instruction) bool { return true }) {
		n = max(n, l.last+1-l.first)
	}
	return n
}

// share is a number of instructions and the number of units that they process.
type share struct{ instructions, units int }

// share counts the instructions of inner loops, and their units, which are instructions of a kind.
func (f *Function) share(is func(*Instruction) bool) (s share) {
	for _, l := range f.inner(is) {
		s.instructions += l.last + 1 - l.first
		s.units += count(f.Code[l.first:l.last+1], is)
	}
	return s
}

func (s *share) perUnit() int { return (s.instructions + s.units - 1) / s.units }

func count(body []Instruction, is func(*Instruction) bool) (n int) {
	for i := range body {
		if is(&body[i]) {
			n++
		}
	}
	return n
}
