// Package formats lists the formats of other trainers' files that planc reads and writes.
package formats

import (
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/interop/bridge"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/hf"
	"github.com/planc-dev/planc/interop/kubernetes"
	"github.com/planc-dev/planc/interop/lightning"
	"github.com/planc-dev/planc/interop/megatron"
	"github.com/planc-dev/planc/interop/mpirun"
	"github.com/planc-dev/planc/interop/slurm"
	"github.com/planc-dev/planc/interop/swift"
	"github.com/planc-dev/planc/interop/torchrun"
	"github.com/planc-dev/planc/interop/torchtitan"
	"github.com/planc-dev/planc/ir"
)

// All is the table of all formats, in the order in which help texts list them. If two formats recognize files equally
// surely, the first is taken.
var All = []*interop.Format{
	&megatron.Format,
	&accelerate.Format,
	&deepspeed.Format,
	&hf.Format,
	&torchtitan.Format,
	&torchtitan.Function,
	&lightning.Format,
	&bridge.Format,
	&swift.Format,
	&slurm.Format,
	&kubernetes.Job,
	&kubernetes.JobSet,
	&kubernetes.TrainJob,
	&mpirun.Format,
	&torchrun.Format,
}

// Find returns a format by its name; nil if there is none.
func Find(name string) *interop.Format { return find(All, name) }

func find(all []*interop.Format, name string) *interop.Format {
	i := slices.IndexFunc(all, func(f *interop.Format) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// Nearest returns the name of the format that a misspelt name probably means; "" if there is none.
func Nearest(name string) string {
	name = strings.ToLower(name)
	if alias := aliases[name]; alias != "" {
		return alias
	}
	names := Names(All)
	if near := ir.Nearest(name, names); near != "" {
		return near
	}
	i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(name, n) })
	if i < 0 {
		return ""
	}
	return names[i]
}

// aliases are other names of trainers and launchers, in lower case.
var aliases = map[string]string{"k8s": kubernetes.Job.Name, "sbatch": slurm.Format.Name, "mpi": mpirun.Format.Name,
	"transformers": hf.Format.Name, "huggingface": hf.Format.Name, "megatron-bridge": bridge.Format.Name,
	"ms-swift": swift.Format.Name}

// Names returns the names of formats.
func Names(all []*interop.Format) (names []string) {
	for _, f := range all {
		names = append(names, f.Name)
	}
	return names
}

// Imported returns the formats that can be read.
func Imported() []*interop.Format {
	return slices.DeleteFunc(slices.Clone(All), func(f *interop.Format) bool { return f.Import == nil })
}

// Written returns the formats that can be written.
func Written() []*interop.Format {
	return slices.DeleteFunc(slices.Clone(All), func(f *interop.Format) bool { return f.Write == nil })
}

// Recognize returns the format of some files and how sure that is; nil and interop.No if no format is recognized. A
// format is as sure as its surest file is.
func Recognize(files []interop.File) (*interop.Format, interop.Confidence) {
	return recognize(All, files)
}

func recognize(all []*interop.Format, files []interop.File) (best *interop.Format, surest interop.Confidence) {
	for _, f := range all {
		if f.Recognize == nil || f.Import == nil {
			continue
		}
		for _, file := range files {
			if c := f.Recognize(file); c > surest {
				best, surest = f, c
			}
		}
	}
	return above(all, files, best, surest)
}

// above returns the format of a file that can name the best recognized one as its part, if such a file is given, and
// how sure that is; else the best.
func above(all []*interop.Format, files []interop.File, best *interop.Format, surest interop.Confidence) (
	*interop.Format, interop.Confidence) {
	for _, f := range all {
		if best == nil || !slices.Contains(f.Parts, best.Name) {
			continue
		}
		for _, file := range files {
			if c := f.Recognize(file); c > best.Recognize(file) {
				return f, c
			}
		}
	}
	return best, surest
}
