package validate

import (
	"bytes"
	"encoding/csv"
	"errors"
	"regexp"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Row is a line of a table of measurements, by the lower-case names of its columns.
type Row struct {
	File   string
	Number int // of the lines below the header, from 1
	cells
}

// Parse reads a table. Columns are identified by the names in its first line, in any order. An error is an ir.Diags
// with the problems of the table and their positions.
func Parse(file string, data []byte) ([]Row, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	r.FieldsPerRecord, r.LazyQuotes, r.TrimLeadingSpace = -1, true, true
	lines, err := r.ReadAll()
	if err != nil {
		return nil, notCSV(file, err)
	}
	if len(lines) == 0 {
		return nil, ir.Diags{{Pos: ir.Pos{File: file, Line: 1, Column: 1}, Code: strict.Empty,
			Msg: "the table is empty; its first line must name the columns, such as model,gpu,num_gpus"}}
	}
	head := lines[0]
	for i := range head {
		head[i] = strings.ToLower(strings.TrimSpace(head[i]))
	}
	var rows []Row
	for n, line := range lines[1:] {
		row := Row{File: file, Number: n + 1, cells: cells{}}
		for i, cell := range line {
			cell = strings.TrimSpace(cell)
			if i < len(head) && cell != "" {
				row.cells[head[i]] = cell
			}
		}
		if len(row.cells) > 0 {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// notCSV returns where and why a text is not valid CSV.
func notCSV(file string, err error) error {
	d := ir.Diag{Pos: ir.Pos{File: file}, Code: strict.Syntax, Msg: err.Error()}
	if at := (*csv.ParseError)(nil); errors.As(err, &at) {
		d.Pos.Line, d.Pos.Column, d.Msg = at.Line, at.Column, at.Err.Error()
	}
	return ir.Diags{d}
}

// Source returns who measured.
func (r *Row) Source() string {
	if s := r.Text("source"); s != "" {
		return s
	}
	return r.File
}

// Barred reports whether the row's note forbids calibration on the row.
func (r *Row) Barred() bool { return strings.Contains(r.lower("note"), "do not calibrate") }

// StepS returns the measured step in seconds, 0 if no time was measured. It is derived from tokens per second if the
// step is not given.
func (r *Row) StepS() float64 {
	if v := r.measure("measured_step_s"); v > 0 {
		return v
	}
	rate, seq := r.measure("measured_tokens_per_s_per_gpu"), float64(r.count("seq_len", 0))
	gpus, batch := float64(r.count("num_gpus", 0)), float64(r.count("global_batch", 0))
	if rate == 0 || gpus == 0 {
		return 0
	}
	return batch * seq / rate / gpus
}

// MemoryBytes returns the measured memory of a device, 0 if there is none. A GB in these tables is 2^30 bytes, as in
// the tools that print them.
func (r *Row) MemoryBytes() float64 { return r.measure("measured_mem_gb_per_gpu") * (1 << 30) }

// outOfMemory matches a note about running out of memory.
var outOfMemory = regexp.MustCompile(`(?i)\bOOM\b|out of memory`)

// Fitted reports whether the run fitted in memory; known is false if the row does not say.
func (r *Row) Fitted() (fits, known bool) {
	switch {
	case r.Text("measured_fits") != "":
		return r.truth("measured_fits", false), true
	case r.StepS() > 0:
		return true, true
	case outOfMemory.MatchString(r.Text("note")):
		return false, true
	}
	return false, false
}
