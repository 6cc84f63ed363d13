package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// plancPath is the module whose runtime is imported by generated code.
const plancPath = "github.com/planc-dev/planc"

// minGo is the oldest Go that compiles the runtime. A test checks that planc's own go.mod agrees.
const minGo = "1.26.0"

// module is the private module: the content of every file, by slash-separated path.
type module struct {
	name  string // of the binary
	plain string // pattern of packages that are compiled without inlining and optimization; "" is none
	files map[string][]byte
}

// flags are what the module's binary is built with.
func (m module) flags() []string {
	if m.plain == "" {
		return flags
	}
	return append(slices.Clone(flags), "-gcflags="+m.plain+"=-dwarf=false -N -l")
}

// newModule arranges the generated files and the runtime's sources.
func newModule(r Request) (module, error) {
	m := module{name: path.Base(r.Module), files: map[string][]byte{
		"src/go.mod": []byte(fmt.Sprintf("module %s\n\ngo %s\n\nrequire %s %s\n\nreplace %[3]s => ../planc\n",
			r.Module, minGo, plancPath, pin(r.Version))),
		"planc/go.mod": []byte(fmt.Sprintf("module %s\n\ngo %s\n", plancPath, minGo)),
	}}
	if r.Plain {
		m.plain = r.Module + "/..."
	}
	for name, data := range r.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			panic(fmt.Sprintf("build: generated file %q lies outside its module", name))
		}
		m.files["src/"+name] = data
	}
	err := m.add("runtime", r.Runtime)
	if err == nil && r.CUDA != nil {
		err = m.add("cuda", r.CUDA)
	}
	return m, err
}

// add adds a folder of planc's module.
func (m module) add(folder string, sources fs.FS) error {
	return fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !compiled(name) {
			return err
		}
		data, err := fs.ReadFile(sources, name)
		m.files["planc/"+folder+"/"+name] = data
		return err
	})
}

// compiled reports whether a training binary needs a file of planc's. It does not need embed.go, which embeds the other
// files in planc.
func compiled(name string) bool {
	switch path.Ext(name) {
	case ".go":
		return !strings.HasSuffix(name, "_test.go") && name != "embed.go"
	case ".s", ".h", ".c", ".cu", ".cuh":
		return true
	}
	return false
}

var semver = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// pin returns planc's version in go.mod's format: v0.0.0 for a working tree.
func pin(version string) string {
	if semver.MatchString(version) {
		return version
	}
	return "v0.0.0"
}

// hash returns the hash of the module compiled by t: equal hashes give equal binaries.
func (m module) hash(t toolchain) string {
	h := sha256.New()
	fmt.Fprintf(h, "1 %s %q %q\n", m.name, slices.Concat(m.flags(), t.tags()), t.facts())
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		fmt.Fprintf(h, "%q %x\n", name, sha256.Sum256(m.files[name]))
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// write replaces dir by the module.
func (m module) write(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, m.files[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}
