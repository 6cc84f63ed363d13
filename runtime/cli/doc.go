// Package cli is the command line of training binaries: flags, help, the summary and the exit status.
package cli
