package tensors

import (
	"slices"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/program"
)

// Contents returns the files of a checkpoint. Their tensors are gathered from the arenas when they are written.
func (s *Stores) Contents() []ckpt.Content {
	if s.program().Elem == program.F64 {
		return contentsOf[float64](s)
	}
	return contentsOf[float32](s)
}

// LoadFolder reads parameters from the safetensors files of a folder, in planc's layout or Hugging Face's.
func (s *Stores) LoadFolder(folder string) error {
	if s.program().Elem == program.F64 {
		return loadFolder[float64](s, folder)
	}
	return loadFolder[float32](s, folder)
}

// Published returns the model as a file in Hugging Face's layout. Each tensor is gathered from the arenas when it is
// written.
func (s *Stores) Published() ckpt.Content {
	if s.program().Elem == program.F64 {
		return published[float64](s)
	}
	return published[float32](s)
}

// Initialize fills the parameters with random numbers that depend on (seed, name, layer, index in the logical tensor)
// only: they are the same on any plan and with any number of threads. Padding stays zero.
func (s *Store) Initialize(seed uint64) {
	if s.Data.Elem == program.F64 {
		initParams[float64](s, seed)
	} else {
		initParams[float32](s, seed)
	}
}

// Nonfinite returns the first element that is not finite in the tensors for a checkpoint that this rank saves; nil if
// there is none.
func (s *Store) Nonfinite() *ckpt.NonfiniteError {
	kinds := slices.Concat(weightKinds(s.Data), momentKinds(s.Data))
	if s.Data.Elem == program.F64 {
		return nonfinite[float64](s, kinds)
	}
	return nonfinite[float32](s, kinds)
}
