package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// onceValue is a flag's value that may be set once, or again to the same.
type onceValue struct {
	pflag.Value
	first string
	isSet bool
}

// repeatedFlagError is the error of a flag of one value that is given with two.
type repeatedFlagError struct{ first, second string }

func (e *repeatedFlagError) Error() string {
	return "it is given twice, as " + e.first + " and as " + e.second
}

// Set sets the value unless the command line has set another one before, which would be dropped without a word.
func (v *onceValue) Set(text string) error {
	if v.isSet && text != v.first {
		return &repeatedFlagError{v.first, text}
	}
	v.first, v.isSet = text, true
	return v.Value.Set(text)
}

// onceEach makes the flags of one value refuse a second one. Switches and lists may be repeated.
func onceEach(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		_, isList := f.Value.(pflag.SliceValue)
		_, isOnce := f.Value.(*onceValue)
		if !isList && !isOnce && f.Value.Type() != "bool" {
			f.Value = &onceValue{Value: f.Value}
		}
	})
}

// oneDash is the argument that has one dash before the name of a long flag, as -version, without its value; "" if none
// has.
func oneDash(c *cobra.Command, args []string) string {
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		f := c.Flags().Lookup(name)
		isLong := f != nil && !f.Hidden && len(name) > 1
		if isLong && strings.HasPrefix(arg, "-") {
			return "-" + name
		}
		if arg == "--" {
			return ""
		}
	}
	return ""
}

// numberGiven is the whole number that the command line gives a flag, "" if it gives none.
func numberGiven(name string, args []string) string {
	_, value, _ := strings.Cut(strings.ReplaceAll(flagAsTyped(name, args), " ", "="), "=")
	if value != "" && !strings.HasPrefix(value, "0") && !slices.ContainsFunc([]rune(value), func(r rune) bool {
		return r < '0' || r > '9'
	}) {
		return value
	}
	return ""
}
