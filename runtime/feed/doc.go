// Package feed reads the batches of a training run: samples of the job's files or of the caller's source, ahead of the
// step that needs them.
package feed
