// Package ckpttools lists, shows, verifies, compares and removes checkpoints, for planc checkpoint.
package ckpttools
