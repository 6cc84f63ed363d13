package program

import (
	"fmt"
	"math"
	"reflect"
	"strings"
)

// Setting is a row of the table of run-time settings: the fields of the job that a compiled program takes from --set or
// an option. The job file's own table (ir/spec) has the same paths, bounds and values; a test compares them.
type Setting struct {
	Path   string // in the job file
	Bounds Bounds
	Values []string // the texts that are allowed; nil: all
	// Unset says that 0, or the empty text, means that the job does not have the setting. It is then in bounds.
	Unset bool
	// Steers says that the setting decides what a step does to the parameters. Checkpoints record it, so that a run
	// that continues one can report what has changed.
	Steers bool
}

// Bounds is the range of a number. Both ends belong to it, unless they are open. A list's numbers are each in bounds.
type Bounds struct {
	Min, Max         float64
	OpenMin, OpenMax bool
}

// Contains reports whether a number is in bounds.
func (b Bounds) Contains(x float64) bool {
	return x >= b.Min && x <= b.Max && !(b.OpenMin && x == b.Min) && !(b.OpenMax && x == b.Max)
}

// String is what a message says of the bounds: "at least 0 and below 1".
func (b Bounds) String() string {
	var words []string
	switch {
	case b.OpenMin:
		words = append(words, fmt.Sprintf("above %g", b.Min))
	case !math.IsInf(b.Min, -1):
		words = append(words, fmt.Sprintf("at least %g", b.Min))
	}
	switch {
	case b.OpenMax:
		words = append(words, fmt.Sprintf("below %g", b.Max))
	case !math.IsInf(b.Max, 1) && b.Max < math.MaxFloat64:
		words = append(words, fmt.Sprintf("at most %g", b.Max))
	}
	return strings.Join(words, " and ")
}

var (
	fromZero  = Bounds{Max: math.MaxFloat64}
	aboveZero = Bounds{Max: math.MaxFloat64, OpenMin: true}
	belowOne  = Bounds{Max: 1, OpenMax: true}
	steps     = Bounds{Max: 1e12}
	// rate is a learning rate, which kernels have in float32
	rate = Bounds{Max: 3.4e38}
)

// SettingsTable lists the run-time settings, in the order of the job file.
var SettingsTable = []Setting{
	{Path: "data.root", Unset: true},
	{Path: "data.train"},
	{Path: "data.valid", Unset: true},
	{Path: "data.weights", Values: []string{"passes", "shares"}, Unset: true},
	{Path: "data.sampling", Values: []string{"shuffle", "random"}, Unset: true},
	{Path: "data.documents", Values: []string{"packed", "separate"}, Unset: true},
	{Path: "data.tokenizer"},
	{Path: "train.steps", Bounds: Bounds{Min: 1, Max: 1e12}, Unset: true, Steers: true},
	{Path: "train.epochs", Bounds: Bounds{Max: 1e9, OpenMin: true}, Unset: true, Steers: true},
	{Path: "train.tokens", Bounds: Bounds{Min: 1, Max: 1e18}, Unset: true, Steers: true},
	{Path: "train.precision.loss_scale"},
	{Path: "train.precision.loss_scale.init", Bounds: aboveZero, Unset: true},
	{Path: "train.precision.loss_scale.window", Bounds: Bounds{Min: 1, Max: 1e9}, Unset: true},
	{Path: "train.precision.loss_scale.hysteresis", Bounds: Bounds{Min: 1, Max: 1e9}, Unset: true},
	{Path: "train.precision.loss_scale.min", Bounds: aboveZero, Unset: true},
	{Path: "train.precision.loss_scale.consecutive"},
	{Path: "train.init"},
	{Path: "train.optimizer.lr", Bounds: Bounds{Max: 3.4e38, OpenMin: true}, Steers: true},
	{Path: "train.optimizer.betas", Bounds: belowOne, Steers: true},
	{Path: "train.optimizer.eps", Bounds: aboveZero, Steers: true},
	{Path: "train.optimizer.weight_decay", Bounds: fromZero, Steers: true},
	{Path: "train.optimizer.momentum", Bounds: belowOne, Steers: true},
	{Path: "train.optimizer.clip_norm", Bounds: fromZero, Steers: true},
	{Path: "train.schedule.kind", Values: []string{"constant", "linear", "cosine", "wsd", "inverse_sqrt"}, Unset: true,
		Steers: true},
	{Path: "train.schedule.warmup", Bounds: steps, Steers: true},
	{Path: "train.schedule.min_lr", Bounds: rate, Steers: true},
	{Path: "train.schedule.decay", Bounds: Bounds{Min: 1, Max: 1e12}, Unset: true, Steers: true},
	{Path: "train.experts.bias_rate", Bounds: fromZero, Steers: true},
	{Path: "train.seed"},
	{Path: "train.eval.every", Bounds: steps},
	{Path: "train.eval.batches", Bounds: Bounds{Min: 1, Max: 1e9}, Unset: true},
	{Path: "train.eval.sample", Unset: true},
	{Path: "train.eval.sample_every", Bounds: steps},
	{Path: "train.eval.sample_tokens", Bounds: Bounds{Min: 1, Max: 1e9}, Unset: true},
	{Path: "train.eval.temperature", Bounds: aboveZero, Unset: true},
	{Path: "train.eval.top_k", Bounds: Bounds{Min: 1, Max: 1e9}, Unset: true},
	{Path: "train.early_stop.metric", Values: []string{"valid_loss"}, Unset: true},
	{Path: "train.early_stop.patience", Bounds: Bounds{Min: 1, Max: 1e9}, Unset: true},
	{Path: "train.early_stop.min_delta", Bounds: fromZero},
	{Path: "train.checkpoint.every", Bounds: steps},
	{Path: "train.checkpoint.every_minutes", Bounds: Bounds{Max: 1e9, OpenMin: true}, Unset: true},
	{Path: "train.checkpoint.every_epochs", Bounds: Bounds{Max: 1e9, OpenMin: true}, Unset: true},
	{Path: "train.checkpoint.async"},
	{Path: "train.checkpoint.keep_last", Bounds: Bounds{Min: 1, Max: 1e9}, Unset: true},
	{Path: "train.checkpoint.keep_every", Bounds: Bounds{Min: 1, Max: 1e12}, Unset: true},
	{Path: "train.checkpoint.best", Values: []string{"valid_loss"}, Unset: true},
	{Path: "train.checkpoint.top_k", Bounds: Bounds{Min: 1, Max: 1e9}, Unset: true},
	{Path: "train.on_nonfinite", Values: []string{"skip", "stop"}, Unset: true, Steers: true},
	{Path: "train.on_spike", Values: []string{"warn", RollBackOnSpikes, SkipSpikes}, Unset: true, Steers: true},
}

