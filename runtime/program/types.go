package program

import "fmt"

// Elem is the element type of a program's tensors.
type Elem uint8

const (
	F32 Elem = iota
	F64
	BF16
	F16
)

// Size returns the size of one element in bytes.
func (e Elem) Size() int { return [...]int{F32: 4, F64: 8, BF16: 2, F16: 2}[e] }

func (e Elem) String() string {
	return [...]string{F32: "f32", F64: "f64", BF16: "bf16", F16: "fp16"}[e]
}

// Types says in which type each kind of state is kept. The zero value is a program all of whose tensors are of its
// Elem; in another program Elem is what kernels compute in, and statistics are of.
type Types struct {
	Compute Elem // activations and their gradients
	Params  Elem
	Grads   Elem // accumulators
	Reduce  Elem // gradients between ranks; no wider than Grads
	Master  Elem // the optimizer's copy of the parameters; none where it equals Params
	Moments Elem
}

// String is the types' names, the parameters' before those of gradients, master copy and moments.
func (t Types) String() string {
	return fmt.Sprintf("%v (parameters %v, gradients %v, master %v, moments %v)", t.Compute, t.Params, t.Grads,
		t.Master, t.Moments)
}

// OptimizerKind is the optimizer's algorithm, which is compiled in. Its hyperparameters are settings.
type OptimizerKind uint8

const (
	AdamW OptimizerKind = iota // decoupled weight decay
	Adam                       // weight decay added to the gradient
	SGD                        // with momentum if the settings have one; weight decay added to the gradient
)

func (k OptimizerKind) String() string { return [...]string{"adamw", "adam", "sgd"}[k] }
