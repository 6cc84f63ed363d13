package strict

import "github.com/planc-dev/planc/ir"

// The kinds of mistake that a file can hold whatever it is about.
const (
	// Syntax is reported where the text is not YAML, or uses a part of YAML that is not read.
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

	// TooLarge is reported where a file, or what its aliases stand for, is beyond any sensible size.
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

	// WrongType is reported where a value is not of the field's type.
	//
	// Example:
	//	train: {steps: many}
	WrongType ir.Code = "WrongType"

	// BadName is reported for a name with control or invisible characters, and for a job's name that cannot be a
	// folder's.
	//
	// Example:
	//	name: runs/gpt2
	BadName ir.Code = "BadName"

	// LeadingZero is reported for a number that starts with 0: YAML 1.1 reads 010 as eight.
	//
	// Example:
	//	train: {steps: 010}
	LeadingZero ir.Code = "LeadingZero"

	// UnknownValue is reported for a text that is not one of those that the field allows.
	//
	// Example:
	//	train: {optimizer: {kind: adamv}}
	UnknownValue ir.Code = "UnknownValue"

	// OutOfRange is reported for a number that the field cannot be.
	//
	// Example:
	//	train: {seq_len: 0}
	OutOfRange ir.Code = "OutOfRange"

	// NotYet is reported for what the formats describe and planc does not do yet.
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
