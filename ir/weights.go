package ir

import "github.com/planc-dev/planc/runtime/program"

// Weights, Published and Share describe where a model's parameters are in the files that other tools exchange:
// safetensors with Hugging Face's names and layouts. Generated code contains them as a table, so that the runtime needs
// to know no family.
type (
	Weights   = program.Weights
	Published = program.Published
	Share     = program.Share
)
