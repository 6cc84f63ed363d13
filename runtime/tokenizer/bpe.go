package tokenizer

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Subword is a tokenizer that splits text into pieces, and each piece into tokens. With byte-pair encoding, a piece
// begins as bytes or characters, and the pair of adjacent tokens with the lowest rank is merged as long as there is
// one. With WordPiece, the longest tokens are taken from the beginning on.
type Subword struct {
	texts   [][]byte          // text of each token ID; nil if there is no such token
	merges  map[uint64]merged // by the IDs of both parts
	whole   map[string]int32  // tokens of complete pieces that are not merged step by step; nil if all are
	special map[string]int32

	words      *wordPieces    // nil: byte-pair encoding
	bytes      *[256]int32    // tokens of single bytes; nil if pieces are split into characters
	characters map[rune]int32 // tokens of single characters
	unknown    unknownRule

	added     addedTokens
	normalize []normalizer
	split     []splitter
	scratch   sync.Pool
	dropped   atomic.Int32 // the first character that had no token, + 1

	canBeCut     bool // at a letter or digit before a space or line end
	isCharacters bool // no tokens are merged, so that texts can be cut before each character
	dropsSpace   bool // Decode drops the space that normalization has put in front
}

// merged is the result of merging two tokens.
type merged struct{ rank, id int32 }

