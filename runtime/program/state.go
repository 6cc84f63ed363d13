package program

import "slices"

// TensorTypes returns the types in which the program stores its tensors.
func (p *Program) TensorTypes() Types {
	if p.Types == (Types{}) {
		return Types{Compute: p.Elem, Params: p.Elem, Grads: p.Elem, Reduce: p.Elem, Master: p.Elem, Moments: p.Elem}
	}
	return p.Types
}

// HasMaster reports whether the optimizer has its own copy of the parameters.
func (p *Program) HasMaster() bool {
	t := p.TensorTypes()
	return t.Master != t.Params
}

// HasMoments reports whether the optimizer has state. SGD that was compiled for a momentum of 0 has none.
func (p *Program) HasMoments() bool { return p.Optim != SGD || p.Stages[0].Arena.Moment1.Size > 0 }

// HasExpertBias reports whether the model adds a bias to the experts' scores for the choice of experts.
func (p *Program) HasExpertBias() bool {
	return slices.ContainsFunc(p.Params, func(x Param) bool { return x.Choices > 0 })
}

// ReplicasMeet reports whether forward passes gather parameters from other replicas or send tokens to their experts.
func (p *Program) ReplicasMeet() bool {
	return p.Experts.Copies > 0 || slices.ContainsFunc(p.Stages, func(s Stage) bool { return s.Gather > 0 })
}

// LargestArena returns the size of the largest arena in bytes.
func (p *Program) LargestArena() (n int64) {
	for i := range p.Stages {
		n = max(n, int64(p.Stages[i].Arena.Size))
	}
	return n
}

// StateRegions returns the regions whose content outlives a step.
func (a *Arena) StateRegions() []Region { return []Region{a.Params, a.Master, a.Moment1, a.Moment2} }
