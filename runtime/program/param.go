package program

// Dim is a dimension of a logical tensor and the atoms that split it, the first varying fastest. The end of a part may
// be padding.
type Dim struct {
	Name  string
	Size  int
	Axes  []string
	Width int // elements of a part, including padding; 0: ceil(Size / ranks)
	// elements from one index of the dims before to the next, if other parameters lie between; the dims after this one
	// are not split. 0: the part's elements of this dim and of those after it
	Pitch int
}

// InitKind is the kind of a parameter's initial distribution.
type InitKind uint8

const (
	Zeros InitKind = iota
	Ones
	Normal // mean 0, standard deviation Init.Std
)

// Init is a parameter's initial distribution. The counter-based generator draws it from (seed, name, layer, global
// element index), so that it is the same on every plan.
type Init struct {
	Kind  InitKind
	Std   float64
	First int // number of leading rows of the first dim that are drawn, the others are 0; 0: all rows
	Zero  int // 1 + the row of the first dim that is 0; 0: no row
}

// Param is one logical parameter, or one per layer of a segment.
type Param struct {
	Name   string // as in checkpoints; "{layer}" is replaced by the layer's index
	Layers int
	Dims   []Dim
	Places []Place // its own place, then its places on stages that share it without having its owner's segment
	Init   Init
	Decay  bool // weight decay applies

	LRMultiplier float64 // factor of the learning rate; 0: 1

	// Choices is the number of experts per token if the parameter is the bias of the experts' scores, else 0. The
	// gradient of such a bias is the number of tokens that chose each expert.
	Choices int
}

// Place is the position of a parameter in its layer's run of a class, in elements.
type Place struct{ Segment, Class, Offset int }
