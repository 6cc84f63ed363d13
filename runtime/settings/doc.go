// Package settings changes the settings of a training program: it parses values as the flag --set takes them, checks
// them, and compares them with those of a checkpoint. The table of all settings is in package program.
package settings
