package torchtitan

import (
	"fmt"
	"strings"
)

// schedule is a pipeline schedule of PyTorch.
type schedule struct {
	name  string // in torchtitan's files
	plan  string // in planc; "" if planc does not price it
	multi bool   // stages have several chunks
}

// schedules are those that PyTorch finds by name, whatever its case (torch/distributed/pipelining/schedules.py,
// get_schedule_class).
var schedules = []schedule{
	{"1F1B", "1f1b", false},
	{"Interleaved1F1B", "interleaved", true},
	{"GPipe", "gpipe", false},
	{"LoopedBFS", "", true},
	{"InterleavedZeroBubble", "", true},
	{"ZBVZeroBubble", "zb-v", true},
	{"DualPipeV", "", true},
	{"PipelineScheduleSingle", "", false},
	{"PipelineScheduleMulti", "", true},
}

// scheduleNamed returns a schedule by its name, nil if PyTorch has none of that name.
func scheduleNamed(name string) *schedule {
	for i := range schedules {
		if strings.EqualFold(schedules[i].name, name) {
			return &schedules[i]
		}
	}
	return nil
}

// scheduleOf returns the schedule of a plan, nil if torchtitan has none.
func scheduleOf(plan string) *schedule {
	for i := range schedules {
		if plan != "" && schedules[i].plan == plan {
			return &schedules[i]
		}
	}
	return nil
}

// split is how torchtitan divides a model's layers among the chunks of a pipeline.
type split struct {
	layers      int
	stages      int // pipeline_parallel_degree
	perChunk    int // pipeline_parallel_layers_per_stage; 0 if it is absent
	first, last int // layers that the first and the last chunk have less
	multi       bool
}

// defaultLess is by how many layers the first and the last chunk are smaller, unless the file says otherwise.
const defaultLess = 1

// count returns the number of chunks. The error is torchtitan's own reason (distributed/pipeline_parallel.py,
// pipeline_llm).
func (s split) count() (int, error) {
	const defaultChunks = 2 // of a stage, with a schedule of several chunks
	switch {
	case s.perChunk == 0 && s.multi:
		return s.stages * defaultChunks, nil
	case s.perChunk == 0:
		return s.stages, nil
	}
	n := (s.layers + s.first + s.last + s.perChunk - 1) / s.perChunk
	words := fmt.Sprintf("%d layers, and %d for the embedding and the output, make %d chunks of up to %d", s.layers,
		s.first+s.last, n, s.perChunk)
	switch {
	case n%s.stages != 0:
		return 0, fmt.Errorf("%s, which %d stages cannot share evenly", words, s.stages)
	case !s.multi && n != s.stages:
		return 0, fmt.Errorf("%s, but this schedule has one chunk in each of %d stages", words, s.stages)
	case s.multi && n < 2*s.stages:
		return 0, fmt.Errorf("%s, but this schedule needs at least 2 chunks in each of %d stages", words, s.stages)
	}
	return n, nil
}

// counts returns the layers of every chunk, as generate_llm_fqn_per_model_part divides them: chunks share the layers,
// the embedding and the output evenly, and earlier chunks have one more.
func (s split) counts(chunks int) ([]int, error) {
	if chunks == 1 {
		return []int{s.layers}, nil
	}
	total := s.layers + s.first + s.last
	each, more := total/chunks, total%chunks
	switch {
	case each == 0:
		return nil, fmt.Errorf("%d layers are too few for %d chunks", s.layers, chunks)
	case s.first > each:
		return nil, fmt.Errorf("the first chunk has %d layers less, but a chunk has only %d", s.first, each)
	case s.last > each:
		return nil, fmt.Errorf("the last chunk has %d layers less, but a chunk has only %d", s.last, each)
	}
	out := make([]int, chunks)
	left := s.layers
	for i := range out {
		n := each
		if i < more {
			n++
		}
		switch i {
		case 0:
			n -= s.first
		case chunks - 1:
			n -= s.last
		}
		out[i] = min(n, left)
		left -= out[i]
	}
	return out, nil
}

// modules returns the names of the modules of every chunk.
func modules(counts []int) [][]string {
	out := make([][]string, len(counts))
	layer := 0
	for i, n := range counts {
		if i == 0 {
			out[i] = append(out[i], "tok_embeddings")
		}
		for range n {
			out[i] = append(out[i], fmt.Sprintf("layers.%d", layer))
			layer++
		}
		if i == len(counts)-1 {
			out[i] = append(out[i], "norm", "output")
		}
	}
	return out
}
