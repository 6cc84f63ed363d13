// Package ckpttools lists, shows, verifies, compares, exports and removes checkpoints, for planc checkpoint.
package ckpttools
