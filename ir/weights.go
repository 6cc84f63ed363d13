package ir

import "github.com/planc-dev/planc/runtime/program"

// Weights, Published and Share say where a model's parameters lie in the files that other tools exchange: safetensors with
// Hugging Face's names and layouts. Generated code carries them as a table, so that the runtime needs to know no family.
type (
	Weights   = program.Weights
	Published = program.Published
	Share     = program.Share
)
