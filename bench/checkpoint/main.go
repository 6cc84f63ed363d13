// Checkpoint measures on this machine what saving checkpoints costs a training run. It compiles a GPT-2 of a chosen
// width and runs it in turns: without checkpoints, with checkpoints that are written while training continues, and with
// checkpoints that are written between steps. It prints one line a figure, with what it must be.
//
//	go run ./bench/checkpoint [-hidden 768] [-layers 12] [-every 4] [-turns 3] [-dir FOLDER]
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

var (
	hidden = flag.Int("hidden", 768, "width of the model")
	layers = flag.Int("layers", 12, "layers of the model")
	batch  = flag.Int("batch", 2, "sequences of 256 tokens a step")
	every  = flag.Int("every", 4, "steps between checkpoints")
	saves  = flag.Int("saves", 3, "checkpoints of a run before the last one")
	turns  = flag.Int("turns", 3, "runs of each kind")
	folder = flag.String("dir", "", "folder of the runs, on the disk to measure; without it a temporary one")
)

const job = `model: {model_type: gpt2, vocab_size: 256, n_positions: 256, n_embd: %d, n_layer: %d, n_head: %d}
data: {train: data.txt}
cluster: 1xcpu
train: {seq_len: 256, global_batch: %d, steps: 1000000, precision: f32, checkpoint: {every: 1000000, keep_last: 1}}
`

func main() {
	flag.Parse()
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "checkpoint:", err)
		os.Exit(1)
	}
}

// run is what the log of one run says, in seconds.
type run struct {
	steps        []float64 // during which nothing was written
	busy         []float64 // during which a checkpoint was written
	stalls       []float64 // of each checkpoint but the last
	writes       []float64
	bytes        int64   // of a checkpoint
	first        float64 // from the start to the first step
	peak, copied int64
}

func measure() error {
	dir := *folder
	if dir == "" {
		var err error
		dir, err = os.MkdirTemp("", "planc-checkpoint")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	bin, err := compile(dir)
	if err != nil {
		return err
	}
	var none, during, between, resumed run
	for range *turns {
		for _, kind := range []struct {
			out   *run
			flags []string
		}{
			{&none, []string{"--checkpoint-every", "0"}},
			{&during, []string{"--checkpoint-every", fmt.Sprint(*every), "--set", "train.checkpoint.async=true"}},
			{&between, []string{"--checkpoint-every", fmt.Sprint(*every), "--set", "train.checkpoint.async=false"}},
		} {
			if err := os.RemoveAll(filepath.Join(dir, "run")); err != nil {
				return err
			}
			if err := kind.out.train(dir, bin, *every*(*saves+1), kind.flags...); err != nil {
				return err
			}
		}
		// it continues the last run
		if err := resumed.train(dir, bin, *every*(*saves+1)+2); err != nil {
			return err
		}
		plain, err := writePlain(filepath.Join(dir, "plain"), during.bytes)
		if err != nil {
			return err
		}
		none.writes = append(none.writes, plain)
	}
	report(&none, &during, &between, &resumed)
	return nil
}

func report(none, during, between, resumed *run) {
	step := median(none.steps)
	fmt.Printf("step %.3f s without checkpoints; checkpoint of %.1f MB; %d turns, %d steps\n", step,
		float64(during.bytes)/1e6, *turns, len(none.steps))
	fmt.Printf("stall per save            %.3f s (largest %.3f), at most %.3f; between steps %.3f s\n",
		median(during.stalls), slices.Max(during.stalls), max(step, 0.5), median(between.stalls))
	plain := median(none.writes)
	fmt.Printf("write speed               %.0f MB/s while training, %.0f MB/s between steps; plain writes %.0f MB/s: "+
		"ratio %.2f between steps, at least 0.80\n", float64(during.bytes)/1e6/median(during.writes),
		float64(during.bytes)/1e6/median(between.writes), float64(during.bytes)/1e6/plain,
		plain/median(between.writes))
	if len(during.busy) > 0 {
		fmt.Printf("throughput while writing  %.1f %% of %d steps, at least 98 %%\n", 100*step/median(during.busy),
			len(during.busy))
	}
	fmt.Printf("resume                    %.2f s from the start to the end of the first step; %.2f s without a "+
		"checkpoint\n", resumed.first, none.first)
	fmt.Printf("peak host memory          %.0f MB, and %.0f MB without checkpoints; the copy is %.0f MB\n",
		float64(during.peak)/1e6, float64(none.peak)/1e6, float64(during.copied)/1e6)
}

// compile writes the job and its data, and returns the training program.
func compile(dir string) (string, error) {
	text := fmt.Sprintf(job, *hidden, *layers, max(1, *hidden/64), *batch)
	data := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog. "), 20_000)
	for name, content := range map[string][]byte{"job.yaml": []byte(text), "data.txt": data} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
			return "", err
		}
	}
	bin := filepath.Join(dir, "train")
	out, err := exec.Command("go", "run", "./cmd/planc", "compile", filepath.Join(dir, "job.yaml"), "-o",
		bin).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("planc compile: %w\n%s", err, out)
	}
	return bin, nil
}

