package checkscreen

import (
	"testing"

	"github.com/planc-dev/planc/interop/migrate"
)

// Variables are shown once, with the plans to which they belong unless they belong to all.
func TestEnvLines(t *testing.T) {
	unset := []migrate.Env{{Name: "CONNECTIONS", Value: "1", Why: "needed with tp"}}
	set := []migrate.Env{{Name: "CONNECTIONS", Value: "1", Yours: "1", IsSet: true, Why: "needed with tp"}}
	other := []migrate.Env{{Name: "CONNECTIONS", Value: "1", Yours: "8", IsSet: true}}
	batch := func(n string) []migrate.Env {
		return []migrate.Env{{Name: "STEPS", Value: "4", Why: "with a batch of " + n}}
	}
	tests := []struct {
		plans []planEnv
		want  string
	}{
		{[]planEnv{{"yours", nil}, {"the best plan", nil}}, ""},
		{[]planEnv{{"yours", unset}, {"edit 2", unset}, {"the best plan", unset}},
			"\nenv      CONNECTIONS=1: not set in the file; needed with tp\n"},
		{[]planEnv{{"yours", unset}, {"edit 2", nil}, {"the best plan", unset}},
			"\nenv      of yours and the best plan:\n" +
				"         CONNECTIONS=1: not set in the file; needed with tp\n"},
		{[]planEnv{{"yours", unset}, {"edit 2", nil}, {"the best plan", nil}},
			"\nenv      of yours:\n" +
				"         CONNECTIONS=1: not set in the file; needed with tp\n"},
		{[]planEnv{{"yours", set}, {"the best plan", nil}}, ""},
		{[]planEnv{{"yours", set}}, "\nenv      CONNECTIONS=1: set; needed with tp\n"},
		{[]planEnv{{"yours", []migrate.Env{{Name: "CONNECTIONS", Value: "1", IsUnknown: true}}}},
			"\nenv      CONNECTIONS=1: the log does not say whether it is set\n"},
		{[]planEnv{{"yours", nil}, {"the best plan", other}},
			"\nenv      of the best plan:\n         CONNECTIONS=1: the file sets 8\n"},
		{[]planEnv{{"edit 1", batch("2")}, {"the best plan", batch("1")}}, // the same value for another reason
			"\nenv      of edit 1:\n         STEPS=4: not set in the file; with a batch of 2\n" +
				"         of the best plan:\n         STEPS=4: not set in the file; with a batch of 1\n"},
	}
	for _, test := range tests {
		if got := envLines(test.plans); got != test.want {
			t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
		}
	}
}
