package tokenfiles

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// isParquet reports whether a file is a Parquet table, by its name.
func isParquet(name string) bool { return strings.EqualFold(filepath.Ext(name), ".parquet") }

// readParquet calls each for the texts of a column, each of which is a document. Rows without a text are skipped.
func (r *Reader) readParquet(path string, each func(Chunk) error) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fileError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	defer func() { // the library panics on some damaged files
		if x := recover(); x != nil {
			err = &InputError{File: path, Msg: fmt.Sprintf("is a damaged Parquet table: %v", x)}
		}
	}()
	options := []parquet.FileOption{parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)}
	table, err := parquet.OpenFile(f, info.Size(), options...)
	if err != nil {
		return &InputError{File: path, Msg: "is not a complete Parquet table: " + err.Error()}
	}
	column, err := textColumn(table, path, r.Key)
	if err != nil {
		return err
	}
	row, groups := int64(0), table.RowGroups()
	for i, g := range groups {
		if err := r.readColumn(path, row, g.ColumnChunks()[column], each); err != nil {
			return err
		}
		row += g.NumRows()
		if r.Done != nil { // the table's other columns count as read
			r.Done.Add(info.Size()*int64(i+1)/int64(len(groups)) - info.Size()*int64(i)/int64(len(groups)))
		}
	}
	return nil
}

// textColumn returns the number of the column of that name, which must have a text in each row.
func textColumn(table *parquet.File, path, name string) (int, error) {
	leaf, ok := table.Schema().Lookup(name)
	if !ok {
		var names []string
		for _, column := range table.Schema().Columns() {
			if len(column) == 1 {
				names = append(names, column[0])
			}
		}
		slices.Sort(names)
		return 0, &InputError{File: path, Msg: fmt.Sprintf("has no column %q; its columns are %s: choose one with "+
			"--key", name, strings.Join(names, ", "))}
	}
	if leaf.Node.Type().Kind() != parquet.ByteArray || leaf.MaxRepetitionLevel > 0 {
		return 0, &InputError{File: path, Msg: fmt.Sprintf("the column %q is of type %v; it must be text", name,
			leaf.Node.Type())}
	}
	return leaf.ColumnIndex, nil
}

// readColumn calls each for the texts of a column in a group of rows, which begins at a row of the table.
func (r *Reader) readColumn(path string, row int64, column parquet.ColumnChunk, each func(Chunk) error) error {
	damaged := func(err error) error {
		return &InputError{File: path, Msg: fmt.Sprintf("is damaged near row %d: %v", row+1, err)}
	}
	pages := column.Pages()
	defer pages.Close()
	values := make([]parquet.Value, 256)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged(err)
		}
		in := page.Values()
		for more := true; more; {
			n, err := in.ReadValues(values)
			if err != nil && !errors.Is(err, io.EOF) {
				return damaged(err)
			}
			more = err == nil
			for _, v := range values[:n] {
				row++
				text := slices.Clone(v.ByteArray()) // the page's memory is used again
				c := Chunk{File: path, Row: row, Text: text, IsStart: true, IsEnd: true}
				if len(text) == 0 {
					continue
				}
				if err := each(c); err != nil {
					return err
				}
			}
		}
		parquet.Release(page)
	}
}
