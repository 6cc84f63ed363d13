//go:build cuda && linux

package cuda

import "fmt"

// AttentionParts is attention that is computed for a part of a batch at a time, so that the workspace
// suffices.
type AttentionParts struct {
	*AttentionPlan
	Parts int
}

// MaxAttentionWorkspace is the largest workspace that planc allows for cuDNN attention, in bytes. cuDNN's own
// front end allows as much for the gradient of the scores. The backward pass is split so that the scores of
// some sequences fit. If those of one sequence do not fit, planc's kernel computes the gradient.
const MaxAttentionWorkspace = 256 << 20

// PrepareParts is Prepare with as few parts as the workspace allows. The deterministic gradient stores the
// gradient of all scores of a part in the workspace, in 16 bits.
func (a *Attentions) PrepareParts(x Attention, grad bool, workspace int64) (p AttentionParts, err error) {
	whole := x.Batch
	err = fmt.Errorf("%w: the scores of one sequence need more than %d bytes", errNoAttention, workspace)
	for n := 1; n <= whole; n++ {
		x.Batch = whole / n
		if whole%n != 0 || grad && x.scoreBytes() > workspace || n > 1 && x.overlaps() {
			continue
		}
		p.AttentionPlan, err = a.Prepare(x, grad, workspace)
		if err == nil {
			p.Parts = n
			return p, nil
		}
		if !grad {
			break
		}
	}
	return AttentionParts{}, err
}

// scoreBytes returns the bytes of the scores of all heads in 16 bits.
func (x *Attention) scoreBytes() int64 {
	return 2 * int64(x.Batch) * int64(x.KHeads*x.Group) * int64(x.Seq) * int64(x.KSeq)
}

// OperandBytes returns the size of each operand, with what lies between its positions.
func (x *Attention) OperandBytes() (n [attentionOperands]int) {
	heads := x.KHeads * x.Group
	o, q, k := heads*x.Dim, heads*x.Dim, x.KHeads*x.Dim
	if x.Pitch > 0 {
		q, k = x.Pitch, x.Pitch
	}
	o, q, k = 2*x.Batch*x.Seq*o, 2*x.Batch*x.Seq*q, 2*x.Batch*x.KSeq*k
	return [...]int{AttentionO: o, AttentionL: 4 * x.Batch * x.Seq * heads, AttentionQ: q, AttentionK: k,
		AttentionV: k, AttentionDO: o, AttentionDQ: q, AttentionDK: k, AttentionDV: k}
}

// overlaps reports whether a part of the batch ends at an address at which, by its alignment, the next must
// not begin.
func (x *Attention) overlaps() bool {
	for _, n := range x.OperandBytes() {
		if n%Alignment != 0 {
			return true
		}
	}
	return false
}

// AttendParts enqueues each part in turn.
func (s *Stream) AttendParts(p AttentionParts, at AttentionOperands, workspace Memory) error {
	step := p.OperandBytes()
	for range p.Parts {
		if err := s.Attend(p.AttentionPlan, &at, workspace); err != nil {
			return err
		}
		for i := range at {
			at[i] += Pointer(step[i])
		}
	}
	return nil
}
