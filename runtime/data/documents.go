package data

import (
	"bufio"
	"encoding/binary"
	"hash/fnv"
	"io"
	"sort"
)

// Values of Spec.Documents.
const (
	// Packed cuts a file into windows that ignore where documents end, so that attention crosses their borders.
	Packed = "packed"
	// Separate cuts each document into windows of its own, of which the last is padded. A sample thus is of one
	// document, and attention does not cross borders.
	Separate = "separate"
)

// documents are the sequences of a Megatron data set, each of which is cut into windows.
type documents struct {
	lengths []uint32   // in tokens
	blocks  []docBlock // of every blockDocs documents
	tokens  int64      // of all documents
	samples int64      // windows of all documents
	labels  int64      // labels of all documents
	hash    uint64     // of the lengths
	seqLen  int64
}

// docBlock is where a block of documents begins.
type docBlock struct{ token, sample int64 }

// blockDocs is the number of documents of a block. A sample's document is searched among those of one block.
const blockDocs = 64

// openDocuments reads the lengths of the documents of a file. It takes about a second for 200 million documents, and 4
// bytes for each.
func (t *tokenFile) openDocuments(spec *Spec) error {
	if t.Format.Name != megatronName {
		key := "data.documents cannot be separate"
		if spec.DocumentMask {
			key = "data.document_mask cannot be true"
		}
		return about(t.path, inputf("%s does not say where documents end, so %s; use a Megatron data set, as planc "+
			"data tokenize --format megatron writes it", t.path, key))
	}
	path := indexOf(t.path)
	file, info, err := openFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	x := &index{file: file, name: path}
	if err := x.readHeader(info.Size()); err != nil {
		return err
	}
	d := &documents{seqLen: int64(spec.SeqLen), lengths: make([]uint32, x.sequences)}
	hash := fnv.New64a()
	lengths := io.NewSectionReader(file, int64(indexHeader), 4*x.sequences)
	in := bufio.NewReaderSize(io.TeeReader(lengths, hash), pieceBytes)
	if err := d.read(in); err != nil {
		return readError(path, err)
	}
	d.hash = hash.Sum64()
	switch {
	case d.tokens != t.Tokens:
		return about(t.path, inputf("%s has the damaged index %s: the lengths of its sequences add up to %d tokens, "+
			"but there are %d", t.path, path, d.tokens, t.Tokens))
	case spec.Documents != Separate:
		t.borders = d
		return nil
	case d.samples == 0:
		return about(t.path, inputf("%s has no document of at least 2 tokens", t.path))
	}
	t.documents = d
	return nil
}

// read reads the lengths, and computes where each block begins.
func (d *documents) read(in io.Reader) error {
	var b [4]byte
	at := docBlock{}
	for i := range d.lengths {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return err
		}
		if i%blockDocs == 0 {
			d.blocks = append(d.blocks, at)
		}
		d.lengths[i] = binary.LittleEndian.Uint32(b[:])
		at.token += int64(d.lengths[i])
		at.sample += d.windows(i)
		d.labels += max(0, int64(d.lengths[i])-1)
	}
	d.tokens, d.samples = at.token, at.sample
	return nil
}

// windows returns the number of windows of a document. Its first token is no label.
func (d *documents) windows(i int) int64 {
	return (max(1, int64(d.lengths[i])) - 1 + d.seqLen - 1) / d.seqLen
}

// window returns the first token of sample k, and the number of its tokens that have a label.
func (d *documents) window(k int64) (at, n int64) {
	i := sort.Search(len(d.blocks), func(i int) bool { return d.blocks[i].sample > k }) - 1
	at, k = d.blocks[i].token, k-d.blocks[i].sample
	for i *= blockDocs; ; i++ {
		windows := d.windows(i)
		if k < windows {
			skipped := k * d.seqLen
			return at + skipped, min(d.seqLen, int64(d.lengths[i])-1-skipped)
		}
		at, k = at+int64(d.lengths[i]), k-windows
	}
}

// number fills numbers with the numbers of the documents, in the file, of the tokens from number at on. Tokens after
// the last document have the number after its.
func (d *documents) number(at int64, numbers []int32) {
	b := sort.Search(len(d.blocks), func(i int) bool { return d.blocks[i].token > at }) - 1
	i, end := b*blockDocs, d.blocks[b].token+int64(d.lengths[b*blockDocs])
	for k := range numbers {
		for i < len(d.lengths) && at+int64(k) >= end {
			i++
			if i < len(d.lengths) {
				end += int64(d.lengths[i])
			}
		}
		numbers[k] = int32(i)
	}
}

// TrainDocuments fills numbers, one for each position, with the number of its document in sample g of training. The
// labels of the last tokens of documents, which are tokens of the next document, do not count.
func (s *Set) TrainDocuments(g int64, numbers []int32) error {
	s.trainWindow(g).numberDocuments(numbers)
	return nil
}

// ValidDocuments is TrainDocuments for sample g of validation.
func (s *Set) ValidDocuments(g int64, numbers []int32) error {
	s.validWindow(g).numberDocuments(numbers)
	return nil
}

// maskLabels makes the labels of the tokens from number at on negative that are tokens of another document, so that
// they do not count.
func (d *documents) maskLabels(at int64, labels []int32) {
	numbers := make([]int32, len(labels)+1)
	d.number(at, numbers)
	for k := range labels {
		if numbers[k] != numbers[k+1] {
			labels[k] = -1
		}
	}
}
