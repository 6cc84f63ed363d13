// Package screen formats the planner's documents for people, in 80 columns. Each screen is one function that takes a
// document and returns its text: [Plan], [Explain], [WhyNot], [Sweep], [NoFit] and so on. docs/reading.md explains what
// the lines of the screens mean. The package does no I/O and decides nothing; package layout wraps text and aligns
// columns.
package screen
