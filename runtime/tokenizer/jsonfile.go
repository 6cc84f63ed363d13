package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// jsonFile is a Hugging Face tokenizer.json. Parts whose form depends on their type are parsed by that.
type jsonFile struct {
	Added        []jsonAdded `json:"added_tokens"`
	Normalizer   *jsonPart   `json:"normalizer"`
	PreTokenizer *jsonPart   `json:"pre_tokenizer"`
	Decoder      *jsonPart   `json:"decoder"`
	Model        *jsonModel  `json:"model"`
}

type jsonAdded struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type jsonModel struct {
	Type         string           `json:"type"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       []jsonMerge      `json:"merges"`
	Dropout      *float64         `json:"dropout"`
	Unknown      *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Characters   *int             `json:"max_input_chars_per_word"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnknown  bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
}

// jsonMerge is a merge of two tokens: ["a", "b"], or "a b" in older files.
type jsonMerge [2]string

// UnmarshalJSON implements [json.Unmarshaler].
func (m *jsonMerge) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		var pair []string
		if err := json.Unmarshal(text, &pair); err != nil || len(pair) != 2 {
			return fmt.Errorf("a merge is %s; it must have two parts", text)
		}
		*m = jsonMerge(pair)
		return nil
	}
	var both string
	if err := json.Unmarshal(text, &both); err != nil {
		return err
	}
	var isPair bool
	m[0], m[1], isPair = strings.Cut(both, " ")
	if !isPair {
		return fmt.Errorf("a merge is %s; it must have two parts", text)
	}
	return nil
}

// jsonPart is a normalizer, pre-tokenizer or decoder, of any type.
type jsonPart struct {
	Type        string      `json:"type"`
	Normalizers []*jsonPart `json:"normalizers"`
	Splitters   []*jsonPart `json:"pretokenizers"`
	Decoders    []*jsonPart `json:"decoders"`
	Prepend     string      `json:"prepend"`
	Content     string      `json:"content"`
	Pattern     *struct {
		String *string `json:"String"`
		Regex  *string `json:"Regex"`
	} `json:"pattern"`
	Behavior    behavior `json:"behavior"`
	Invert      bool     `json:"invert"`
	PrefixSpace bool     `json:"add_prefix_space"`
	UseRegex    *bool    `json:"use_regex"`
	Single      bool     `json:"individual_digits"`
	Replacement string   `json:"replacement"`
	Scheme      string   `json:"prepend_scheme"`
	Split       *bool    `json:"split"`
	Start       int      `json:"start"`
	Cleanup     bool     `json:"cleanup"`
	jsonBert
}

// jsonBert are the fields of a BertNormalizer.
type jsonBert struct {
	CleanText    bool  `json:"clean_text"`
	Chinese      bool  `json:"handle_chinese_chars"`
	StripAccents *bool `json:"strip_accents"`
	Lowercase    bool  `json:"lowercase"`
}

// steps returns the parts of a sequence in order.
func (p *jsonPart) steps() (all []*jsonPart) {
	if p == nil {
		return nil
	}
	if p.Type != "Sequence" {
		return []*jsonPart{p}
	}
	for _, list := range [][]*jsonPart{p.Normalizers, p.Splitters, p.Decoders} {
		for _, part := range list {
			all = append(all, part.steps()...)
		}
	}
	return all
}

// ParseJSON returns the tokenizer of a tokenizer.json.
func ParseJSON(text []byte) (*Subword, error) {
	var f jsonFile
	if err := json.Unmarshal(text, &f); err != nil {
		if kind := modelKind(text); !slices.Contains([]string{"", "BPE", wordPieceModel}, kind) {
			return nil, unsupportedModel(kind) // its vocabulary has another form
		}
		return nil, err
	}
	if f.Model == nil {
		return nil, errors.New("it has no key model")
	}
	if err := f.Model.check(); err != nil {
		return nil, err
	}
	b := &Subword{special: map[string]int32{}}
	l := loader{b: b, file: &f}
	for _, step := range []func() error{l.normalizers, l.splitters, l.vocabulary, l.wordPieces, l.addTokens,
		l.mergeList} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	l.findCuts()
	return b, nil
}

// modelKind returns the type of a file's model, "" if it has none.
func modelKind(text []byte) string {
	var f struct{ Model struct{ Type string } }
	if json.Unmarshal(text, &f) != nil {
		return ""
	}
	return f.Model.Type
}

func unsupportedModel(kind string) error {
	return fmt.Errorf("not supported yet: its model is %s; it must be BPE or WordPiece", kind)
}

// wordPieceModel is the type of WordPiece models, and of their decoder.
const wordPieceModel = "WordPiece"

// check refuses models of other kinds.
func (m *jsonModel) check() error {
	switch {
	case m.Type != "BPE" && m.Type != wordPieceModel && !(m.Type == "" && m.Merges != nil):
		return unsupportedModel(m.Type)
	case m.Dropout != nil && *m.Dropout > 0:
		return errors.New("not supported yet: model.dropout")
	case m.Prefix != nil && *m.Prefix != "" && m.Type != wordPieceModel:
		return errors.New("not supported yet: model.continuing_subword_prefix")
	case m.Suffix != nil && *m.Suffix != "":
		return errors.New("not supported yet: model.end_of_word_suffix")
	case len(m.Vocab) == 0:
		return errors.New("its vocabulary is empty")
	}
	for word, id := range m.Vocab {
		if id < 0 || id > maxID {
			return fmt.Errorf("the token %q has the ID %d", word, id)
		}
	}
	return nil
}

// maxID bounds token IDs, because the memory for tokens depends on the largest ID.
const maxID = 1 << 24
