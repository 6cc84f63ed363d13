// Package fold keeps text for people within the columns of a terminal. Lines breaks lines between words, and Width is
// how many columns a text takes. Training binaries and planc itself print by it.
//
// It neither cuts words nor knows how wide the terminal is: [Columns] is what every screen of planc is made for.
package fold
