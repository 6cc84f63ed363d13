//go:build cuda && linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/planc-dev/planc/bench/gpu/trial"
	"github.com/planc-dev/planc/cuda"
)

// communicationCall is a call of NCCL that returns its input if there is one rank.
type communicationCall struct {
	name string
	run  func(to cuda.Pointer) error
}

// communicationCalls returns the calls that a training step makes.
func communicationCalls(s *cuda.Stream, c *cuda.Comm, from cuda.Pointer, count int) []communicationCall {
	const t = cuda.Float32
	return []communicationCall{
		{"all-reduce", func(to cuda.Pointer) error { return c.AllReduce(s, to, from, count, t, cuda.Sum) }},
		{"reduce-scatter", func(to cuda.Pointer) error { return c.ReduceScatter(s, to, from, count, t, cuda.Sum) }},
		{"all-gather", func(to cuda.Pointer) error { return c.AllGather(s, to, from, count, t) }},
		{"broadcast", func(to cuda.Pointer) error { return c.Broadcast(s, to, from, count, t, 0) }},
		{"grouped send and receive", func(to cuda.Pointer) error {
			return c.Group(func() error {
				return errors.Join(c.Send(s, from, count, t, 0), c.Receive(s, to, count, t, 0))
			})
		}},
	}
}

// tryNCCL checks that the calls of a non-blocking communicator with one rank return their input: one by one, and from a
// CUDA graph into which all of them were captured. The communicator is split from another, as in training.
func tryNCCL(l *lab, r *Result) error {
	n, err := cuda.OpenNCCL()
	if err != nil {
		return err
	}
	id, err := n.NewID()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	world, err := n.Join(ctx, id, 0, 1, 0)
	if err != nil {
		return err
	}
	c, err := world.Split(ctx, 0, 0, 0)
	if err != nil {
		return err
	}
	const count = 1 << 16
	input := trial.Random("f32", count, 1)
	from, err := l.put(input)
	if err != nil {
		return err
	}
	calls := communicationCalls(l.stream, c, from.Pointer, count)
	results := make([]cuda.Memory, len(calls))
	for i, call := range calls {
		results[i], err = l.put(make([]byte, len(input)))
		if err == nil {
			err = call.run(results[i].Pointer)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", call.name, err)
		}
		err = returnsInput(l, results[i], input, call.name)
		if err != nil {
			return err
		}
	}
	err = replayed(l, calls, results, input)
	if err != nil {
		return fmt.Errorf("from a CUDA graph: %w", err)
	}
	r.note("NCCL %s: with one rank, all-reduce, reduce-scatter, all-gather, broadcast, and a grouped send and receive "+
		"return their %d numbers, call by call and in %d replays of a CUDA graph", n.Version, count, replays)
	return errors.Join(c.Close(ctx), world.Close(ctx))
}

// returnsInput checks that a call's result is its input.
func returnsInput(l *lab, result cuda.Memory, input []byte, name string) error {
	got, err := l.get(result, len(input))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if string(got) != string(input) {
		return fmt.Errorf("NCCL's %s with one rank must return its input, but does not", name)
	}
	return nil
}

// replays is the number of times that the graph of collectives runs.
const replays = 3

// replayed captures the calls into a graph, and checks the results of each replay.
func replayed(l *lab, calls []communicationCall, results []cuda.Memory, input []byte) (err error) {
	graph, err := l.stream.Capture(func() error {
		for i, call := range calls {
			if err := call.run(results[i].Pointer); err != nil {
				return fmt.Errorf("%s: %w", call.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, graph.Close()) }() // before its communicator
	for range replays {
		for _, m := range results {
			if err := l.stream.Fill(m, 0); err != nil {
				return err
			}
		}
		if err := l.stream.Replay(graph); err != nil {
			return err
		}
		for i, m := range results {
			if err := returnsInput(l, m, input, calls[i].name); err != nil {
				return err
			}
		}
	}
	return nil
}
