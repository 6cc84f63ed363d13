// Package runtime is the library that generated training programs link; they import it as rt.
//
// [Run] executes a [Program] in this process and returns; [Main] is Run as a command. Generated code fills in one
// Program. Its functions receive a [Rank] and call the collectives in collectives.go, and the functions in widen.go,
// globalindices.go and expertcounts.go. Package program holds the tables of a program, rank executes it on one rank,
// driver trains with all ranks, tensors maps the model's tensors to the ranks, and cli is the command line.
//
// The package knows nothing of the compiler and imports only the standard library. Other devices than this CPU come
// through [Devices]. Start reading at Program, then package driver.
package runtime
