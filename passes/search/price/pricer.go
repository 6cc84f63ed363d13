package price

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// A pricer has layers, each of which adds to the one before and knows nothing of the next:
//
//	layerProfiler     compiles each kind of layer once, and splits the layers over a pipeline
//	collectiveTimer   times the collectives of a cluster
//	layerTimer        times layers, and gives the first lower bounds of a step
//	memoryPricer      gives the memory of a plan in closed form
//	tablePricer       reads stages, buckets and arenas from the tables of the passes
//	stepBounder       gives closer lower bounds of a step: a closed form, and a simulation
//	Pricer            simulates the step of a plan, and predicts it

// Tie is the relative difference below which two step times count as equal.
const Tie = 1e-9

// layerProfiler compiles the layers of a model, each kind once.
type layerProfiler struct {
	*caches
	problem     *space.Problem
	dims        space.Dims
	precompiler basePrecompiler
}

// collectiveTimer times collectives of layers and of replicas on one cluster.
type collectiveTimer struct {
	layerProfiler
	*clusterCosts
	device costmodel.Device
}

// layerTimer times layers: their compute on a device, and their collectives.
type layerTimer struct {
	collectiveTimer
	space.Options
	exposedTP   float64     // fraction of tensor-parallel collectives that compute waits for
	costScratch []layerCost // memory that is reused
}

// memoryPricer computes the memory of plans.
type memoryPricer struct {
	layerTimer
	arenaCapacity int // bytes of a device that the arena may use
	// bytes of a device for everything that a plan needs, as [costmodel.Memory] counts capacity
	usableBytes int64
	cpu         bool
	moments     int  // optimizer moments per parameter
	ownGPU      bool // planc's own runtime on GPUs: plans need different memory outside the arena

	communicatorCache map[communicatorKey]communicatorMemory

	// memory that is reused for each plan
	activationScratch activationMemory
	stageScratch      []stageBuffers
	stateScratch      []stateMemory
	countScratch      []kindCount
}

// tablePricer computes times and memory from the tables that the passes make of a plan.
type tablePricer struct {
	memoryPricer
	// whether data-parallel collectives overlap compute: with ZeRO 0, and with ZeRO 1 and above
	overlap [2]bool
}

// stepBounder computes lower bounds of the steps of plans.
type stepBounder struct {
	tablePricer
	zeroTimeCache map[zeroTimeKey][]zeroTime
	postPassCache map[postPassKey][]postPassBound
	pipelineEnds  map[simulatedBoundKey]costmodel.Seconds
	boundScratch  []chunkBound // memory that is reused
}

// Pricer predicts the memory and the step of plans. It is for one goroutine at a time, see [Pricer.Fork].
type Pricer struct {
	stepBounder
	modelFlops   float64
	formula      string
	bucketPrices map[bucketKey]*bucketPrice
	lastUpdates  pricedUpdates
	triedScratch []triedCount // memory that is reused
}

// New returns the pricer of a problem.
func New(p *space.Problem) (*Pricer, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	s := &Pricer{}
	device, _ := p.Cluster.DeviceOf(&p.PricedEngine().Kernels, p.Computes())
	empty := p.Cluster.MemoryOf(func(string) int { return 0 }, costmodel.Outside{}, p.Cluster.Devices(), p.Headroom)
	s.problem, s.dims = p, space.DimsOf(p.Model)
	s.caches, s.clusterCosts, s.device = newCaches(), newClusterCosts(p, device), device
	s.Options = space.NewOptions(s.dims.Seq)
	s.exposedTP = p.PricedEngine().ExposedTP(p.Cluster)
	s.arenaCapacity, s.usableBytes = int(empty.Capacity-empty.Total), empty.Capacity
	s.cpu, s.moments = p.Cluster.IsCPU(), p.Recipe.Moments()
	s.ownGPU = !s.cpu && p.PricedEngine().Own
	s.overlap = [2]bool{s.overlaps(0), s.overlaps(1)}
	s.modelFlops, s.formula = modelFlops(p.Model), flopsFormula(p.Model)
	s.zeroTimeCache, s.postPassCache = map[zeroTimeKey][]zeroTime{}, map[postPassKey][]postPassBound{}
	s.pipelineEnds = map[simulatedBoundKey]costmodel.Seconds{}
	s.bucketPrices = map[bucketKey]*bucketPrice{}
	s.communicatorCache = map[communicatorKey]communicatorMemory{}
	return s, nil
}

// MinStep returns the step in which all devices compute only the model's own flops, at their highest rate.
func (s *Pricer) MinStep() costmodel.Seconds {
	flops := float64(s.problem.GlobalBatch) * s.modelFlops
	return costmodel.Seconds(flops / float64(s.device.Fastest()) / float64(s.problem.Cluster.Devices()))
}

// ArenaCapacity returns the bytes of a device that a plan's arena may use. It is negative if a device does not even
// hold the CUDA context and libraries that every plan needs.
func (s *memoryPricer) ArenaCapacity() int { return s.arenaCapacity }

// UsableBytes returns the bytes of a device for everything that a plan needs, see [costmodel.Memory].
func (s *memoryPricer) UsableBytes() int64 { return s.usableBytes }

// roundPart returns the part of a node's slots that evenly distributed tokens fill, or 1 if the node has no slots.
func roundPart(n *ir.Node, tokens int, sent *ir.Node) float64 {
	if !n.Attr.Round || sent == nil {
		return 1
	}
	experts, _ := sent.Outs[0].Type.Extent(ir.Expert)
	slots, _ := sent.Outs[0].Type.Extent(ir.SlotDim)
	choices, _ := sent.Args[1].Type.Extent(ir.Choice)
	return float64(choices.Size*tokens) / float64(experts.Size*slots.Size)
}

// modelFlops returns the model's flops per sequence on one device: three times the matmul and attention flops of the
// forward pass.
func modelFlops(m *ir.Model) float64 {
	sum := 0.0
	for _, s := range m.Segments {
		batch, tokens := 1, 0
		var sent *ir.Node
		for _, n := range s.Forward.Nodes {
			if n.Op == ir.OpDispatch {
				sent, tokens = n, n.Args[1].Type.Elems()/n.Args[1].Type.Dims[len(n.Args[1].Type.Dims)-1].Size
			}
			if costmodel.KindOf(n.Op) == costmodel.Vector {
				continue
			}
			for _, o := range n.Outs {
				if e, ok := o.Type.Extent(ir.Batch); ok {
					batch = e.Size
				}
			}
			sum += float64(3 * float64(s.Count) * n.Flops(ir.Mesh{}) * roundPart(n, tokens, sent) / float64(batch))
		}
	}
	return sum
}

// flopsFormula names how modelFlops counts. Attention counts only the pairs of positions that attend to each other.
func flopsFormula(m *ir.Model) string {
	const matmuls = "6N + "
	for _, s := range m.Segments {
		for _, n := range s.Forward.Nodes {
			if n.Op != ir.OpAttention {
				continue
			}
			keys, _ := n.Args[1].Type.Extent(ir.KSeq)
			switch {
			case n.Attr.Window > 0 && n.Attr.Window < keys.Size:
				return matmuls + "windowed attention"
			case n.Attr.Causal:
				return matmuls + "causal attention"
			}
			return matmuls + "attention"
		}
	}
	return matmuls[:2]
}
