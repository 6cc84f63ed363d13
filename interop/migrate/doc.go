// Package migrate answers questions about the files of other trainers: it connects the formats of package interop with
// the planner.
//
// [Read] recognizes files and imports them. [Source.Question] is the job that they describe, [NewReport] is the whole
// answer of `planc check`, with the edits of the user's file, and [Export] writes a plan for another trainer.
//
// The package does no I/O and formats no screens. Input errors are ir.Diags with a position in the user's file.
package migrate
