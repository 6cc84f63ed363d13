package kernels

import (
	"slices"

	"github.com/planc-dev/planc/runtime/cpu"
)

// Files returns the sources of the named kernels, and of the kernels that compute attention of the shapes,
// and its gradient, in a type (f64, f32, bf16, f16, as in [Attention]).
func Files(shapes []*cpu.AttentionShape, elem string, names ...string) (files []string) {
	names = slices.Clone(names)
	for _, s := range shapes {
		names = append(names, Attention(s, elem).Kernel)
		for _, step := range AttentionGrad(s, elem) {
			names = append(names, step.Kernel)
		}
	}
	for _, k := range Table {
		if slices.Contains(names, k.Name) && !slices.Contains(files, k.File) {
			files = append(files, k.File)
		}
	}
	return files
}
