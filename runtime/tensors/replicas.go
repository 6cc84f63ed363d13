package tensors

import (
	"encoding/binary"
	"hash/crc64"
)

// Checksum is that of one rank's part of a parameter.
type Checksum struct {
	Part  uint64 // identifies the elements: two ranks with the same Part have copies of each other
	Value uint64 // of the elements' bits
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// Checksums returns those of all parameters, in the program's order; of a parameter that the rank does not have, zeros.
// Padding does not count.
func (s *Store) Checksums() []Checksum {
	k := paramKind(s.Data)
	ts := Of(s.Data, s.Coord)
	out := make([]Checksum, len(ts))
	var place [16]byte
	for i := range ts {
		sum := &out[i]
		k.slab(s, &ts[i], 0, ts[i].dims[0].size, func(at, logical, n int) {
			binary.LittleEndian.PutUint64(place[:8], uint64(logical))
			binary.LittleEndian.PutUint64(place[8:], uint64(n))
			sum.Part = crc64.Update(sum.Part, crcTable, place[:])
			sum.Value = crc64.Update(sum.Value, crcTable, s.Arena[at:at+n*k.elem.Size()])
		})
	}
	return out
}

// ParamNames returns the names of all parameters, in the program's order.
func (s *Store) ParamNames() []string {
	ts := Of(s.Data, s.Coord)
	names := make([]string, len(ts))
	for i := range ts {
		names[i] = ts[i].Name
	}
	return names
}
