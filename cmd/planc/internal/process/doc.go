// Package process controls planc as a process: it starts the binary that planc run built, ends planc by the signal that
// it received, and makes garbage collections rare.
package process
