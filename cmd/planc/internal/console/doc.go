// Package console does planc's input and output: it reads files and standard input, prints results, notes and
// documents, and shows the progress of long work. All output goes through a [Stream], which escapes control characters.
package console
