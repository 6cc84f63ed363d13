// Package shell evaluates the part of bash that training scripts consist of, and runs nothing.
//
// Eval reads a script and returns the commands that it would run, with every word resolved: assignments, arrays,
// ${X:-default}, $((arithmetic)), quotes, continuation lines, if, case and functions. Each piece of a word knows where
// its text stands in the script, so that Edit can change an argument in place even if it comes from a variable.
//
// What the package cannot know (the environment, the output of commands, the iterations of loops) becomes an Unknown
// piece, with the reason and with what the user can type to define it. A condition that depends on something unknown
// makes only the variables unknown that its branches assign.
//
// Start reading at script.go (the result), parse.go (the syntax) and eval.go (what it means).
package shell