// unknownRule is what becomes of characters without a token.
type unknownRule struct {
	bytes  *[256]int32 // if not nil, the tokens of the bytes of the character (byte_fallback)
	id     int32       // the token for unknown text; -1 drops it
	isFuse bool        // consecutive unknown characters are one token
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// Vocab implements [Tokenizer].
func (b *Subword) Vocab() int { return len(b.texts) }

// Special implements [Tokenizer].
func (b *Subword) Special(name string) (int32, bool) {
	id, ok := b.special[name]
	return id, ok
}

// Dropped returns the first character that was left out because it has no token, and the tokenizer has none for unknown
// characters either. Hugging Face's library leaves such characters out too.
func (b *Subword) Dropped() (character rune, ok bool) {
	c := b.dropped.Load()
	return c - 1, c > 0
}

// Append implements [Tokenizer].
func (b *Subword) Append(to []byte, token int32) []byte {
	if token < 0 || int(token) >= len(b.texts) || b.texts[token] == nil {
		return utf8.AppendRune(to, utf8.RuneError)
	}
	return append(to, b.texts[token]...)
}

// Cut implements [Tokenizer].
func (b *Subword) Cut(text []byte) int {
	switch {
	case b.isCharacters:
		return lastCharacter(text)
	case !b.canBeCut:
		return 0
	}
	return lastCut(text)
}

// Encode implements [Tokenizer].
func (b *Subword) Encode(to []int32, text []byte, isStart bool) ([]int32, error) {
	w, _ := b.scratch.Get().(*worker)
	if w == nil {
		w = &worker{bpe: b, cache: map[string][]int32{}}
	}
	defer b.scratch.Put(w)
	w.out = to
	start := continued
	if isStart {
		start = textStart
	}
	err := b.added.each(text, func(part []byte, id int32) error {
		if id >= 0 {
			w.out = append(w.out, id)
			return nil
		}
		at := afterToken
		if &part[0] == &text[0] {
			at = start
		}
		part, err := b.normalized(part, at)
		if err == nil {
			b.pieces(part, b.split, w.piece)
		}
		return err
	})
	to, w.out = w.out, nil
	return to, err
}

func (b *Subword) normalized(text []byte, at place) (_ []byte, err error) {
	for _, n := range b.normalize {
		text, err = n(text, at)
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// pieces splits text by each splitter in turn.
func (b *Subword) pieces(text []byte, split []splitter, emit func([]byte)) {
	if len(text) == 0 {
		return
	}
	if len(split) == 0 {
		emit(text)
		return
	}
	split[0](text, func(piece []byte) { b.pieces(piece, split[1:], emit) })
}

// worker is what one goroutine needs to encode pieces.
type worker struct {
	bpe     *Subword
	out     []int32
	symbols []symbol
	heap    candidates
	cache   map[string][]int32
}

// Limits of the cache of pieces.
const (
	cachedBytes  = 48      // longer pieces rarely repeat
	cachedPieces = 1 << 16 // then the cache starts over
)

// piece appends the tokens of a piece.
func (w *worker) piece(text []byte) {
	if id, ok := w.bpe.whole[string(text)]; ok {
		w.out = append(w.out, id)
		return
	}
	if len(text) > cachedBytes {
		w.merge(text)
		return
	}
	if tokens, ok := w.cache[string(text)]; ok {
		w.out = append(w.out, tokens...)
		return
	}
	before := len(w.out)
	w.merge(text)
	if len(w.cache) >= cachedPieces {
		clear(w.cache)
	}
	w.cache[string(text)] = append([]int32(nil), w.out[before:]...)
}

// symbol is a token of a piece that is being merged, in a doubly linked list.
type symbol struct {
	id, prev, next int32
	merge          merged // with the next symbol
}

// noMerge is the rank of a pair that is not merged.
const noMerge = math.MaxInt32

// merge appends the tokens of a piece: it merges the pair of lowest rank, the leftmost one of several.
func (w *worker) merge(text []byte) {
	if p := w.bpe.words; p != nil {
		w.out = p.append(w.out, text)
		return
	}
	w.symbols = w.symbols[:0]
	w.begin(text)
	n := len(w.symbols)
	if n == 0 {
		return
	}
	for i := range w.symbols {
		w.symbols[i].prev, w.symbols[i].next = int32(i-1), int32(i+1)
	}
	w.symbols[n-1].next = -1
	for i := range w.symbols {
		w.rank(int32(i))
	}
	if n < scanned {
		for w.mergeLowest() {
		}
	} else {
		w.mergeHeap()
	}
	for i := int32(0); i >= 0; i = w.symbols[i].next {
		w.out = append(w.out, w.symbols[i].id)
	}
}

// scanned is the number of symbols from which a heap finds the lowest rank faster than a scan.
const scanned = 64

// rank looks up the merge of a symbol with the next one.
func (w *worker) rank(i int32) {
	s := &w.symbols[i]
	s.merge.rank = noMerge
	if s.next < 0 {
		return
	}
	if m, ok := w.bpe.merges[pairKey(s.id, w.symbols[s.next].id)]; ok {
		s.merge = m
	}
}

// join merges a symbol with the next one.
func (w *worker) join(i int32) {
	s := &w.symbols[i]
	absorbed := &w.symbols[s.next]
	s.id, s.next = s.merge.id, absorbed.next
	absorbed.merge.rank, absorbed.id = noMerge, -1
	if s.next >= 0 {
		w.symbols[s.next].prev = i
	}
	w.rank(i)
	if s.prev >= 0 {
		w.rank(s.prev)
	}
}

// mergeLowest merges the pair of lowest rank and reports whether there was one.
func (w *worker) mergeLowest() bool {
	best, at := int32(noMerge), int32(-1)
	for i := int32(0); i >= 0; i = w.symbols[i].next {
		if r := w.symbols[i].merge.rank; r < best {
			best, at = r, i
		}
	}
	if at >= 0 {
		w.join(at)
	}
	return at >= 0
}

// begin splits a piece into its first symbols.
func (w *worker) begin(text []byte) {
	b := w.bpe
	add := func(id int32) { w.symbols = append(w.symbols, symbol{id: id}) }
	if b.bytes != nil {
		for _, c := range text {
			id := b.bytes[c]
			if id < 0 {
				b.dropped.CompareAndSwap(0, int32(c)+1)
				continue
			}
			add(id)
		}
		return
	}
	isUnknown := false // the last character was
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		id, ok := b.characters[r]
		switch {
		case ok && !(r == utf8.RuneError && n == 1):
			add(id)
		case b.unknown.bytes != nil:
			for _, c := range text[:n] {
				add(b.unknown.bytes[c])
			}
			ok = true
		case b.unknown.id >= 0 && !(isUnknown && b.unknown.isFuse):
			add(b.unknown.id)
		case b.unknown.id < 0:
			b.dropped.CompareAndSwap(0, r+1)
		}
		isUnknown = !ok
		text = text[n:]
	}
}

// candidates is a heap of pairs, by rank and then position.
type candidates []candidate

type candidate struct{ rank, at int32 }

func (h candidates) less(i, j int) bool {
	return h[i].rank < h[j].rank || h[i].rank == h[j].rank && h[i].at < h[j].at
}

func (h *candidates) push(c candidate) {
	*h = append(*h, c)
	for i := len(*h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			return
		}
		(*h)[i], (*h)[up] = (*h)[up], (*h)[i]
		i = up
	}
}

func (h *candidates) pop() candidate {
	top, last := (*h)[0], len(*h)-1
	(*h)[0] = (*h)[last]
	*h = (*h)[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return top
		}
		if down+1 < last && h.less(down+1, down) {
			down++
		}
		if !h.less(down, i) {
			return top
		}
		(*h)[i], (*h)[down] = (*h)[down], (*h)[i]
		i = down
	}
}

// mergeHeap does the same as mergeLowest until nothing can be merged, in n log n steps.
func (w *worker) mergeHeap() {
	w.heap = w.heap[:0]
	note := func(i int32) {
		if r := w.symbols[i].merge.rank; r != noMerge {
			w.heap.push(candidate{r, i})
		}
	}
	for i := range w.symbols {
		note(int32(i))
	}
	for len(w.heap) > 0 {
		c := w.heap.pop()
		if w.symbols[c.at].merge.rank != c.rank {
			continue // one of the two has been merged since
		}
		w.join(c.at)
		note(c.at)
		if prev := w.symbols[c.at].prev; prev >= 0 {
			note(prev)
		}
	}
}

// bytesOf returns the tokens of all bytes, or an error that names one without a token.
func bytesOf(ids map[string]int32, name func(c byte) string) (*[256]int32, error) {
	var all [256]int32
	for c := range all {
		id, ok := ids[name(byte(c))]
		if !ok {
			return nil, fmt.Errorf("it has no token for the byte 0x%02X", c)
		}
		all[c] = id
	}
	return &all, nil
}
