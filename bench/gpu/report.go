package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// page returns the part as Markdown.
func (p *Part) page() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s. Measured %s by `scripts/gpu-check run %s`; [how](METHOD.md).\n", p.Part, p.About,
		p.Began, p.Part)
	if p.Tiny {
		b.WriteString("\n**Tiny shapes, to try the harness: not a measurement.**\n")
	}
	b.WriteString("\n| check | state | s |\n|---|---|---|\n")
	for i := range p.Results {
		r := &p.Results[i]
		fmt.Fprintf(&b, "| %s | %s | %.1f |\n", r.Check, r.State, r.Seconds)
	}
	for i := range p.Results {
		p.Results[i].section(&b)
	}
	return b.Bytes()
}

// section writes a check's section of the page.
func (r *Result) section(b *bytes.Buffer) {
	if r.Why == "" && len(r.Notes)+len(r.Rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n", r.Check)
	if r.Why != "" {
		fmt.Fprintf(b, "\n```text\n%s: %s\n```\n", r.State, r.Why)
	}
	if len(r.Notes) > 0 {
		b.WriteByte('\n')
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "- %s\n", n)
	}
	if len(r.Rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| %s |\n|%s\n", strings.Join(r.Columns, " | "), strings.Repeat("---|", len(r.Columns)))
	for _, row := range r.Rows {
		for i := range row {
			row[i] = strings.NewReplacer("|", "\\|", "\n", " ").Replace(row[i])
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

// report writes PART.md into out for each file of results.
func report(out string, files []string) error {
	if len(files) == 0 {
		return errors.New("report: give it files of results, PART.json")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var p Part
		if err := json.Unmarshal(text, &p); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if !slices.ContainsFunc(parts, func(known part) bool { return known.name == p.Part }) {
			return fmt.Errorf("%s: unknown part %q: use one of %s", file, p.Part, partNames())
		}
		if p.Tiny && filepath.Base(out) == "measured" {
			return fmt.Errorf("%s: results of -tiny are not measurements", file)
		}
		if err := os.WriteFile(filepath.Join(out, p.Part+".md"), p.page(), 0o666); err != nil {
			return err
		}
	}
	return nil
}
