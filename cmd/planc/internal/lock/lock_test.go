package lock

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/planc-dev/planc/costmodel"
	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

const remedy = "planc plan --update"

// fill draws a value for every field of a struct, so that a field that is not printed or not read is found.
func fill(t *rapid.T, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(-1<<50, 1<<50).Draw(t, name))
	case reflect.Float64:
		v.SetFloat(costmodel.SixDigits(rapid.Float64Range(-1e20, 1e20).Draw(t, name)))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.String:
		v.SetString(rapid.String().Draw(t, name))
	default:
		t.Fatalf("%s is a %v", name, v.Kind())
	}
}

func texts(t *rapid.T, name string) map[string]string {
	return rapid.MapOf(rapid.StringMatching(`[a-z_.0-9]{1,9}`), rapid.OneOf(rapid.String(),
		rapid.StringMatching(`[0-9]+(\.[0-9]+)?|true|no|none|1, 2|a b|1e5`))).Draw(t, name)
}

func drawn(t *rapid.T) *File {
	f := &File{CostModel: 1, Files: map[string]string{}, Inputs: Inputs{},
		Planc: rapid.StringMatching(`v[0-9.]+`).Draw(t, "planc"),
		Plan:  ir.SerialPlan(2, 4, ir.FullPrecision(ir.F32)), Program: Hash([]byte(rapid.String().Draw(t, "program")))}
	fill(t, reflect.ValueOf(&f.Expect).Elem(), "expect")
	fill(t, reflect.ValueOf(&f.Gen).Elem(), "gen")
	fill(t, reflect.ValueOf(&f.Predict).Elem(), "predict")
	fill(t, reflect.ValueOf(&f.Search).Elem(), "search")
	for path := range texts(t, "files") {
		f.Files[path] = Hash([]byte(path))
	}
	for _, s := range Sections {
		f.Inputs[s] = texts(t, s)
	}
	f.DecidedFrom = f.Inputs.Hashes()
	f.Plan.DP, f.Plan.TP = rapid.IntRange(1, 9).Draw(t, "dp"), rapid.IntRange(1, 9).Draw(t, "tp")
	f.Plan.SP = rapid.Bool().Draw(t, "sp")
	f.Plan.Offload = rapid.SampledFrom([]string{"", "optimizer:cpu", "optimizer:cpu,params:nvme"}).Draw(t, "offload")
	f.PlanHash = HashPlan(f.Plan)
	return f
}

// What is printed reads back as it was and prints the same again.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawn(t)
		text := f.Bytes()
		got, err := Parse("a.lock", text, remedy)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got.doc = nil
		if !reflect.DeepEqual(got, f) || !bytes.Equal(got.Bytes(), text) {
			t.Fatalf("got %+v\nwant %+v\nof\n%s", got, f, text)
		}
	})
}

func example() *File {
	in := Inputs{"cluster": {"name": "cpu", "node.devices": "2"}, "model": {"hidden": "64"},
		"objective": {"headroom": "0.1"}, "plan": {"tp": "1, 2"}, "train": {"seq_len": "8"}}
	p := ir.SerialPlan(2, 4, ir.FullPrecision(ir.F32))
	return &File{CostModel: 1, DecidedFrom: in.Hashes(), Inputs: in, Planc: "v0.1.0", Plan: p, PlanHash: HashPlan(p),
		Program: Hash(nil),
		Files:   map[string]string{"planc_planc.go": Hash([]byte("a"))}, Gen: Gen{Package: "train"},
		Search: search.Counts{Space: 1}}
}

// A lock of a planc that did not know some keys yet is whole.
func TestOlder(t *testing.T) {
	whole := string(example().Bytes())
	for _, key := range []string{"step_error", "expert_again", "expert_empty"} {
		older := regexp.MustCompile(`(?m)^ +`+key+`: 0\n`).ReplaceAllString(whole, "")
		if f, err := Parse("a.lock", []byte(older), remedy); older == whole || err != nil ||
			string(f.Bytes()) != whole {
			t.Errorf("without %s: %v", key, err)
		}
	}
}

