package weights

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir/spec"
)

// reading is a file of golden/reference/testdata/reading: how transformers reads a family's config.json.
type reading struct {
	Family string
	Keys   []string // all that transformers' class of the configuration has, other names of them too
	Base   map[string]any
	Facts  map[string]any // of the model of Base
	Draws  []draw
}

// draw is Base with some keys changed, or a configuration of its own.
type draw struct {
	Whole   map[string]any `json:"whole"` // as transformers 5 writes it
	Set     map[string]any
	Drop    []string
	Facts   map[string]any // those that differ from the base's; nil if transformers refuses the file
	Refused string         // why it does
}

func readings(t *testing.T) (all []reading) {
	t.Helper()
	files, err := filepath.Glob("../../../golden/reference/testdata/reading/*.json")
	if err != nil || len(files) != len(namings) {
		t.Fatalf("%d files for %d families, %v", len(files), len(namings), err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var r reading
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, r)
	}
	return all
}

// config is the draw's config.json.
func (r *reading) config(d *draw) []byte {
	c := maps.Clone(r.Base)
	if d.Whole != nil {
		c = maps.Clone(d.Whole)
	}
	c["model_type"] = r.Family
	for _, key := range d.Drop {
		delete(c, key)
	}
	maps.Copy(c, d.Set)
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return text
}

// want are transformers' facts of the draw.
func (r *reading) want(d *draw) map[string]any {
	if _, run := d.Facts["loss"]; !run && d.Facts["parameters"] != nil {
		return d.Facts // too large to be run
	}
	want := maps.Clone(r.Facts)
	for key, x := range d.Facts {
		want[key] = x
		if x == nil {
			delete(want, key)
		}
	}
	return want
}

// changed are the keys that the draw is about.
func (d *draw) changed() []string {
	return slices.Concat(d.Drop, slices.Collect(maps.Keys(d.Set)), slices.Collect(maps.Keys(d.Whole)))
}

