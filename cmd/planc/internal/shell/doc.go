// Package shell quotes words and paths, so that people can copy commands from messages.
package shell