// FindSetting returns the row of a path, nil if there is none.
func FindSetting(path string) *Setting {
	for i := range SettingsTable {
		if SettingsTable[i].Path == path {
			return &SettingsTable[i]
		}
	}
	return nil
}

// Field returns a pointer to a setting's value, of the type that the settings have.
func (s *Settings) Field(path string) any {
	at := reflect.ValueOf(s).Elem()
	for name := range strings.SplitSeq(path, ".") {
		found := false
		for i := range at.NumField() {
			if at.Type().Field(i).Tag.Get("json") == name {
				at, found = at.Field(i), true
				break
			}
		}
		if !found {
			panic("program: settings have no field " + path)
		}
	}
	return at.Addr().Interface()
}

// Check returns an error for each value that no run can have. Relations between settings are not checked.
func (s *Settings) Check() (errs []error) {
	for i := range SettingsTable {
		row := &SettingsTable[i]
		if err := row.check(s.Field(row.Path)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// check returns an error if a value, to which field points, is not allowed.
func (row *Setting) check(field any) error {
	if row.Values != nil {
		text := *field.(*string)
		for _, v := range row.Values {
			if text == v {
				return nil
			}
		}
		if row.Unset && text == "" {
			return nil
		}
		return fmt.Errorf("%s is %q; it must be %s", row.Path, text, alternatives(row.Values))
	}
	if row.Bounds == (Bounds{}) {
		return nil
	}
	for i, x := range numbers(field) {
		if row.Unset && x == 0 || row.Bounds.Contains(x) {
			continue
		}
		path := row.Path
		if _, list := field.(*[2]float64); list {
			path = fmt.Sprintf("%s[%d]", path, i)
		}
		return fmt.Errorf("%s is %v; it must be %v", path, x, row.Bounds)
	}
	return nil
}

// numbers returns the numbers to which a field points.
func numbers(field any) []float64 {
	switch p := field.(type) {
	case *float64:
		return []float64{*p}
	case *int:
		return []float64{float64(*p)}
	case *int64:
		return []float64{float64(*p)}
	case *[2]float64:
		return p[:]
	}
	panic(fmt.Sprintf("program: %T is no number", field))
}

// alternatives joins the last of some words with "or".
func alternatives(words []string) string {
	n := len(words) - 1
	if n == 0 {
		return words[0]
	}
	return strings.Join(words[:n], ", ") + " or " + words[n]
}

// CompiledPaths are the job's fields that are compiled into the program, with all fields below them but those in
// [SettingsTable].
var CompiledPaths = []string{"name", "model", "cluster", "objective", "plan", "train.seq_len", "train.global_batch",
	"train.global_batch_tokens", "train.precision", "train.optimizer.kind",
	"train.optimizer.no_decay", "train.optimizer.lr_multipliers", "train.dropout", "train.engine"}
