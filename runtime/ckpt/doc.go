// Package ckpt writes and reads training checkpoints: folders of safetensors files with a manifest.
//
//	DIR/step-00000042/model.safetensors      logical tensors, whole, by name
//	                  optimizer.safetensors
//	                  manifest.json          state, and size and SHA-256 of each file
//
// [Save] writes a checkpoint and [Newest] finds one. Save writes to a temporary folder in the same directory, syncs it,
// and renames it. A folder named step-N is therefore complete. If a power failure breaks the disk's guarantees, the
// checksums detect it. No file points to the newest checkpoint: Newest verifies the checkpoints and returns the newest
// complete one. A crash at any time costs at most the checkpoint that is being written.
//
// Nothing that may be complete is removed: a checkpoint that is replaced is set aside, and one that cannot be read is
// not skipped. All numbers are finite: WriteFloats writes no others, and Open accepts no others.
//
// Tensors are logical: a file does not depend on the plan that saved it. The runtime gathers slices when it saves, and
// reads only the slices that it needs when it loads (File.Tensor gives random access). [Writer], [OpenFile] and
// [OpenWeights] write and read safetensors without a manifest.
//
// An [InputError] reports wrong content of a file; other errors are failures of the environment.
package ckpt
