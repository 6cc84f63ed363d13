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
	threads   = flag.Int("threads", 1, "threads of planc's and the peer's processes, over all ranks")
	ranks     = flag.Int("ranks", 1, "data parallel ranks; the peer's are processes over Gloo")
	precision = flag.String("precision", "f32", "f32 or bf16 (the peer's autocast)")
	rounds    = flag.Int("rounds", 3, "measurement rounds, each of planc and then of the peer")
	steps     = flag.Int("steps", 0, "steps of a round; 0: about two seconds' worth")
	mode      = flag.String("peer", "eager", "eager, compile, or none")
	python    = flag.String("python", "python3", "a Python that has PyTorch 2 (and transformers, for llama)")
	isa       = flag.String("cpu-isa", "auto", "planc's instruction set (PLANC_CPU_ISA)")
	perCall   = flag.Bool("calls", false, "print the time of each kernel call in a step of planc instead")
	keep      = flag.String("keep", "", "folder that keeps jobs and binaries; without it they are removed")
)

func main() {
	flag.Parse()
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "step:", err)
		os.Exit(1)
	}
}

// makeFolder creates a folder, unless it exists, and returns its absolute path.
func makeFolder(name string) (string, error) {
	dir, err := filepath.Abs(name)
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err != nil {
		return "", fmt.Errorf("cannot use the folder %s: %w", name, err)
	}
	return dir, nil
}

func measure() error {
	dir, err := makeFolder(*keep)
	if *keep == "" {
		dir, err = os.MkdirTemp("", "planc-step")
		defer os.RemoveAll(dir)
	}
	if err != nil {
		return err
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
	ours, peer               []float64
	rss, peerRSS             int64
	first                    float64
	oursMedians, peerMedians []float64 // by round
	limits                   []float64 // GFLOP/s of multiply-adds: the mean of right before and after planc's rounds
	sustained                []float64 // the same for the sustained rate
}

// fractionOfPeak returns the rate of a step's multiply-adds as a fraction of the rates of its own round: the median
// over the rounds. rates are r's limits or sustained rates.
func (r *result) fractionOfPeak(m model, rates []float64) float64 {
	peakGflops := make([]float64, len(rates)) // 1e9 flops that the rate allows in a step's time
	for i, limit := range rates {
		peakGflops[i] = limit * r.oursMedians[i]
	}
	return m.flops() / 1e9 / median(peakGflops)
}

func (r *result) print(m model) {
	floor := m.flops() / median(r.limits) / 1e9
	ours := median(r.ours)
	fmt.Printf("%-6s %9.2f %9.2f %6.1f%% %6.1f%% %10.2f-%-10.2f", m.name, 1e3*floor, 1e3*ours,
		100*r.fractionOfPeak(m, r.limits), 100*r.fractionOfPeak(m, r.sustained),
		1e3*slices.Min(r.ours), 1e3*slices.Max(r.ours))
	if len(r.peer) == 0 {
		fmt.Printf(" %9s %9s %5dM %9s %7.3f\n", "-", "-", r.rss>>20, "-", r.first)
		return
	}
	peer := median(r.peer)
	fmt.Printf(" %9.2f %8.2fx %5dM %8dM %7.3f  ratio by round", 1e3*peer, peer/ours, r.rss>>20,
		r.peerRSS>>20, r.first)
	for i := range r.oursMedians {
		fmt.Printf(" %.2f", r.peerMedians[i]/r.oursMedians[i])
	}
	fmt.Println()
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
