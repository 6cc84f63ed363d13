package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// onceValue is the value of a flag that cannot be set to two different values.
type onceValue struct {
	pflag.Value
	first string
	isSet bool
}

// repeatedFlagError reports a flag that is given with two different values.
type repeatedFlagError struct{ first, second string }

func (e *repeatedFlagError) Error() string {
	return "it is given twice, as " + e.first + " and as " + e.second
}

// Set sets the value. It fails if the command line has set another value before, which would be lost silently.
func (v *onceValue) Set(text string) error {
	if v.isSet && text != v.first {
		return &repeatedFlagError{v.first, text}
	}
	v.first, v.isSet = text, true
	return v.Value.Set(text)
}

// onceEach wraps the values of flags that take one value, so that they reject a second value. Bool flags and lists can
// be repeated.
func onceEach(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		_, isList := f.Value.(pflag.SliceValue)
		_, isOnce := f.Value.(*onceValue)
		if !isList && !isOnce && f.Value.Type() != "bool" {
			f.Value = &onceValue{Value: f.Value}
		}
	})
}

// oneDash returns the first argument that is a long flag with only one dash, such as -version, without its value; "" if
// there is none.
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

// numberGiven returns the whole number that the command line gives as the value of a flag; "" if there is none.
func numberGiven(name string, args []string) string {
	_, value, _ := strings.Cut(strings.ReplaceAll(flagAsTyped(name, args), " ", "="), "=")
	if value != "" && !strings.HasPrefix(value, "0") && !slices.ContainsFunc([]rune(value), func(r rune) bool {
		return r < '0' || r > '9'
	}) {
		return value
	}
	return ""
}
