// Package checkscreen formats the screens of planc check: the plan of another trainer's file against the best one, the
// edits of the file, and the table of its keys.
package checkscreen
