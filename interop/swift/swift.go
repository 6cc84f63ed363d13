// Package swift reads and writes the command lines of ms-swift's Megatron trainer: `megatron sft` and `megatron pt`.
// Its options are Megatron-LM's with underscores, and flags take true or false.
package swift

import (
	"bytes"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/megatron"
)

// Format is ms-swift's Megatron trainer.
var Format = interop.Format{
	Name:      "swift",
	Title:     "a script of ms-swift's Megatron trainer",
	Tool:      "ms-swift",
	Engine:    "megatron",
	Recognize: Recognize,
	Import:    megatron.ImportSwift,
	Values:    megatron.SwiftValues,
	Refusals:  megatron.Refusals,
	Write:     megatron.WriteSwift,
	Ext:       ".sh",

	HasVariables: true,
}

// Recognize returns how surely a file starts ms-swift's Megatron trainer.
func Recognize(f interop.File) interop.Confidence {
	for _, command := range []string{"megatron sft", "megatron pt", "megatron rlhf"} {
		if bytes.Contains(f.Data, []byte(command)) {
			return interop.Certain
		}
	}
	if bytes.Contains(f.Data, []byte("--tensor_model_parallel_size")) {
		return interop.Likely
	}
	return interop.No
}
