// Package ckpt writes and reads training checkpoints: folders of safetensors files with a manifest.
//
//	DIR/step-00000042/model.safetensors      logical tensors, whole, by name
//	                  optimizer.safetensors
//	                  manifest.json          state, and size and SHA-256 of each file
//
// Save and Newest are the two ends. A checkpoint is written beside its place, synced, and renamed into it,
// so that a folder named step-N is complete or, after a power failure that broke the disk's promises,
// refused by its checksums. No pointer file says which one is the newest: Newest looks, verifies, and
// takes the newest that is whole. A crash at any instant therefore costs the checkpoint being written and
// no other. Nothing that may be whole is removed: a checkpoint that is replaced is set aside, and one that cannot be
// read is not passed over. Numbers are finite: WriteFloats writes no others, and Open accepts no others.
//
// Tensors are logical: nothing in a file depends on the plan that saved it. The runtime gathers slices
// when it saves, and reads the slices that it needs when it loads (File.Tensor gives random access).
// Writer, OpenFile and OpenWeights read and write safetensors alone, without manifests.
//
// An InputError says that a file's content is wrong; other errors are the world's.
package ckpt