// String is the draw as the file has it.
func (d *draw) String() string {
	text, err := json.Marshal(map[string]any{"set": d.Set, "drop": d.Drop, "whole": d.Whole})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// lenient are configurations that transformers 5.23 refuses and planc reads, since they say what they mean: of each the
// family, or "" for any, and the beginning of what transformers answers.
var lenient = []struct{ family, refused string }{
	// Widths follow from head_dim where it is given. 5.23 wants hidden_size / num_attention_heads whole there too.
	{"", "Class validation error for validator 'validate_architecture'"},
	// Phi-3's first files have original_max_position_embeddings outside of rope_scaling, where 5.23 does not look for
	// it.
	{"phi3", "\"Missing required keys in `rope_parameters` for 'rope_type'='longrope': {'original_max_position_embe"},
	// Without head_dim 5.23 has mixtral's heads of hidden_size / num_attention_heads, but fails where it stretches
	// positions.
	{"mixtral", "unsupported operand type(s) for *: 'NoneType' and 'float'"},
	{"mixtral", "Class validation error for validator 'validate_rope': TypeError: unsupported operand type(s) for *: "},
}

func (d *draw) lenient(family string) bool {
	for _, l := range lenient {
		if (l.family == "" || l.family == family) && strings.HasPrefix(d.Refused, l.refused) {
			return true
		}
	}
	return false
}

// unread says whether planc's reader of the family knows none of the changed keys.
func (d *draw) unread(family string) bool {
	known := map[string]bool{}
	for _, f := range spec.Families() {
		for _, k := range f.Keys {
			known[k.Key] = known[k.Key] || f.Name == family
		}
	}
	return !slices.ContainsFunc(d.changed(), func(key string) bool { return known[key] })
}

// Every key of every family means what it means to transformers, or is refused by its name: absent, null, in the hub's
// spelling and that of transformers 5, with others that say the same or something else.
func TestReadingEqualsTransformers(t *testing.T) {
	for _, r := range readings(t) {
		t.Run(r.Family, func(t *testing.T) {
			taken, refused := 0, 0
			for i := range r.Draws {
				d := &r.Draws[i]
				text := r.config(d)
				c, err := spec.LoadModel("config.json", func(string) ([]byte, error) { return text, nil })
				switch {
				case err != nil && !d.namesKey(err, text):
					t.Errorf("%s: it is refused without naming a key: %v", d, err)
				case err != nil && d.Refused == "":
					refused++
					t.Logf("planc alone refuses %s: %v", d, err)
				case err != nil, d.lenient(r.Family), d.Refused != "" && d.unread(r.Family):
				case d.Refused != "":
					t.Errorf("%s: transformers refuses it (%s), planc takes it", d, d.Refused)
				default:
					taken++
					for _, diff := range differences(r.want(d), factsOf(c)) {
						t.Errorf("%s: %s", d, diff)
					}
				}
			}
			if taken < 30 || taken < refused {
				t.Errorf("%d draws are read, %d are refused that transformers takes: that holds planc's reading "+
					"to little", taken, refused)
			}
		})
	}
}

// noConcern are keys that transformers has and planc passes over whatever they say: they change no number of the
// training.
var noConcern = map[string]string{
	"architectures return_dict output_hidden_states use_cache transformers_version dtype": "what is loaded, how, and " +
		"what a call returns",
	"bos_token_id eos_token_id is_encoder_decoder": "generation",
	"pad_token_id": "not a key of a family's own: TestReadingEqualsTransformers holds what it does",
	"id2label label2id problem_type classifier_dropout summary_type summary_use_proj summary_activation " +
		"summary_proj_to_labels summary_first_dropout": "other tasks",
	"chunk_size_feed_forward pretraining_tp slow_but_exact " +
		"is_decoder": "the same numbers, computed in another way or by another class",
	"encoder_stride pooler_act " +
		"pooler_output_size": "other heads",
}

// Every key that transformers' class of a family has is one that planc reads, refuses by name, or passes over for a
// reason.
func TestEveryKeyOfTransformersIsKnown(t *testing.T) {
	var passed []string
	for keys := range noConcern {
		passed = append(passed, strings.Fields(keys)...)
	}
	used := map[string]bool{}
	for _, r := range readings(t) {
		if len(r.Keys) < 20 {
			t.Errorf("%s has keys %v", r.Family, r.Keys)
		}
		for _, key := range r.Keys {
			d := draw{Set: map[string]any{key: 12345}}
			text := r.config(&d)
			_, err := spec.LoadModel("config.json", func(string) ([]byte, error) { return text, nil })
			switch ignored := slices.Contains(passed, key); {
			case !d.unread(r.Family):
			case err != nil && !strings.Contains(err.Error(), key):
				t.Errorf("%s: %s is refused by a message that does not name it: %v", r.Family, key, err)
			case err == nil && !ignored:
				t.Errorf("%s: %s is passed over without a reason", r.Family, key)
			case err == nil:
				used[key] = true
			}
		}
	}
	for _, key := range passed {
		if !used[key] {
			t.Errorf("%s is passed over in no family", key)
		}
	}
}

// namesKey says whether a message names a key of the file, or one that the draw takes away.
func (d *draw) namesKey(err error, text []byte) bool {
	var hf map[string]any
	if err := json.Unmarshal(text, &hf); err != nil {
		panic(err)
	}
	return slices.ContainsFunc(append(slices.Collect(maps.Keys(hf)), d.Drop...), func(key string) bool {
		return strings.Contains(err.Error(), key)
	})
}

// differences are what is not alike; losses are not compared here.
func differences(want, got map[string]any) (out []string) {
	want = maps.Clone(want)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if key == "loss" {
			continue
		}
		if key == "aux" {
			want[key] = true
		}
		if !alike(want[key], got[key]) {
			out = append(out, fmt.Sprintf("%s is %v, in transformers %v", key, got[key], want[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok && want["loss"] != nil {
			out = append(out, fmt.Sprintf("%s is %v, in transformers nothing", key, got[key]))
		}
	}
	return out
}

// alike compares what JSON holds; numbers may differ by a millionth.
func alike(x, y any) bool {
	switch x := x.(type) {
	case float64:
		y, ok := y.(float64)
		return ok && math.Abs(x-y) <= 1e-6*math.Abs(x)
	case []any:
		y, ok := y.([]any)
		return ok && slices.EqualFunc(x, y, alike)
	case map[string]any:
		y, ok := y.(map[string]any)
		return ok && maps.EqualFunc(x, y, alike)
	}
	return reflect.DeepEqual(x, y)
}

// readingSeq is the length of the readings' sequences.
const readingSeq = 12
