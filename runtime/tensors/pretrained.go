package tensors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
)

// loadFolder reads parameters from the safetensors files of a folder, in planc's layout or Hugging Face's.
func loadFolder[F Float](c *Stores, folder string) error {
	info, err := os.Stat(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("train.init: %w", err)
	}
	if err != nil || !info.IsDir() {
		return exit.Errorf(exit.Input, "train.init: %s is not a folder of safetensors files", folder)
	}
	f, err := ckpt.OpenWeights(folder)
	if err != nil {
		return fmt.Errorf("train.init: %w", err)
	}
	defer f.Close()
	if err := loadWeights[F](c, f); err != nil {
		return fmt.Errorf("train.init %s: %w", folder, err)
	}
	return nil
}

func loadWeights[F Float](c *Stores, f *ckpt.Weights) error {
	p := c.program()
	own := map[string]bool{}
	for _, t := range Of(p, c.All[0].Coord) {
		own[t.Name] = true
	}
	if slices.ContainsFunc(f.Tensors(), func(t ckpt.Tensor) bool { return own[t.Name] }) {
		if err := checkUnknownTensors(f.Tensors(), func(name string) bool { return own[name] }); err != nil {
			return err
		}
		for _, k := range weightKinds(p) {
			if err := load[F](c, k, f.Tensor); err != nil {
				return err
			}
		}
		return nil
	}
	files, err := findPublished(p, f)
	if err != nil {
		return err
	}
	parts := c.parts()
	for _, x := range files {
		if err := loadPublished[F](c, parts, &x); err != nil {
			return err
		}
	}
	return nil
}

// publishedInFile is a published tensor in a file.
type publishedInFile struct {
	publishedTensor
	saved ckpt.Tensor
	file  *io.SectionReader
}

// findPublished finds all published tensors in the files. It refuses files of another model.
func findPublished(p *program.Program, f *ckpt.Weights) ([]publishedInFile, error) {
	has := map[string]bool{}
	for _, t := range f.Tensors() {
		has[t.Name] = true
	}
	var out []publishedInFile
	var missing []string
	known := map[string]bool{}
	for _, t := range publishedTensors(p) {
		names := spellingsOf(&p.Weights, t.name)
		for _, n := range names {
			known[n] = true
		}
		i := slices.IndexFunc(names, func(n string) bool { return has[n] })
		if i < 0 {
			missing = append(missing, t.name)
			continue
		}
		saved, file, err := f.Tensor(names[i])
		if err != nil {
			return nil, err
		}
		if !slices.Equal(saved.Shape, t.Shape) {
			return nil, exit.Errorf(exit.Input, "%s: tensor %s has shape %v, but the model needs %v",
				f.Path(saved.Name), saved.Name, saved.Shape, t.Shape)
		}
		out = append(out, publishedInFile{t, saved, file})
	}
	if len(out) == 0 {
		return nil, otherModelError(p, f)
	}
	if len(missing) > 0 {
		return nil, exit.Errorf(exit.Input, "tensors of the model are missing: %s", firstNames(missing))
	}
	for _, twin := range p.Weights.Tied {
		names := spellingsOf(&p.Weights, twin[0])
		for _, n := range names {
			known[n] = true
		}
		if i := slices.IndexFunc(names, func(n string) bool { return has[n] }); i >= 0 {
			if err := checkTied(f, names[i], twin[1], out); err != nil {
				return nil, err
			}
		}
	}
	return out, checkUnknownTensors(f.Tensors(), func(name string) bool {
		return known[name] || ignoresTensor(&p.Weights, name)
	})
}

