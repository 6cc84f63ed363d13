package interop_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// oracle is a Python process that answers questions with a trainer's own parser. It starts once and answers thousands
// of questions, one JSON object a line.
type oracle struct {
	name    string
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  *tail
	asking  sync.Mutex
	lastAsk []byte
}

// startOracle starts testdata/NAME.py with the interpreter PLANC_ORACLE, or skips the test. Further arguments go to the
// driver.
func startOracle(t *testing.T, name string, args ...string) *oracle {
	t.Helper()
	python := os.Getenv("PLANC_ORACLE")
	if python == "" {
		t.Skip("PLANC_ORACLE is not set: it is the python of a folder that scripts/oracle DIR makes")
	}
	cmd := exec.Command(python, append([]string{filepath.Join("testdata", name+".py")}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	o := &oracle{name: name, stderr: &tail{}}
	cmd.Stderr = o.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.in = stdin
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.out = bufio.NewReaderSize(stdout, 1<<20)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = o.in.Close()
		_ = cmd.Wait()
	})
	var ready struct{ Ready bool }
	o.read(t, &ready)
	if !ready.Ready {
		t.Fatalf("%s.py did not start", name)
	}
	return o
}

// drawsOr returns how many random plans a test draws: 2,000 if the trainers' parsers are there, and few otherwise,
// because go test ./... is quick.
func drawsOr(few int) int {
	if os.Getenv("PLANC_ORACLE") == "" {
		return few
	}
	return 2000
}

// ask sends a question and decodes the answer into a pointer. refusal is the trainer's error, "" if it accepts.
func (o *oracle) ask(t *testing.T, question, answer any) (refusal string) {
	t.Helper()
	o.asking.Lock()
	defer o.asking.Unlock()
	line, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	o.lastAsk = line
	if _, err := o.in.Write(append(line, '\n')); err != nil {
		t.Fatalf("%s.py: %v\n%s", o.name, err, o.stderr.text())
	}
	var raw json.RawMessage
	o.read(t, &raw)
	var refused struct{ Error string }
	if err := json.Unmarshal(raw, &refused); err != nil {
		t.Fatal(err)
	}
	if refused.Error != "" {
		return refused.Error
	}
	if answer != nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(answer); err != nil {
			t.Fatal(err)
		}
	}
	return ""
}

// read decodes one line of the process.
func (o *oracle) read(t *testing.T, into any) {
	t.Helper()
	line, err := o.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%s.py ended at %s: %v\n%s", o.name, o.lastAsk, err, o.stderr.text())
	}
	if err := json.Unmarshal(line, into); err != nil {
		t.Fatalf("%s.py printed %q: %v", o.name, line, err)
	}
}

// tail keeps the end of what a process prints.
type tail struct {
	mu   sync.Mutex
	data []byte
}

// tailBytes is how much of a process's errors a failing test shows.
const tailBytes = 4000

func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, p...)
	if len(b.data) > tailBytes {
		b.data = b.data[len(b.data)-tailBytes:]
	}
	return len(p), nil
}

func (b *tail) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.data)
}

// differences counts how often planc and a trainer disagree, by reason, and keeps the first example of each.
type differences struct {
	counts   map[string]int
	examples map[string]string
}

func newDifferences() *differences {
	return &differences{map[string]int{}, map[string]string{}}
}

// add counts a difference.
func (d *differences) add(reason, example string) {
	if d.counts[reason] == 0 {
		d.examples[reason] = example
	}
	d.counts[reason]++
}

// compare fails the test if the differences have other reasons than the known ones. A known reason that does not occur
// also fails, so that the list stays true. known maps reasons to explanations.
func (d *differences) compare(t *testing.T, known map[string]string) {
	t.Helper()
	for reason, n := range d.counts {
		if known[reason] == "" {
			t.Errorf("%d times: %s\n%s", n, reason, d.examples[reason])
		} else {
			t.Logf("%d times: %s: %s", n, reason, known[reason])
		}
	}
	for reason := range known {
		if d.counts[reason] == 0 {
			t.Errorf("%q did not occur: remove it from the known differences", reason)
		}
	}
}

// The oracle survives a refused question, and answers in order.
func TestMegatronOracle(t *testing.T) {
	o := startOracle(t, "megatron")
	line := func(tp int) []string {
		return strings.Fields(fmt.Sprintf("--tensor-model-parallel-size %d --num-layers 8 --hidden-size 1024 "+
			"--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 "+
			"--global-batch-size 16 --bf16 --lr 1e-4 --train-iters 10 --tokenizer-type NullTokenizer "+
			"--vocab-size 32000 --transformer-impl local", tp))
	}
	for tp, legal := range map[int]bool{2: true, 3: false, 4: true} {
		var got struct {
			Args struct {
				TP int `json:"tensor_model_parallel_size"`
				DP int `json:"data_parallel_size"`
			}
		}
		refusal := o.ask(t, map[string]any{"args": line(tp), "world": 8, "env": map[string]string{
			"CUDA_DEVICE_MAX_CONNECTIONS": "1"}}, &got)
		if (refusal == "") != legal {
			t.Errorf("tp %d: %q", tp, refusal)
		} else if legal && (got.Args.TP != tp || got.Args.DP != 8/tp) {
			t.Errorf("tp %d: %+v", tp, got)
		}
	}
}
