package interop

import (
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Use is what import does with a key of a file.
type Use string

// All uses of keys.
const (
	// Taken keys are part of the job.
	Taken Use = "taken"
	// Planned keys leave a choice to the planner: "auto", or keys that are not set.
	Planned Use = "decided by the planner"
	// NoEffect keys do not change which plan is best: logging, paths, seeds.
	NoEffect Use = "no effect on the plan"
	// IgnoredByTool keys are accepted and not read by the trainer itself: a misspelt top-level key of DeepSpeed.
	IgnoredByTool Use = "ignored by that tool"
	// Unsupported keys change the training or its cost in a way that planc does not price. Note says what they would
	// change.
	Unsupported Use = "not supported by planc"
)

// Uses lists all uses in the order in which tables show them.
var Uses = []Use{Taken, Planned, NoEffect, IgnoredByTool, Unsupported}

// Parts of the state that trainers move off the device, in the words of notes.
const (
	OptimizerState   = "the optimizer state"
	OptimizerAlone   = "the optimizer state without the gradients"
	Parameters       = "the parameters"
	AllState         = "the parameters and the optimizer state"
	SavedActivations = "saved activations"
)

// offloads begins the note of a key that moves state off the device.
const offloads = "offload: keeps "

// OffloadNote is the note of a key that moves state off the device, which planc does not price. device is cpu or nvme.
func OffloadNote(what, device string) string {
	if device == "nvme" {
		return offloads + what + " in NVMe"
	}
	return offloads + what + " in the host's memory"
}

// Offloads reports whether a key moves state off the device, which planc does not price.
func (k *Key) Offloads() bool { return k.Use == Unsupported && strings.HasPrefix(k.Note, offloads) }

// OffloadFractionNote is the note of a key whose value is the fraction of the optimizer state that leaves the device.
const OffloadFractionNote = "offload: how much of the optimizer state it moves to the host, a fraction"

// OffloadedFraction returns the fraction of the optimizer state that moves off the device, if a key says it.
func (k *Key) OffloadedFraction() (fraction float64, ok bool) {
	if k.Use != Unsupported || k.Note != OffloadFractionNote {
		return 1, false
	}
	fraction, err := strconv.ParseFloat(k.Value, 64)
	return max(0, min(1, fraction)), err == nil
}

// OffloadedParts returns the parts of a device's memory that a key moves off the device, at most: those that
// costmodel.MemoryParts names. An offloaded optimizer takes the gradients with it, except for Megatron-LM's, which
// reduces them in a buffer on the device.
// Source: megatron-core 0.19.2, distributed/param_and_grad_buffer.py: grad_data;
// optimizer/cpu_offloading/hybrid_optimizer.py: HybridDeviceOptimizer.
func (k *Key) OffloadedParts() (parts []string) {
	if !k.Offloads() {
		return nil
	}
	for _, state := range []struct {
		words string
		parts []string
	}{{Parameters, []string{"params"}}, {OptimizerState, []string{"grads", "optimizer"}},
		{SavedActivations, []string{"activations"}}} {
		if strings.Contains(k.Note, state.words) {
			parts = append(parts, state.parts...)
		}
	}
	if strings.Contains(k.Note, OptimizerAlone) {
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == "grads" })
	}
	return parts
}

// AdaptersNote is the note of a key that says that only adapters, such as LoRA's, are trained.
const AdaptersNote = "trains adapters; planc prices full training, with gradients and optimizer state of all parameters"

// QuantizedNote is the note of a key that says that adapters of a quantized model are trained.
const QuantizedNote = AdaptersNote + ", which are not quantized"

// TrainsAdapters reports whether a key says that only adapters are trained, which planc does not price.
func (k *Key) TrainsAdapters() bool {
	return k.Use == Unsupported && strings.HasPrefix(k.Note, AdaptersNote)
}

// PreferenceNote is the note of a key that says that the training is of preferences or by reinforcement learning.
const PreferenceNote = "trains by preference or reinforcement learning; planc prices one model and one pass over " +
	"each sequence"

// TrainsByPreference reports whether a key says that the training has further models and passes, which planc does not
// price.
func (k *Key) TrainsByPreference() bool {
	return k.Use == Unsupported && k.Note == PreferenceNote
}

// UnneededParts returns the parts of a device's memory that training of adapters may not need, at most. Gradients,
// optimizer state and saved activations are those of the adapters. The model's parameters stay, unless they are
// quantized.
func (k *Key) UnneededParts() []string {
	switch {
	case !k.TrainsAdapters():
		return nil
	case k.Note == QuantizedNote:
		return []string{"grads", "optimizer", "activations", "workspace", "comm", "params"}
	}
	return []string{"grads", "optimizer", "activations", "workspace", "comm"}
}

// ZeroPlusPlus begins the note of a key of ZeRO++, which changes what is sent and stored. planc does not price it.
const ZeroPlusPlus = "ZeRO++: "

// IsZeroPlusPlus reports whether a key says something of ZeRO++.
func (k *Key) IsZeroPlusPlus() bool {
	return k.Use == Unsupported && strings.HasPrefix(k.Note, ZeroPlusPlus)
}

// pricedAsAdamW ends the note of an optimizer that planc does not have.
const pricedAsAdamW = " is priced as AdamW: its own state and update need other memory and time"

// OtherOptimizerNote is the note of a key that names an optimizer that planc does not have.
func OtherOptimizerNote(kind string) string { return kind + pricedAsAdamW }

// NamesOtherOptimizer reports whether a key names an optimizer that planc does not have.
func (k *Key) NamesOtherOptimizer() bool {
	return k.Use == Unsupported && strings.HasSuffix(k.Note, pricedAsAdamW)
}

// Key is a key of a file, or of its environment, and what import did with it.
type Key struct {
	Pos   ir.Pos `json:"-"`
	Name  string `json:"key"`
	Value string `json:"value"`
	Use   Use    `json:"use"`
	// As lists the fields of the job that a taken key sets, with their values: "plan.tp: 4".
	As []string `json:"as,omitempty"`
	// Note says what an unsupported key would change, or why a key is ignored; "" otherwise.
	Note string `json:"note,omitempty"`
}

// Field is a field of the job, as a file's key or a tool's default sets it.
type Field struct {
	Path  string // dotted: "plan.tp"
	Value string // as YAML in one line: "4", "[16, 16]"
	Pos   ir.Pos // of the key; the zero value for a default
	From  string // the key, or what the default follows from: "default of --micro-batch-size"
	// OfModel says that the value follows from the number of blocks of the file's model. Another model has its own.
	OfModel bool
}
