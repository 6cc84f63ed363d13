package spec

import "github.com/planc-dev/planc/ir"

// Codes of the input errors in a job file in addition to those of package strict.
const (
	// Missing is reported for a required field that is absent.
	//
	// Example:
	//	model: gpt2-124m
	Missing ir.Code = "Missing"

	// Conflict is reported for two fields that exclude each other.
	//
	// Example:
	//	train: {global_batch: 8, global_batch_tokens: 8K}
	Conflict ir.Code = "Conflict"

	// NoFile is reported for a file that cannot be read.
	//
	// Example:
	//	model: no/such/config.json
	NoFile ir.Code = "NoFile"

	// UnknownModel is reported for a name that is not in the catalogue.
	//
	// Example:
	//	model: gpt2-125m
	UnknownModel ir.Code = "UnknownModel"

	// BadModel is reported for sizes of a model that do not fit each other.
	//
	// Example:
	//	model: {model_type: gpt2, n_embd: 64, n_head: 5}
	BadModel ir.Code = "BadModel"

	// BadBatch is reported for a batch size or sequence length that the model or the job does not allow.
	//
	// Example:
	//	model: gpt2-124m
	//	train: {seq_len: 2048, global_batch: 8}
	BadBatch ir.Code = "BadBatch"
)
