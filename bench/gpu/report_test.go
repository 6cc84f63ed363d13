package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A part's results become its page: the table of checks, then the section of each.
func TestReport(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	p := Part{Part: "train", About: "Training beside PyTorch", Began: "2026-11-22T16:00:00Z", Results: []Result{
		{Check: "gpt2-124m", State: "ok", Seconds: 61.25, Notes: []string{"a note"},
			Columns: []string{"measure", "planc"}, Rows: [][]string{{"a|b", "1\n2"}}},
		{Check: "gpt2-1558m", State: "error", Why: "stopped after 240 s"},
		{Check: "bare", State: "not run"},
	}}
	for i, tr := range []Trained{{Model: model{Name: "gpt2-124m", Batch: 64, Seq: 1024, Layers: 12,
		Hidden: 768, Params: 124439808}}} {
		tr.Ours, tr.Theirs = Side{Step: 0.1, Bytes: 3 << 30, First: 1, Micro: 64}, Side{Step: 0.2, Bytes: 6 << 30,
			First: 20, Micro: 32}
		p.Results[i].Rows = nil
		tr.tabulate(&p.Results[i])
	}
	if err := p.write(in); err != nil {
		t.Fatal(err)
	}
	if err := report(out, []string{filepath.Join(in, "train.json")}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(out, "train.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# train\n\nTraining beside PyTorch. Measured 2026-11-22T16:00:00Z by `scripts/gpu-check run train`",
		"| gpt2-1558m | error | 0.0 |", "error: stopped after 240 s", "- a note",
		"| tokens/s | 655360 | 327680 | 2.000 |", "| MFU at 989 TFLOP/s, % | 53.2 | 26.6 |  |",
		"| start to first step, s | 1.00 | 20.00 | 0.050 |",
		"| peak device memory, GiB | 3.00 | 6.00 | 0.500 |",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(string(page), "## bare") {
		t.Error("a check that says nothing has a section")
	}
	if here, err := os.ReadFile(filepath.Join(in, "train.md")); err != nil || !bytes.Equal(here, page) {
		t.Errorf("the page written on the GPU machine differs: %v", err)
	}
}

// Results of -tiny and files that are not results do not become pages of measurements.
func TestReportRefuses(t *testing.T) {
	dir := t.TempDir()
	measured := filepath.Join(dir, "measured")
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, file := range []string{write("tiny.json", `{"Part":"smoke","Tiny":true}`),
		write("no.json", `{"Part":"no"}`), write("bad.json", `{`), filepath.Join(dir, "absent.json")} {
		if err := report(measured, []string{file}); err == nil {
			t.Errorf("%s became a page", file)
		}
	}
}

// After a check that crashes, fails, hangs or cannot run, the other checks run, and all results are written.
func TestPartGoesOn(t *testing.T) {
	saved := parts
	defer func() { parts = saved }()
	parts = []part{{"all", "Each end", []check{
		{"panics", time.Minute, func(context.Context, *bench, *Result) error { panic("oh") }},
		{"fails", time.Minute, func(context.Context, *bench, *Result) error { return faultf("wrong") }},
		{"cannot", time.Minute, func(context.Context, *bench, *Result) error { return errors.New("no tool") }},
		{"hangs", 6 * time.Second, func(ctx context.Context, b *bench, r *Result) error {
			_, err := b.output(ctx, nil, "sleep", "100")
			return err
		}},
		{"works", time.Minute, func(_ context.Context, _ *bench, r *Result) error { r.note("seen"); return nil }},
	}}}
	b := &bench{out: t.TempDir(), python: "no-such-python", until: time.Now().Add(time.Minute)}
	if err := b.part(t.Context(), "all"); err == nil || !strings.Contains(err.Error(), "4 of 5") {
		t.Errorf("the part says %v", err)
	}
	text, err := os.ReadFile(filepath.Join(b.out, "all.json"))
	if err != nil {
		t.Fatal(err)
	}
	var p Part
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	states := ""
	for _, r := range p.Results {
		states += r.State + " "
	}
	if states != "error failed error error ok " || !strings.HasPrefix(p.Results[3].Why, "stopped after 6 s") {
		t.Errorf("states %s: %+v", states, p.Results)
	}
	b.until = time.Now()
	var r Result
	b.check(t.Context(), parts[0].checks[4], &r)
	if r.State != "not run" {
		t.Errorf("a check began when the time was up: %+v", r)
	}
}

// Groups are judged as the laws' own tests judge them: by their bounds in f64, by yardsticks in 16 bits.
func TestJudge(t *testing.T) {
	exact := LawGroup{Cases: []LawCase{{ID: "ref"}, {ID: "gpu", GPU: true, Loss: 1e-10, Param: 1e-10, Arena: 8}}}
	narrow := LawGroup{Cases: []LawCase{{ID: "ref"}, {ID: "yard", Yard: true}, {ID: "gpu", GPU: true, Loss: -1,
		Param: -1, Rounds: true, Arena: 8}}}
	good := verdict{ID: "gpu", Steps: 3, Arena: 8, Losses: 1e-11, Grad: 1e-11}
	changed := func(change func(*verdict)) verdict { v := good; change(&v); return v }
	for _, c := range []struct {
		what          string
		group         LawGroup
		yard          *verdict
		got           verdict
		fails, broken bool
	}{
		{"inside", exact, nil, good, false, false},
		{"a loss", exact, nil, changed(func(v *verdict) { v.Losses = 1e-9 }), true, false},
		{"a gradient", exact, nil, changed(func(v *verdict) { v.Grad = 1e-9 }), true, false},
		{"a parameter", exact, nil, changed(func(v *verdict) { v.Param = 1e-9 }), true, false},
		{"copies", exact, nil, changed(func(v *verdict) { v.Copies = 1e-16 }), true, false},
		{"steps", exact, nil, changed(func(v *verdict) { v.Steps = 2 }), true, false},
		{"memory", exact, nil, changed(func(v *verdict) { v.Arena = 9 }), true, false},
		{"an error", exact, nil, changed(func(v *verdict) { v.Err = "no GPU" }), false, true},
		{"another program", exact, nil, changed(func(v *verdict) { v.ID = "ref" }), false, true},
		{"within four yardsticks", narrow, &verdict{ID: "yard", Losses: 1e-3, Grad: 1e-2}, changed(func(v *verdict) {
			v.Losses, v.Grad = 3.9e-3, 3.9e-2
		}), false, false},
		{"beyond them", narrow, &verdict{ID: "yard", Losses: 1e-3, Grad: 1e-2}, changed(func(v *verdict) {
			v.Losses = 4.1e-3
		}), true, false},
		{"beyond in gradients", narrow, &verdict{ID: "yard", Losses: 1e-3, Grad: 1e-2}, changed(func(v *verdict) {
			v.Grad = 4.1e-2
		}), true, false},
	} {
		verdicts := []verdict{{ID: "ref", Steps: 3}}
		if c.yard != nil {
			verdicts = append(verdicts, *c.yard)
		}
		verdicts = append(verdicts, c.got)
		if broken := c.group.broken(verdicts); (broken != "") != c.broken {
			t.Errorf("%s: broken: %q", c.what, broken)
		}
		if why, _, _ := c.group.judge(verdicts); (why != "") != c.fails {
			t.Errorf("%s: %q", c.what, why)
		}
	}
	if exact.broken([]verdict{{ID: "ref"}}) == "" {
		t.Error("a program that did not run is good")
	}
}
