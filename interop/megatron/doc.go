// Package megatron reads and writes the arguments of Megatron-LM: a bash script that starts it, a command line alone,
// or the list of arguments that it prints to its log.
//
// options.tsv has every option of its parser. read.go turns a file into settings, plan.go, model.go and recipe.go turn
// settings into fields of a job, values.go and write.go turn a plan into arguments, and document.go edits a script.
package megatron