// train runs the program and adds what its log says.
func (r *run) train(dir, bin string, steps int, flags ...string) error {
	cmd := exec.Command(bin, append([]string{"--dir", filepath.Join(dir, "run"), "--steps", fmt.Sprint(steps), "--log",
		"json"}, flags...)...)
	cmd.Dir = dir
	begun := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	var summary struct {
		First int    `json:"first_step"`
		Peak  int64  `json:"memory_bytes"`
		Copy  int64  `json:"checkpoint_copy_bytes"`
		Path  string `json:"checkpoint"`
	}
	if err := json.Unmarshal(out, &summary); err != nil {
		return fmt.Errorf("summary: %w\n%s", err, out)
	}
	r.peak, r.copied = max(r.peak, summary.Peak), summary.Copy
	if err := r.size(summary.Path); err != nil {
		return err
	}
	return r.read(filepath.Join(dir, "run", "metrics.jsonl"), begun, summary.First, steps)
}

func (r *run) size(path string) error {
	files, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	r.bytes = 0
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			return err
		}
		r.bytes += info.Size()
	}
	return nil
}

// read adds the steps and checkpoints of a log. A checkpoint was written during a step if it was at its middle.
func (r *run) read(path string, begun time.Time, first, last int) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	type line struct {
		T      float64
		Step   int
		Event  string
		StepS  float64 `json:"step_s"`
		StallS float64 `json:"stall_s"`
		WriteS float64 `json:"write_s"`
	}
	var steps []line
	ended, pending := map[int]float64{}, map[int]float64{} // end of a step; seconds of writing its checkpoint
	for text := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return err
		}
		switch {
		case l.Event == "checkpoint" && l.Step < last && l.Step >= first:
			r.stalls, r.writes = append(r.stalls, l.StallS), append(r.writes, l.WriteS)
			pending[l.Step] = l.StallS + l.WriteS
		case l.StepS > 0 && l.Step >= first:
			steps = append(steps, l)
			ended[l.Step] = l.T
		}
	}
	for _, s := range steps {
		if s.Step == first {
			r.first = s.T - float64(begun.UnixNano())/1e9
			continue
		}
		writing := false
		for step, seconds := range pending {
			writing = writing || s.Step > step && s.T-s.StepS/2 < ended[step]+seconds
		}
		if writing {
			r.busy = append(r.busy, s.StepS)
		} else {
			r.steps = append(r.steps, s.StepS)
		}
	}
	return nil
}

// writePlain returns the seconds in which the bytes are written to a new file and synced.
func writePlain(path string, size int64) (float64, error) {
	begun := time.Now()
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer os.Remove(path)
	defer f.Close()
	chunk := make([]byte, 1<<20)
	for size > 0 {
		n, err := f.Write(chunk[:min(size, int64(len(chunk)))])
		if err != nil {
			return 0, err
		}
		size -= int64(n)
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return time.Since(begun).Seconds(), nil
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	if len(s) == 0 {
		return 0
	}
	return s[len(s)/2]
}
