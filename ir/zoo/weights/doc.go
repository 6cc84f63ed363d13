// Package weights maps the parameters of planc's models to tensors in Hugging Face's files.
//
// A family is a list of rows, one for each tensor of its files: the tensor's name, its dims, and the parameters that it
// contains. [Locate] computes from the rows the offsets and strides for a model, which generated code passes to the
// runtime. Start reading at names.go.
//
// What this package does not do: it knows nothing of values. planc keeps every number as it is in the files.
package weights
