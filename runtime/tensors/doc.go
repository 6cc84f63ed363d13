// Package tensors maps the logical tensors of a model to the ranks' arenas: which elements each rank holds, their
// numbers in the whole model, their initial values, and how they are saved, loaded and published in Hugging Face's
// layout.
//
// A Store is one rank's arena, and Stores are those of all ranks. Of gives a rank's parts of all parameters. A Kind is
// a set of tensors that are saved: the parameters or a moment of the optimizer.
package tensors
