package megatron

import (
	"bytes"
	"slices"

	"github.com/planc-dev/planc/interop"
)

// Format is Megatron-LM's arguments.
var Format = interop.Format{
	Name:      "megatron",
	Title:     "a script of Megatron-LM",
	Tool:      "Megatron-LM",
	Engine:    "megatron",
	Engines:   []string{"megatron-fsdp"},
	Recognize: Recognize,
	Import:    Import,
	Values:    Values,
	Refusals:  refusals,
	Write:     Write,
	Ext:       ".sh",

	HasVariables: true,
}

// certain are options that no other trainer has.
var certain = []string{"--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--use-distributed-optimizer",
	"--micro-batch-size", "--num-attention-heads", "--transformer-impl"}

// Recognize returns how surely a file has arguments of Megatron-LM.
func Recognize(f interop.File) interop.Confidence {
	if isDump(f.Data) || isYAML(f) {
		return interop.Certain
	}
	n := 0
	for _, option := range certain {
		if hasOption(f.Data, option) {
			n++
		}
	}
	switch {
	case n >= 2:
		return interop.Certain
	case n == 1:
		return interop.Likely
	case bytes.Contains(f.Data, []byte("pretrain_gpt.py")):
		return interop.Possible
	}
	return interop.No
}

// hasOption reports whether a text has an option, and not a longer one that begins with it.
func hasOption(data []byte, option string) bool {
	at := bytes.Index(data, []byte(option))
	if at < 0 {
		return false
	}
	end := at + len(option)
	return end >= len(data) || !slices.Contains([]byte("-_abcdefghijklmnopqrstuvwxyz"), data[end])
}
