package tensors

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/program"
)

// Store is one rank's arena and the layout of the tensors in it.
type Store struct {
	Data   *program.Program
	ID     int            // number of the rank
	Coord  map[string]int // coordinate on each atom of the mesh
	Stage  *program.Stage // element of the program's Stages
	Arena  []byte         // Stage.Arena.Size bytes
	Shards []Shard        // of Stage.Buckets
}

// Shard is the range of a bucket, in elements of the flat space, whose optimizer state a rank has.
type Shard struct{ Lo, Hi int }

// NewStore returns the store of a rank, with an empty arena.
func NewStore(p *program.Program, mesh comm.Mesh, id int) Store {
	s := layOut(p, mesh, id)
	s.Arena = alignedBytes(s.Stage.Arena.Size)
	return s
}

// layOut returns the store of a rank, without its arena.
func layOut(p *program.Program, mesh comm.Mesh, id int) Store {
	s := Store{Data: p, ID: id, Coord: map[string]int{}}
	for i, c := range mesh.Coord(id) {
		s.Coord[mesh[i].Name] = c
	}
	s.Stage = &p.Stages[s.Coord[program.StageAxis]]
	for i := range s.Stage.Buckets {
		b := &s.Stage.Buckets[i]
		n, parts := p.Along(s.Coord, p.Atoms(b.Shard))
		part := b.Elems / parts
		s.Shards = append(s.Shards, Shard{b.Offset + part*n, b.Offset + part*(n+1)})
	}
	return s
}

// GradAt returns the byte offset of the gradient of an element of bucket i, numbered as in the flat space.
func (s *Store) GradAt(i, elem int) int {
	b := &s.Stage.Buckets[i]
	first := b.Offset
	if b.ShardedGrads {
		first = s.Shards[i].Lo
	}
	return s.Stage.Arena.Grads.Offset + (b.Grads+elem-first)*s.Data.TensorTypes().Grads.Size()
}

// ParamAt returns the byte offset of a parameter of bucket i, numbered as in the flat space.
func (s *Store) ParamAt(i, elem int) int {
	b := &s.Stage.Buckets[i]
	first := b.Offset
	if b.ShardedParams {
		first = s.Shards[i].Lo
	}
	return s.Stage.Arena.Params.Offset + (b.Params+elem-first)*s.Data.TensorTypes().Params.Size()
}

// Stores are those of all ranks of a program.
type Stores struct {
	All  []*Store
	Mine []*Store     // those of this process; the arenas of the others are not used
	Team *launch.Team // nil: all ranks are in this process
	// InBackground makes the files' tensors be gathered by background messages, concurrently with the others.
	InBackground bool
}

// IsAlone reports whether no other process has ranks.
func (s *Stores) IsAlone() bool { return s.Team == nil || s.Team.Peers == nil }

// gather sends this process's message to the first one.
func (s *Stores) gather(own []byte) ([][]byte, error) {
	if s.InBackground {
		return s.Team.Peers.GatherInBackground(own)
	}
	return s.Team.Peers.Gather(own)
}

// program returns the tables of the program.
func (s *Stores) program() *program.Program { return s.All[0].Data }

// IsLocal reports whether a rank belongs to this process.
func (s *Stores) IsLocal(rank int) bool {
	first := s.Mine[0].ID
	return rank >= first && rank < first+len(s.Mine)
}

// parts returns the tensors of each rank.
func (s *Stores) parts() [][]Tensor {
	parts := make([][]Tensor, len(s.All))
	for i, r := range s.All {
		parts[i] = Of(r.Data, r.Coord)
	}
	return parts
}

// View returns n elements of the arena from byte offset off. It panics if they are not all in the arena, because the
// memory plan was wrong.
func View[T num.Stored | int32](s *Store, off, n int) []T {
	if n == 0 {
		return nil
	}
	var z T
	_ = s.Arena[off+n*int(unsafe.Sizeof(z))-1]
	return unsafe.Slice((*T)(unsafe.Pointer(&s.Arena[off])), n)
}

// alignedBytes returns n zero bytes at an address that is a multiple of arenaAlign, in huge pages if possible.
func alignedBytes(n int) []byte {
	b := make([]byte, n+arenaAlign-1)
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (arenaAlign - 1))
	adviseHuge(b)
	return b[at : at+n : at+n]
}

// arenaAlign is the alignment of an arena's first byte.
const arenaAlign = 64
