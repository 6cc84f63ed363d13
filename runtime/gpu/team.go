//go:build cuda && linux

package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/comm"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/meet"
)

// Meet connects to the other processes of a launch.
func (m *machine) Meet(ctx context.Context, l *launch.Launch, program, settings string, within time.Duration,
	say func(string)) (rt.Peers, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	at := meet.Place{Addr: l.Addr, UsedBy: l.PortUser, OtherMachines: !l.SharedAddr, Say: say}
	p, err := meet.Join(ctx, at, meet.Hello{Process: l.Process, Processes: l.Processes, Ranks: l.Ranks, First: l.First,
		Count: l.Count,
		Host:  host, Program: program, Run: l.Run, Settings: settings}, within)
	refused, limited := (*meet.Refused)(nil), (*meet.Limited)(nil)
	if errors.As(err, &refused) || errors.As(err, &limited) {
		return nil, &rt.ExitError{Code: rt.ExitCannot, Err: err}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// choose selects this process's GPUs in the order of its ranks: those from its number on the node on,
// unless the launcher shows each process only its own.
func (m *machine) choose(t *rt.Team) error {
	visible := len(m.gpus)
	how := os.Getenv(shareGPU)
	m.shared = t.Ranks > 1 && how == "1"
	m.oneGPU = m.shared || t.Ranks > 1 && how == "nccl"
	if m.oneGPU {
		if t.Processes > 1 {
			return fmt.Errorf("%s=%s needs all ranks in one process, but %s has started %d", shareGPU, how, t.By,
				t.Processes)
		}
		m.gpus = m.gpus[:1]
		return nil
	}
	first := t.Local
	if visible == t.Count {
		first = 0
	}
	if t.Processes == 1 && visible < t.Count {
		return fmt.Errorf("the plan has %d ranks and needs a GPU for each, but the driver shows %d: "+
			"compile for as many GPUs, check CUDA_VISIBLE_DEVICES, or start it on several machines with "+
			"--nnodes; %s=1 "+
			"lets all ranks share one GPU, slowly", t.Ranks, visible, shareGPU)
	}
	if visible < first+t.Count {
		return fmt.Errorf("%s gives this process ranks %d to %d, which use the node's GPUs from number %d on, but the "+
			"driver shows only %d GPUs here: "+
			"start as many ranks on a node as it has GPUs, or check CUDA_VISIBLE_DEVICES", t.By, t.First,
			t.First+t.Count-1, first, visible)
	}
	m.gpus = m.gpus[first:][:t.Count]
	return nil
}

// introduce exchanges the GPUs of all processes, checks that no two use the same, and returns a text that
// describes all.
func (m *machine) introduce(t *rt.Team) (string, error) {
	if t.Peers == nil {
		return m.name(), nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	own := []string{m.name(), host}
	for _, g := range m.gpus {
		own = append(own, g.Bus)
	}
	all, err := t.Peers.Exchange([]byte(strings.Join(own, "\n")))
	if err != nil {
		return "", err
	}
	var names, hosts []string
	taken := map[string]int{}
	for process, b := range all {
		words := strings.Split(meet.Lines(string(b)), "\n")
		if len(words) < 2 {
			return "", fmt.Errorf("process %d does not report its GPUs", process)
		}
		names, hosts = append(names, words[0]), append(hosts, words[1])
		for _, bus := range words[2:] {
			place := words[1] + " " + bus
			if other, ok := taken[place]; ok {
				return "", fmt.Errorf("processes %d and %d both use GPU %s of %s: give each process its own with "+
					"CUDA_VISIBLE_DEVICES, or start one process per node", other, process, bus, words[1])
			}
			taken[place] = process
		}
	}
	slices.Sort(hosts)
	on := hosts[0]
	if n := len(slices.Compact(hosts)); n > 1 {
		on = fmt.Sprintf("%d machines", n)
	}
	slices.Sort(names)
	return fmt.Sprintf("%d processes, each with %s, on %s", len(all), strings.Join(slices.Compact(names), " or "), on),
		nil
}

// openNCCL opens NCCL. Process 0 creates the identity by which ranks find each other.
func (m *machine) openNCCL(t *rt.Team) (err error) {
	if t.Ranks == 1 || m.shared {
		return nil
	}
	opened, err := cuda.OpenNCCL()
	if err != nil {
		return err
	}
	own := *opened
	m.nccl = &own
	err = checkTiming()
	if err != nil {
		return err
	}
	m.ncclReport.fixed, m.ctas, err = comm.FixCollectives()
	if err != nil {
		return err
	}
	if t.Process == 0 {
		m.id, err = m.nccl.NewID()
		if err != nil {
			return err
		}
	}
	if t.Peers == nil {
		return nil
	}
	b, err := t.Peers.Broadcast(slices.Concat(m.id[:], []byte(m.nccl.Version+"\n"+m.ncclReport.fixed)))
	if err != nil {
		return err
	}
	if len(b) < len(m.id) {
		return fmt.Errorf("process 0 sent an NCCL identity of %d bytes, expected %d", len(b), len(m.id))
	}
	version, fixed, _ := strings.Cut(string(b[copy(m.id[:], b):]), "\n")
	switch {
	case version != m.nccl.Version:
		return fmt.Errorf("NCCL is %s here (%s), but %s on the machine of process 0: install the same version on all "+
			"machines", m.nccl.Version,
			m.nccl.Path, version)
	case fixed != m.ncclReport.fixed:
		return fmt.Errorf("%s and NCCL's variables make collectives %q here, but %q on the machine of process 0; set "+
			"the same values on all machines", comm.Deterministic, m.ncclReport.fixed, fixed)
	}
	return nil
}

// maxOver returns the largest of the group's numbers, for ranks that do not meet on the host.
func (d *communication) maxOver(group, n int) int {
	c := d.group(group)
	if c == nil {
		return n
	}
	at := cuda.Memory{Pointer: d.own("most", 8), Bytes: 8}
	room := d.staging.At(0, 8)
	putFloats(room.Slice(), float64(n))
	s := d.compute.stream
	rt.Check(s.Upload(at, room))
	rt.Check(c.AllReduce(s, at.Pointer, at.Pointer, 1, cuda.Float64, cuda.Max))
	rt.Check(s.Download(room, at))
	d.await("the largest number of rounds", s.Synchronize)
	return int(getFloat(room.Slice()))
}
