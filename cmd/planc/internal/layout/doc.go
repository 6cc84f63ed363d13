// Package layout arranges text in the 80 columns of a screen. [Flow] and [Prose] wrap words after a label, [Table]
// aligns columns, [Fold] wraps messages, and [Colour] marks verdicts for terminals. Widths count the columns that a
// terminal shows, not bytes.
package layout
