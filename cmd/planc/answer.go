package main

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// answer describes the output of plan or explain: what the command adds to the document, and how it renders the
// document.
type answer struct {
	lock     lockFlags
	complete func(*loaded, *document, *decision) error
	screen   func(*document) string
	brief    bool // if the lock is stale, print only the difference and not the screen
}

// answer decides the job's plan and prints the answer as a document or as a screen.
func (a *app) answer(args []string, f jobFlags, as answer) error {
	j, err := a.loadHere(args, f)
	if err == nil {
		err = a.save(j, f)
	}
	if err != nil {
		return err
	}
	found, err := a.ask(j, as.lock)
	if err != nil {
		return err
	}
	d := newDocument(j, found)
	err = a.runSearches(func() error { d.FindTightFit(); return nil })
	if err != nil {
		return err
	}
	if err := as.complete(j, d, found); err != nil {
		return err
	}
	if err := a.show(j, d, found, as); err != nil {
		return err
	}
	if found.Unfit != nil {
		return noPlanFits(j, found.Unfit, true)
	}
	if as.lock.update {
		return a.update(j, found)
	}
	return nil
}

// show prints the answer.
func (a *app) show(j *loaded, d *document, found *decision, as answer) error {
	l := found.lock
	if a.json {
		return a.printJSON(d)
	}
	if l.file == nil || l.isObeyed() && !as.lock.update {
		return a.print(as.screen(d))
	}
	last := "Nothing was written. To accept the new plan, repeat the command with --update."
	if as.lock.update {
		last = ""
	}
	text := lockDifference(j, found).screen(last)
	if !as.brief {
		text = as.screen(d) + "\n" + text
	}
	return a.print(text)
}

// update writes the lock of the plan that was found.
func (a *app) update(j *loaded, found *decision) error {
	p, err := a.program(j, found.Best.Plan, nil)
	if err != nil {
		return err
	}
	found.expect = j.expected(found.Best)
	l, f := found.lock, newLock(found.lock, found, programHash(p))
	if l.isObeyed() && sameText(l.text, f.Bytes()) {
		a.notef("%s is unchanged", l.name())
		return nil
	}
	if err := a.writeLock(l, f); err != nil {
		return err
	}
	if j.overridden {
		a.notef("note: the lock is for the job as changed by flags; it does not hold until %s has the same values",
			slashed(j.path))
	}
	return nil
}

// emulatedFP8 is the note on fp8 for a CPU (docs/concepts/fp8.md).
const emulatedFP8 = "fp8 is emulated on a CPU: operands are rounded to fp8 and multiplied in f32; bf16 is faster and " +
	"takes as much memory"

func newHeader(j *loaded, lock string) header {
	c := j.Hardware
	h := header{lock: lock, seqLen: j.Train.SeqLen, globalBatch: j.Train.GlobalBatch,
		precision: precisionName(j.Train.Precision), rounding: roundingWords(j.Train.Precision),
		links: links(c), link: linkNames[c.Node.Link.Kind], memory: int64(c.GPU.Memory()), device: "GPU",
		rows: screenRows, pinned: search.PinsOf(&j.Plan).Words(),
		command: nextCommands(j), isMemoryMeasured: j.HasMeasuredMemory()}
	h.measured = j.measuredWords()
	if c.IsCPU() {
		h.device = "device"
		if j.Train.Precision.Compute == "fp8" {
			h.emulationNote = emulatedFP8
		}
	}
	if dev, ok := c.DeviceOf(&engines.EngineOf(j.Train.Engine).Kernels, j.Train.Precision.Compute); ok {
		h.peak = dev.Peak.String()
	}
	return h
}

// nextCommands returns commands to type after plan. They all work for the job.
func nextCommands(j *loaded) string {
	words := []string{"planc explain"}
	c, n := j.Hardware, j.Hardware.Devices()
	switch {
	case spec.CheckCompile(j.Job) == nil && j.CheckFixedHardware() == nil:
		words = append(words, "planc compile -o train")
	case len(c.Network) > 0:
		words = append(words, fmt.Sprintf("planc plan --sweep gpus=%d..%d", n, 8*n))
	case n > 1:
		words = append(words, fmt.Sprintf("planc plan --sweep gpus=1..%d", n))
	}
	words = append(words, "planc explain --why-not ...")
	if line := strings.Join(words, " · "); layout.Width(line) <= layout.ScreenWidth {
		return line
	}
	return strings.Join([]string{words[0], words[len(words)-1]}, " · ")
}

// precisionName returns the name of a precision preset, or "TYPE mixed" for other precisions.
func precisionName(p spec.Precision) string {
	if spec.Presets[p.Compute] == p {
		return p.Compute
	}
	return p.Compute + " mixed"
}

// roundingWords returns how parameters are rounded, if not to nearest.
func roundingWords(p spec.Precision) (words []string) {
	if p.Rounding != "" {
		words = append(words, p.Rounding+" rounding")
	}
	return words
}

var linkNames = map[string]string{"nvswitch": "NVSwitch", "nvlink": "NVLink", "pcie": "PCIe", "xgmi": "xGMI"}

// links describes the cluster's links: "NVSwitch 450 GB/s".
func links(c *costmodel.Cluster) (words []string) {
	if name := linkNames[c.Node.Link.Kind]; name != "" && c.Node.Devices > 1 {
		words = append(words, fmt.Sprintf("%s %.0f GB/s", name, float64(c.Node.Link.Bandwidth)/1e9))
	}
	if c.Nodes > 1 && len(c.Network) > 0 {
		t := c.Network[0]
		words = append(words, fmt.Sprintf("%d × %.0f Gb/s", t.NICs, float64(t.Bandwidth)*8/1e9))
	}
	return words
}
