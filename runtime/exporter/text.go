package exporter

import (
	"math"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/timeline"
)

// text returns all metrics in Prometheus' text format.
func (e *exporter) text() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	var t text
	t.family("planc_info", "gauge", "the run: 1")
	t.sample("planc_info", 1, "name", e.run.Name, "plan", e.run.Plan, "program", e.run.Program)
	t.family("planc_step_seconds", "summary", "time of steps since the process started")
	t.sample("planc_step_seconds_sum", e.seconds)
	t.sample("planc_step_seconds_count", float64(e.steps))
	if e.steps > 0 {
		e.lastStep(&t)
	}
	if e.evaluated {
		t.single("planc_valid_loss", "gauge", "validation loss of the last evaluation, nats per token", e.valid)
	}
	if e.hasTimes {
		e.times(&t)
	}
	e.telemetry(&t)
	return t.out
}

// lastStep writes the metrics of the last step.
func (e *exporter) lastStep(t *text) {
	t.single("planc_step", "gauge", "number of the last step", float64(e.step.Step))
	t.single("planc_last_step_seconds", "gauge", "time of the last step", e.step.Seconds)
	t.single("planc_loss", "gauge", "training loss of the last step, nats per token", e.step.Loss)
	t.single("planc_learning_rate", "gauge", "learning rate of the last step", e.step.LR)
	t.single("planc_grad_norm", "gauge", "gradient norm of the last step, before clipping", e.step.GradNorm)
	t.single("planc_tokens_total", "counter", "unmasked tokens since training began", float64(e.step.Tokens))
	t.single("planc_tokens_per_second", "gauge", "unmasked tokens per second of the last step", e.last.TokensPerSecond)
	t.single("planc_mfu_ratio", "gauge", "model flops utilization of the last step", e.last.MFU)
	t.single("planc_memory_bytes", "gauge", "memory of one rank", float64(e.last.Memory))
	t.single("planc_skipped_steps_total", "counter", "steps without an update since training began",
		float64(e.last.Skipped))
	if e.last.HasAux {
		t.single("planc_aux_loss", "gauge", "auxiliary loss of the routers in the last step", e.step.AuxLoss)
	}
	if e.step.LossScale > 0 {
		t.single("planc_loss_scale", "gauge", "loss scale of the last step", e.step.LossScale)
	}
}

// times writes where the time of steps went.
func (e *exporter) times(t *text) {
	const parts = "planc_step_part_seconds_total"
	t.family(parts, "counter", "time of steps by part, mean over the ranks")
	for p := range timeline.Parts {
		t.sample(parts, e.parts[p], "part", p.String())
	}
	for _, k := range []struct {
		name, help string
		values     []float64
	}{{"planc_rank_busy_seconds_total", "time of a rank's own work: passes and update", e.busy},
		{"planc_rank_wait_seconds_total", "time in which a rank's collectives and receives waited for others",
			e.wait}} {
		t.family(k.name, "counter", k.help)
		for i, x := range k.values {
			t.sample(k.name, x, "rank", strconv.Itoa(i))
		}
	}
	t.single("planc_rank_skew_ratio", "gauge", "busy time of the slowest rank over the median of its stage, minus 1",
		e.skew)
}

// telemetry writes the telemetry of devices.
func (e *exporter) telemetry(t *text) {
	if len(e.devices) == 0 {
		return
	}
	for _, k := range []struct {
		name, help string
		value      func(*report.Telemetry) float64
	}{
		{"planc_gpu_utilization_ratio", "fraction of the time in which a kernel ran",
			func(d *report.Telemetry) float64 { return d.Utilization }},
		{"planc_gpu_memory_bytes", "memory in use by all processes",
			func(d *report.Telemetry) float64 { return d.Memory }},
		{"planc_gpu_power_watts", "power", func(d *report.Telemetry) float64 { return d.Watts }},
		{"planc_gpu_clock_hertz", "clock of the multiprocessors",
			func(d *report.Telemetry) float64 { return d.MHz * 1e6 }},
	} {
		t.family(k.name, "gauge", k.help)
		for i := range e.devices {
			t.sample(k.name, k.value(&e.devices[i]), "gpu", strconv.Itoa(i))
		}
	}
}

// text is a document in Prometheus' text format 0.0.4.
type text struct{ out []byte }

// family starts a metric: its help and type.
func (t *text) family(name, kind, help string) {
	t.out = append(t.out, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

// single writes a metric without labels.
func (t *text) single(name, kind, help string, x float64) {
	t.family(name, kind, help)
	t.sample(name, x)
}

// labelEscapes are the characters that label values escape.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// sample writes a value, with pairs of label and value.
func (t *text) sample(name string, x float64, labels ...string) {
	t.out = append(t.out, name...)
	for i := 0; i < len(labels); i += 2 {
		t.out = append(t.out, "{,"[min(i, 1)])
		t.out = append(t.out, labels[i]+`="`+labelEscapes.Replace(labels[i+1])+`"`...)
	}
	if len(labels) > 0 {
		t.out = append(t.out, '}')
	}
	t.out = append(t.out, ' ')
	switch {
	case math.IsInf(x, 1):
		t.out = append(t.out, "+Inf"...)
	default: // NaN and -Inf are written as Go does
		t.out = strconv.AppendFloat(t.out, x, 'g', -1, 64)
	}
	t.out = append(t.out, '\n')
}