// Each way to damage a lock is named where it is, with what to do.
func TestDamaged(t *testing.T) {
	whole := string(example().Bytes())
	swap := func(old, new string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("the example has no %q:\n%s", old, whole)
		}
		return strings.Replace(whole, old, new, 1)
	}
	lines := strings.SplitAfter(whole, "\n")
	for _, c := range []struct{ name, text, want string }{
		{"conflict", swap("  dp: 1", "<<<<<<< HEAD\n  dp: 1\n=======\n  dp: 2\n>>>>>>> other"),
			"a.lock:36:1: the lock has a merge conflict here; to search a new plan and write the lock, run planc " +
				"plan --update " +
				"[BadLock]"},
		{"cut", strings.Join(lines[:21], ""),
			"a.lock:2:1: plan is missing: the lock was truncated or edited; to write a new lock, run planc plan " +
				"--update " +
				"[BadLock]"},
		{"cut in predict", whole[:strings.Index(whole, "    dp_comm")], "predict.tokens_per_s is missing"},
		{"empty", "", "a.lock:1:1: the file is empty; to write a new lock, run planc plan --update [BadLock]"},
		{"key", swap("  dp: 1", "  pd: 1"),
			"a.lock:36:3: a plan has no key pd; to write a new lock, run planc plan --update; did you mean dp? " +
				"[BadLock]"},
		{"plan value", swap("  dp: 1", "  dp: many"), `a.lock:36:7: plan.dp is "many", which is not a valid value`},
		{"plan zero", swap("  dp: 1", "  dp: 01"), `plan.dp is "01", which is not a valid value`},
		{"type", swap("cost_model: 1", "cost_model: one"),
			"a.lock:2:13: cost_model is text \"one\"; it must be an integer"},
		{"top key", swap("cost_model: 1", "cost_model: 1\nmore: 1"), "a.lock:3:1: no key more; keys are cost_model"},
		{"hash", swap("program: e", "program: g"), "program must be a hash of 64 hexadecimal digits"},
		{"inputs", swap("hidden: 64", "hidden: 65"),
			"inputs.model does not match the hash decided_from.model: the lock was edited"},
		{"section", swap("  objective:\n    headroom: 0.1\n", ""), "inputs.objective is missing"},
		{"record", swap("  priced: 0\n", ""), "search.priced is missing: the lock was truncated or edited"},
		{"record key", swap("  priced: 0\n", "  priced: 0\n  pricey: 0\n"),
			"unknown key pricey in search; to write a new lock, run planc plan --update; did you mean priced?"},
		{"newer", swap("schema: 1", "schema: 2"),
			"this lock has schema 2 of a newer planc (v0.1.0), and this planc reads schema 1: use the newer planc " +
				"[NewerLock]"},
		{"syntax", swap("  dp: 1", "  dp: [1"), "to write a new lock, run planc plan --update [BadLock]"},
		{"list", "- 1\n", "is a list; it must be a mapping"},
		{"twice", whole + lines[1], "key cost_model is given twice"},
	} {
		_, err := Parse("a.lock", []byte(c.text), remedy)
		var diags ir.Diags
		if !errors.As(err, &diags) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", c.name, err, c.want)
		}
		for _, d := range diags {
			if d.Pos.Line == 0 || d.Code != BadLock && d.Code != NewerLock {
				t.Errorf("%s: %v has no place or another code", c.name, d)
			}
		}
	}
}

// An edit of any key of the plan is seen, whatever the rest says.
func TestEdited(t *testing.T) {
	whole := string(example().Bytes())
	for edit, want := range map[string]bool{"  dp: 1\n": false, "  dp: 2\n": true} {
		f, err := Parse("a.lock", []byte(strings.Replace(whole, "  dp: 1\n", edit, 1)), remedy)
		if err != nil || f.Edited() != want {
			t.Errorf("%q: edited %v, %v", edit, !want, err)
		}
	}
}

// A lock that git checked out with other line ends is the same lock.
func TestLineEnds(t *testing.T) {
	f := example()
	got, err := Parse("a.lock", bytes.ReplaceAll(f.Bytes(), []byte("\n"), []byte("\r\n")), remedy)
	if err != nil || !bytes.Equal(got.Bytes(), f.Bytes()) {
		t.Errorf("%v", err)
	}
}

func TestIsOurs(t *testing.T) {
	whole := string(example().Bytes())
	for text, want := range map[string]bool{whole: true, "<<<<<<< HEAD\n" + whole: true, whole[:60]: true, "": false,
		"# This file is automatically @generated by Cargo\nversion = 3\n": false, "dependencies:\n- name: x\n": false} {
		if got := IsOurs([]byte(text)); got != want {
			t.Errorf("%q: %v", fmt.Sprintf("%.40s", text), got)
		}
	}
}

func TestChanges(t *testing.T) {
	a, b := example().Inputs, example().Inputs
	b["model"] = map[string]string{"hidden": "96", "layers": "2"}
	got := fmt.Sprint(Changes(a, b))
	if want := "[{model hidden 64 96} {model layers  2}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if ha, hb := a.Hashes(), b.Hashes(); ha["model"] == hb["model"] || ha["train"] != hb["train"] {
		t.Errorf("hashes %v and %v", ha, hb)
	}
	p := ir.SerialPlan(2, 4, ir.FullPrecision(ir.F32))
	q := p
	q.DP, q.Offload = 2, "params:cpu"
	if got := fmt.Sprint(PlanChanges(p, q)); got != "[{plan dp 1 2} {plan offload none params:cpu}]" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example().Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Parse("a.lock", data, remedy)
		if err != nil {
			return
		}
		second, err := Parse("a.lock", l.Bytes(), remedy)
		if err != nil || !bytes.Equal(second.Bytes(), l.Bytes()) {
			t.Errorf("printed, it reads back otherwise: %v\n%s", err, l.Bytes())
		}
	})
}
