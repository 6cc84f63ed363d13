// Package program is the contract between planc's compiler and the runtime: the tables of a compiled training program,
// as pure data. The compiler fills them in, generated code holds them as literals, and the runtime executes them. The
// package imports the standard library only.
package program
