package report

import (
	"encoding/json"
	"math"
	"testing"
)

// Telemetry is written as one list for each figure, with null for a value that is not available.
func TestTelemetryIsInTheMetrics(t *testing.T) {
	for _, c := range []struct {
		all  []Telemetry
		want string
	}{
		{nil, `{}`}, {[]Telemetry{}, `{}`},
		{[]Telemetry{{0.97, 5e9, 612.5, 1755}, {1, 6e9, math.NaN(), 1740}},
			`{"gpu_util":[0.97,1],"gpu_memory_bytes":[5000000000,6000000000],"gpu_watts":[612.5,null],"gpu_mhz":[1755,1740]}`},
	} {
		m := Metrics{line: []byte(`{"step":1`)}
		m.telemetry(c.all)
		var got, want map[string]any
		if err := json.Unmarshal(append(m.line, '}'), &got); err != nil {
			t.Fatalf("%s: %v", m.line, err)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		want["step"] = 1.0
		a, _ := json.Marshal(got)
		if b, _ := json.Marshal(want); string(a) != string(b) {
			t.Errorf("%s, want %s", a, b)
		}
	}
}
