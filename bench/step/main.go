package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

var (
	only      = flag.String("models", "nano,mid,gpt2", "models, of nano, mid, gpt2, llama")
	threads   = flag.Int("threads", 1, "threads of both sides, all ranks together")
	ranks     = flag.Int("ranks", 1, "data parallel ranks; the peer's are processes over Gloo")
	precision = flag.String("precision", "f32", "f32 or bf16 (the peer's autocast)")
	rounds    = flag.Int("rounds", 3, "turns of each side")
	steps     = flag.Int("steps", 0, "steps of a turn; 0: about two seconds' worth")
	mode      = flag.String("peer", "eager", "eager, compile, or none")
	python    = flag.String("python", "python3", "a Python that has PyTorch 2 (and transformers, for llama)")
	isa       = flag.String("cpu-isa", "auto", "instructions of ours")
	perCall   = flag.Bool("calls", false, "instead, what each call of a kernel takes in a step of ours")
	keep      = flag.String("keep", "", "folder for jobs and binaries, to look at; else they are removed")
)

func main() {
	flag.Parse()
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "step:", err)
		os.Exit(1)
	}
}

func measure() error {
	dir := *keep
	if dir == "" {
		var err error
		dir, err = os.MkdirTemp("", "planc-step")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	if dir, err := filepath.Abs(dir); err != nil || os.MkdirAll(dir, 0o777) != nil {
		return fmt.Errorf("cannot use the folder %s (%v)", dir, err)
	}
	g, err := newGauge(dir, *threads)
	if err != nil {
		return err
	}
	limit, err := g.read()
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d threads, %d ranks, %s; limit %.0f GFLOP/s, sustained %.0f\n", runtime.GOARCH, *threads, *ranks,
		*precision, limit.best, limit.sustained)
	fmt.Printf("%-6s %9s %9s %7s %7s %21s %9s %9s %6s %9s %7s\n", "", "floor ms", "planc ms", "share", "sust.",
		"planc min-max", "peer ms", "ratio", "rss", "peer rss", "first s")
	for _, m := range models {
		if !slices.Contains(strings.Split(*only, ","), m.name) {
			continue
		}
		m.precision, m.ranks = *precision, *ranks
		if m.vocab == 0 {
			m.vocab = 256
		}
		if *perCall {
			if err := profileCalls(dir, m, limit.best); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			continue
		}
		r, err := compare(dir, m, g)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		r.print(m)
	}
	return nil
}

// result has the seconds of planc's and PyTorch's steps over all rounds, peak resident bytes of both (PyTorch's minus
// those of an idle process), and the seconds from planc's start to the end of the first step.
type result struct {
	ours, peer       []float64
	rss, peerRSS     int64
	first            float64
	oursAll, peerAll []float64 // medians of the rounds
	limits           []float64 // GFLOP/s of multiply-adds: the mean of right before and after planc's turns
	sustained        []float64 // the same for the sustained rate
}

// share returns the time of a step's multiply-adds at the rates of its own turn, as a share of the step, as the
// median over the turns. rates are r's limits or sustained rates.
func (r *result) share(m model, rates []float64) float64 {
	did := make([]float64, len(rates)) // 1e9 flops that the rate allows in a step's time
	for i, limit := range rates {
		did[i] = limit * r.oursAll[i]
	}
	return m.flops() / 1e9 / median(did)
}

func (r *result) print(m model) {
	floor := m.flops() / median(r.limits) / 1e9
	ours := median(r.ours)
	fmt.Printf("%-6s %9.2f %9.2f %6.1f%% %6.1f%% %10.2f-%-10.2f", m.name, 1e3*floor, 1e3*ours,
		100*r.share(m, r.limits), 100*r.share(m, r.sustained), 1e3*slices.Min(r.ours), 1e3*slices.Max(r.ours))
	if len(r.peer) == 0 {
		fmt.Printf(" %9s %9s %5dM %9s %7.3f\n", "-", "-", r.rss>>20, "-", r.first)
		return
	}
	peer := median(r.peer)
	fmt.Printf(" %9.2f %8.2fx %5dM %8dM %7.3f  ratio by round", 1e3*peer, peer/ours, r.rss>>20,
		r.peerRSS>>20, r.first)
	for i := range r.oursAll {
		fmt.Printf(" %.2f", r.peerAll[i]/r.oursAll[i])
	}
	fmt.Println()
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
