//go:build cuda && linux

package cuda

/*
#include "cudnn.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"unsafe"
)

// choose queries the heuristic, and takes the first suggestion that works.
func (p *AttentionPlan) choose(workspace int64) {
	g, a := p.g, p.attentions
	whole := g.create(C.planc_dnn_graph)
	if a.device == nil {
		g.setHandle(whole, C.planc_dnn_graph_handle, a.h)
	}
	g.setDescriptors(whole, C.planc_dnn_graph_ops, g.ops...)
	g.finalize(whole)
	h := g.create(C.planc_dnn_heuristic)
	g.setDescriptors(h, C.planc_dnn_heuristic_graph, whole)
	g.setEnum(h, C.planc_dnn_heuristic_mode, C.planc_dnn_of_heuristic, C.planc_dnn_mode_a)
	if a.device != nil {
		g.setDescriptors(h, C.planc_dnn_heuristic_device, a.device)
	}
	g.finalize(h)
	n := g.getAttribute(h, C.planc_dnn_heuristic_results, C.planc_dnn_of_descriptor, 0, nil)
	var configs []*descriptor
	for range n {
		configs = append(configs, g.create(C.planc_dnn_config))
	}
	configs = g.getDescriptors(h, C.planc_dnn_heuristic_results, configs)
	last := error(errNoAttention)
	for _, c := range configs {
		p.try(c, workspace)
		if g.err == nil {
			return
		}
		last, g.err = g.err, nil
	}
	if g.err == nil {
		g.err = fmt.Errorf("none of %d engines works with %d bytes of workspace: %w", len(configs), workspace, last)
	}
}

// try checks that a suggestion is deterministic and works with the given bytes of workspace, and makes it
// the plan.
func (p *AttentionPlan) try(config *descriptor, workspace int64) {
	g := p.g
	engine := g.getDescriptors(config, C.planc_dnn_config_engine, []*descriptor{g.create(C.planc_dnn_engine)})
	if len(engine) == 0 {
		if g.err == nil {
			g.err = fmt.Errorf("a configuration without an engine: %w", errNoAttention)
		}
		return
	}
	var notes [16]C.int
	n := g.getAttribute(engine[0], C.planc_dnn_engine_notes, C.planc_dnn_of_note, len(notes), unsafe.Pointer(&notes[0]))
	if g.err == nil && slices.Contains(notes[:min(n, len(notes))], C.planc_dnn_nondeterministic) {
		g.err = fmt.Errorf("not deterministic: %w", errNoAttention)
	}
	plan := g.create(C.planc_dnn_plan)
	g.setDescriptors(plan, C.planc_dnn_plan_config, config)
	if p.attentions.device == nil {
		g.setHandle(plan, C.planc_dnn_plan_handle, p.attentions.h)
	} else {
		g.setDescriptors(plan, C.planc_dnn_plan_device, p.attentions.device)
	}
	g.finalize(plan)
	var bytes int64
	g.getAttribute(plan, C.planc_dnn_plan_workspace, C.planc_dnn_of_int64, 1, unsafe.Pointer(&bytes))
	p.Workspace = p.scratch + bytes
	if g.err == nil && p.Workspace > workspace {
		g.err = fmt.Errorf("needs %d bytes of workspace: %w", p.Workspace, errNoAttention)
	}
	p.plan = plan
}

// Attend enqueues attention, or its gradient, on the stream. The workspace must have the plan's size.
func (s *Stream) Attend(p *AttentionPlan, at *AttentionOperands, workspace Memory) error {
	bounds(workspace.Bytes, 0, p.Workspace)
	pointers := make([]uint64, len(p.bind))
	for i, what := range p.bind {
		switch {
		case what == fromScratch:
			pointers[i] = uint64(workspace.Pointer)
		case what >= fromValue:
			pointers[i] = uint64(uintptr(p.values)) + 4*uint64(what-fromValue)
		default:
			pointers[i] = uint64(at[what])
		}
		if what < fromValue && pointers[i]%Alignment != 0 {
			panic(fmt.Sprintf("cuda: operand %d of attention is misaligned, at %#x", what, pointers[i]))
		}
	}
	if err := dnnError(C.planc_cudnnSetStream(p.attentions.h, C.cudaStream_t(unsafe.Pointer(s.handle()))), "cudnnSetStream",
		""); err != nil {
		return err
	}
	g := &descriptorBuilder{}
	pack := g.create(C.planc_dnn_pack)
	own := uint64(workspace.Pointer) + uint64(p.scratch)
	g.set(pack, C.planc_dnn_pack_uids, C.planc_dnn_of_int64, len(p.uids), unsafe.Pointer(&p.uids[0]))
	g.set(pack, C.planc_dnn_pack_pointers, C.planc_dnn_of_pointer, len(pointers), unsafe.Pointer(&pointers[0]))
	g.set(pack, C.planc_dnn_pack_workspace, C.planc_dnn_of_pointer, 1, unsafe.Pointer(&own))
	g.finalize(pack)
	if g.err == nil {
		g.err = dnnError(C.planc_cudnnBackendExecute(p.attentions.h, p.plan.d, pack.d), "cudnnBackendExecute",
			"attention of %+v", p.Attention)
	}
	err := g.err
	if e := g.close(); err == nil {
		err = e
	}
	return err
}
