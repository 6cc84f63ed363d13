package validate

import (
	"os"
	"testing"
)

// BenchmarkRun prices the published tables that VALIDATE_ROWS names; no table: it is skipped.
func BenchmarkRun(b *testing.B) {
	file := os.Getenv("VALIDATE_ROWS")
	if file == "" {
		b.Skip("VALIDATE_ROWS names no table")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	rows, err := Parse(file, data)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Run(rows)
	}
}