// checkTied checks that a tensor equals the one to which the model ties it, which is named model in the model's own
// files. If they differ, transformers only warns, and trains both.
func checkTied(f *ckpt.Weights, name, model string, files []publishedInFile) error {
	i := slices.IndexFunc(files, func(x publishedInFile) bool { return x.name == model })
	own := &files[i].saved
	other, file, err := f.Tensor(name)
	if err != nil {
		return err
	}
	equal := slices.Equal(other.Shape, own.Shape)
	var a, b [BlockElems]float64
	for lo := int64(0); equal && lo < own.Elems(); lo += BlockElems {
		n := min(BlockElems, own.Elems()-lo)
		if err := ckpt.ReadFloats(file, other.DType, lo, a[:n]); err != nil {
			return fmt.Errorf("tensor %s: %w", name, err)
		}
		if err := ckpt.ReadFloats(files[i].file, own.DType, lo, b[:n]); err != nil {
			return fmt.Errorf("tensor %s: %w", own.Name, err)
		}
		equal = slices.Equal(a[:n], b[:n])
	}
	if !equal {
		return exit.Errorf(exit.Input, "%s differs from %s, but the model has tie_word_embeddings: true, so that both "+
			"are one tensor; "+
			"to train both, set tie_word_embeddings to false in the model's config.json and compile again",
			name, own.Name)
	}
	return nil
}

// otherModelError returns the error for files with no tensor of the model under any known name.
func otherModelError(p *program.Program, f *ckpt.Weights) error {
	var names []string
	for _, t := range f.Tensors() {
		names = append(names, t.Name)
	}
	wanted := "planc's own, such as " + Of(p, nil)[0].Name
	if w := &p.Weights; len(w.Tensors) > 0 {
		wanted += ", or those of " + w.Family + ", such as " + publishedTensors(p)[0].name
	}
	return exit.Errorf(exit.Input, "it has none of the model's tensors; it has %s; expected are %s",
		cmp.Or(firstNames(names), "no tensors"), wanted)
}

// spellingsOf returns the names that files may give a tensor, the model's own first.
func spellingsOf(w *program.Weights, name string) []string {
	names := []string{name}
	for _, s := range w.Spellings {
		for _, n := range names {
			if other := strings.Replace(n, s[0], s[1], 1); !slices.Contains(names, other) {
				names = append(names, other)
			}
		}
	}
	return names
}

// ignoresTensor reports whether a tensor of a file is known but not part of the model.
func ignoresTensor(w *program.Weights, name string) bool {
	return slices.ContainsFunc(w.Ignored, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// scatter stores every step-th element of src in n elements of the arena.
func scatter[F Float](r *Store, e program.Elem, at, n int, src []F, step int) {
	var b [BlockElems]F
	for done := 0; done < n; done += BlockElems {
		part := b[:min(n-done, BlockElems)]
		for l := range part {
			part[l] = src[(done+l)*step]
		}
		Write(r, e, at+done*e.Size(), part)
	}
}

// loadPublished reads a whole tensor and gives each rank its elements.
func loadPublished[F Float](c *Stores, parts [][]Tensor, x *publishedInFile) error {
	buf := make([]F, publishedElems(x.Published))
	if err := ckpt.ReadFloats(x.file, x.saved.DType, 0, buf); err != nil {
		return fmt.Errorf("tensor %s: %w", x.saved.Name, err)
	}
	if err := finiteTensor(x.saved.Name, 0, buf); err != nil {
		return err
	}
	for _, k := range weightKinds(c.program()) {
		for i := range x.Shares {
			for _, r := range c.Mine {
				slabOf(&x.Shares[i], &k, r, &parts[r.ID][x.at[i]], func(at, pub, step, n int) {
					scatter(r, k.elem, at, n, buf[pub:], step)
				})
			}
		}
	}
	return nil
}

// checkUnknownTensors refuses tensors with unknown names.
func checkUnknownTensors(saved []ckpt.Tensor, known func(name string) bool) error {
	var names []string
	for _, t := range saved {
		if !known(t.Name) {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return exit.Errorf(exit.Input, "it has tensors that the program does not have: %s; it is of another model",
		firstNames(names))
}

// firstNames lists the first names and how many more there are.
func firstNames(names []string) string {
	more := ""
	if n := len(names) - 3; n > 0 {
		names, more = names[:3], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}
