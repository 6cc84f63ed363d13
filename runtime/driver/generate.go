package driver

import (
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/report"
)

// generateFlag is the flag of the option Generate, for messages.
const generateFlag = "--generate"

// generate is Run for the option Generate: it continues the prompt with the parameters of a checkpoint. It opens no
// data, and writes no files.
func (r *run) generate() error {
	r.report, r.metrics = r.o.printer(), &report.Metrics{}
	if err := r.applySettings(); err != nil {
		return err
	}
	prompt := r.prompt(r.o.Generate, generateFlag)
	prompt.IsTokens = r.p.Model.Vocab != 256 && slices.ContainsFunc(r.s.Data.Train, func(f program.File) bool {
		return strings.EqualFold(filepath.Ext(f.Path), ".bin")
	})
	if err := prompt.Check(); err != nil {
		return err
	}
	if err := r.member.join(r.ctx); err != nil {
		return err
	}
	if err := r.openDevices(); err != nil {
		return err
	}
	if err := r.member.checkAgreement(); err != nil {
		return err
	}
	if err := r.fits(); err != nil {
		return err
	}
	if err := r.startCrew(); err != nil {
		return err
	}
	c, err := r.checkpoints.shared()
	if err != nil {
		return err
	}
	from, err := r.loadParams(c, generateFlag, "generate from")
	if err != nil {
		return err
	}
	if err := r.crew.push(); err != nil {
		return err
	}
	r.report.Info("generate: from "+from, "generate", "from", from)
	text, err := r.evaluator.sample(r.o.Generate)
	if err == nil && r.member.isStopRequested() {
		err = exit.Errorf(exit.OnRequest, "stopped on request")
	}
	r.res.Sample, r.res.Steps = text, r.done.step
	return err
}

// startCrew creates the ranks and opens their devices.
func (r *run) startCrew() (err error) {
	threads := threadsEach(goruntime.GOMAXPROCS(0), r.team.Count)
	cpu.Threads(r.team.Count, threads)
	r.crew, err = newCrew(r.p, r.o.Timeout, r.team)
	if err != nil {
		return err
	}
	r.crew.world.Watch = r.o.OnCall
	r.member.guardTeam()
	for _, k := range r.crew.ranks {
		k.SetDiagnosis(r.o.Poison && r.p.Devices == nil, r.o.OnChoice)
	}
	if err := r.crew.openDevices(r.p.Devices); err != nil {
		return err
	}
	for _, k := range r.crew.mine {
		k.EnableOverlap(threads)
	}
	return nil
}

// shared returns the checkpoint that --resume names, which the first process chooses; nil if there is none.
func (r *checkpoints) shared() (c *ckpt.Checkpoint, err error) {
	if r.team.IsFirst() {
		c, _, err = r.checkpointToResume()
	}
	if err == nil {
		c, _, err = shareOrigin(r.team, c, false)
	}
	return c, err
}
