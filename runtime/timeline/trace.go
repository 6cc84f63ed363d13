package timeline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Process is a rank, or the driver of all ranks, with its goroutines.
type Process struct {
	Name    string
	Threads []Thread
}

// Thread is a goroutine in a trace.
type Thread struct {
	Name  string
	Track *Track
}

// Write writes the recorded spans in Chrome's trace event format (JSON object form). Metadata describes the run.
// Times are microseconds since the process started.
func Write(w io.Writer, processes []Process, metadata map[string]string) error {
	out := bufio.NewWriter(w)
	head, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `{"displayTimeUnit":"ms","otherData":%s,"traceEvents":[`, head)
	t := traceWriter{out: out}
	for pid, p := range processes {
		t.name("process_name", pid, 0, p.Name)
		t.sort("process_sort_index", pid, 0, pid)
		for tid, th := range p.Threads {
			t.name("thread_name", pid, tid, th.Name)
			t.sort("thread_sort_index", pid, tid, tid)
			spans := th.Track.Spans()
			for i := range spans {
				t.span(pid, tid, &spans[i])
			}
		}
	}
	out.WriteString("\n]}\n")
	return out.Flush()
}

// traceWriter writes events.
type traceWriter struct {
	out   *bufio.Writer
	begun bool
}

// event starts an event with its fields up to the arguments.
func (t *traceWriter) event(fields string, args ...any) {
	if t.begun {
		t.out.WriteByte(',')
	}
	t.begun = true
	t.out.WriteString("\n")
	fmt.Fprintf(t.out, fields, args...)
}

// name writes a metadata event that names a process or thread.
func (t *traceWriter) name(kind string, pid, tid int, name string) {
	text, _ := json.Marshal(name)
	t.event(`{"ph":"M","pid":%d,"tid":%d,"name":%q,"args":{"name":%s}}`, pid, tid, kind, text)
}

// sort writes a metadata event that gives the order of a process or thread.
func (t *traceWriter) sort(kind string, pid, tid, index int) {
	t.event(`{"ph":"M","pid":%d,"tid":%d,"name":%q,"args":{"sort_index":%d}}`, pid, tid, kind, index)
}

// span writes a complete event, and one inside it for the wait of a communication.
func (t *traceWriter) span(pid, tid int, s *Span) {
	if s.End == 0 { // the step failed in it
		return
	}
	args := ""
	for _, a := range []struct {
		name    string
		value   int
		present bool
	}{{"micro_batch", s.Micro, s.Micro >= 0}, {"ranks", s.Ranks, s.Ranks > 0}, {"bytes", s.Bytes, s.Ranks > 0}} {
		if a.present {
			args += fmt.Sprintf(`,%q:%d`, a.name, a.value)
		}
	}
	if s.Arrived > 0 {
		args += `,"wait_us":` + micros(s.Arrived-s.Start)
	}
	t.complete(pid, tid, s, args)
	if s.Arrived > s.Start {
		t.complete(pid, tid, &Span{Kind: "wait", At: -1, Part: s.Part, Start: s.Start, End: s.Arrived}, "")
	}
}

// complete writes an event with a start and a duration. args begins with a comma.
func (t *traceWriter) complete(pid, tid int, s *Span, args string) {
	args = strings.TrimPrefix(args, ",")
	text, _ := json.Marshal(s.title())
	t.event(`{"ph":"X","pid":%d,"tid":%d,"name":%s,"cat":%q,"ts":%s,"dur":%s,"args":{%s}}`, pid, tid, text,
		s.Part.String(), micros(s.Start), micros(s.End-s.Start), args)
}

// title returns the name of the span's event: "forward block 3".
func (s *Span) title() string {
	title := s.Kind
	if s.Object != "" {
		title += " " + s.Object
	}
	if s.At >= 0 {
		title += " " + strconv.Itoa(s.At)
	}
	return title
}

// micros formats nanoseconds as microseconds.
func micros(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }
