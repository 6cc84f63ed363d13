package keytable

import (
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

// IsModel reports whether a file is the config.json of a Hugging Face model.
func IsModel(f interop.File) bool {
	if tree.SyntaxOf(f) != tree.JSON || !strings.Contains(string(f.Data), `"model_type"`) {
		return false
	}
	doc, _ := tree.Parse(tree.JSON, f.Name, f.Data)
	return doc.Root.Get("model_type") != nil
}

// Split divides files that belong together: a config.json becomes the import's model, the first file that the format
// recognizes, or the only one, is the main file, and another one is its ds_config.json, which the reader adds to the
// import's files if it reads it. main is nil if there is none.
func Split(im *interop.Import, files []interop.File, recognize func(interop.File) interop.Confidence) (main,
	ds *interop.File, diags ir.Diags) {
	for i, f := range files {
		switch {
		case IsModel(f):
			diags = append(diags, TakeModel(im, f)...)
		case main == nil && (recognize(f) != interop.No || len(files) == 1):
			main = &files[i]
		default:
			ds = &files[i]
		}
	}
	return main, ds, diags
}

// TakeModel takes a config.json as the job's model.
func TakeModel(im *interop.Import, f interop.File) ir.Diags {
	doc, diags := tree.Parse(tree.JSON, f.Name, f.Data)
	if len(diags) > 0 {
		return diags
	}
	im.Files = append(im.Files, f.Name)
	for _, field := range doc.Root.Fields {
		var value strings.Builder
		field.Value.WriteJSON(&value)
		if strings.Contains(field.Key, ".") {
			im.Account(interop.Key{Pos: field.Pos, Name: field.Key, Value: field.Value.Flow()}, interop.NoEffect, "")
			continue
		}
		im.Take(interop.Key{Pos: field.Pos, Name: field.Key, Value: field.Value.Flow()},
			interop.Field{Path: "model." + field.Key, Value: value.String()})
	}
	return nil
}

// Layers returns the number of blocks of the model that a file gives; 0 if it gives none.
func Layers(im *interop.Import) int {
	for _, key := range layerKeys {
		f, _ := im.Field("model." + key)
		if n, err := strconv.Atoi(f.Value); err == nil {
			return n
		}
	}
	return 0
}

// layerKeys are the names of the number of blocks in a config.json.
var layerKeys = []string{"num_hidden_layers", "n_layer", "num_layers"}

// AllLayers records that all blocks are recomputed, if a file says how many the model has. Otherwise whoever adds the
// model adds the number. Each block saves its whole input, unless the file says otherwise.
func (r *Reader) AllLayers(path string) {
	WholeInputs(r.Import, path)
	pp, _ := r.Import.Field("plan.pp")
	for _, key := range layerKeys {
		f, ok := r.Import.Field("model." + key)
		if ok && (pp.Value == "" || pp.Value == "1") {
			r.Take(path, interop.Field{Path: "plan.recompute_layers", Value: f.Value})
			return
		}
	}
}

// WholeInputs records that each recomputed block saves its whole input, unless the file says otherwise.
func WholeInputs(im *interop.Import, path string) {
	im.DefaultField("plan.recompute_every", "1", path)
	im.DefaultField("plan.recompute_split", "false", path)
}

// WholeGroup records that ZeRO shards over all replicas, unless the file says groups. It needs the number of devices.
func (r *Reader) WholeGroup(devices int) {
	zero, ok := r.Import.Field("plan.zero")
	replicas := devices
	for _, path := range []string{"plan.tp", "plan.pp"} {
		f, _ := r.Import.Field(path)
		n, err := strconv.Atoi(f.Value)
		if err != nil || n < 1 || replicas%n != 0 {
			return
		}
		replicas /= n
	}
	if ok && zero.Value != "0" && replicas > 1 {
		r.Import.DefaultField("plan.zero_group", strconv.Itoa(replicas), "all replicas")
	}
}
