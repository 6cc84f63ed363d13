// Package fold wraps text to the columns of a terminal. [Lines] breaks lines between words, and [Width] returns how
// many columns a text takes. Training binaries and planc itself print with it.
//
// It does not cut words, and it does not ask for the terminal's width: all screens of planc have [Columns] columns.
package fold
