package strict

import "github.com/planc-dev/planc/ir"

// Codes of the input errors that any file can have.
const (
	// Syntax is reported if the text is not YAML, or uses a part of YAML that planc does not read.
	//
	// Example:
	//	train: [1
	Syntax ir.Code = "Syntax"

	// Empty is reported for a file without a value.
	//
	// Example:
	//	# nothing
	Empty ir.Code = "Empty"

	// ManyDocuments is reported for a file that holds more than one document.
	//
	// Example:
	//	name: a
	//	---
	//	name: b
	ManyDocuments ir.Code = "ManyDocuments"

	// TooLarge is reported if a file is too large, as it is or with its aliases expanded.
	//
	// Example:
	//	name: &a [*a]
	TooLarge ir.Code = "TooLarge"

	// UnknownKey is reported for a key that a mapping does not have.
	//
	// Example:
	//	trian: {steps: 3}
	UnknownKey ir.Code = "UnknownKey"

	// DuplicateKey is reported at the second of two equal keys.
	//
	// Example:
	//	name: a
	//	name: b
	DuplicateKey ir.Code = "DuplicateKey"

	// WrongType is reported if a value does not have the field's type.
	//
	// Example:
	//	train: {steps: many}
	WrongType ir.Code = "WrongType"

	// BadName is reported for a name with control or invisible characters, and for a job's name that cannot be the name
	// of a folder.
	//
	// Example:
	//	name: runs/gpt2
	BadName ir.Code = "BadName"

	// LeadingZero is reported for a number that starts with 0: YAML 1.1 reads 010 as eight.
	//
	// Example:
	//	train: {steps: 010}
	LeadingZero ir.Code = "LeadingZero"

	// UnknownValue is reported for a text that is not one of the field's allowed values.
	//
	// Example:
	//	train: {optimizer: {kind: adamv}}
	UnknownValue ir.Code = "UnknownValue"

	// OutOfRange is reported for a number outside the field's range.
	//
	// Example:
	//	train: {seq_len: 0}
	OutOfRange ir.Code = "OutOfRange"

	// NotYet is reported for settings that the formats describe and planc does not support yet.
	//
	// Example:
	//	train: {on_nonfinite: rollback}
	NotYet ir.Code = "NotYet"

	// BadSet is reported for a --set argument that is not KEY=VALUE with a scalar or a list.
	//
	// Example:
	//	--set train.steps
	BadSet ir.Code = "BadSet"
)
