package program

// Weights says where the model's parameters lie in the files that other tools exchange. A program without any
// reads and writes planc's own layout alone.
type Weights struct {
	Family    string      // whose names these are, such as llama
	Config    string      // config.json of such a folder
	Tensors   []Published // in the files' order
	Spellings [][2]string // of names: a file may write the second text for the first one
	Tied      [][2]string // tensors that files may hold too, each with the tensor of the model that it must equal
	Ignored   []string    // names of tensors that files may hold in addition to the model's; * is any text
}

// Published is a tensor of such files, or one for each layer.
type Published struct {
	Name   string // "{layer}" stands for a layer's index
	From   int    // that of the parameters' first layer, where other blocks come before
	Shape  []int64
	Shares []Share // together they hold each element once
}

// Share is where a parameter, or some rows of it, lies in a published tensor. The parameter's element of indices i
// is the tensor's element number Offset + Σ Strides[k]·i[k], i[0] counted from Rows[0].
type Share struct {
	Param   string // Param.Name
	Rows    [2]int // of its first dim, from and to
	Offset  int
	Strides []int
}
