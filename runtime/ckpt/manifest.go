package ckpt

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// manifestName is the file that completes a checkpoint.
const manifestName = "manifest.json"

// maxManifest bounds the manifest that is read, in bytes. One of planc's has about a thousand, and some 40 more for
// each entry of data.train: no job has so many that Save could write one that Open refuses.
const maxManifest = 1 << 26

// maxCount bounds a manifest's counts. Float64 holds every whole number up to it, sums of several do not overflow, and
// no training reaches it: 9·10¹⁵ tokens are 600 times what Llama 3 was trained on.
const maxCount = 1 << 53

// formatVersion is raised when an older program could not read a newer checkpoint.
const formatVersion = 1

// Manifest is the state of training beside the tensors. Save fills in Format, Files and SHA256.
type Manifest struct {
	Format  int               `json:"format"`
	Step    int64             `json:"step"`            // optimizer steps done
	Updates int64             `json:"updates"`         // of them, those that changed the parameters: Adam's t
	Samples int64             `json:"samples"`         // of the training set consumed: the next one's number
	Tokens  int64             `json:"tokens"`          // trained on, masked ones left out
	Seed    uint64            `json:"seed"`            // of the run
	Data    string            `json:"data"`            // data.Set.ID: what Samples counts in
	Plan    string            `json:"plan"`            // that saved it, for people
	Program string            `json:"program"`         // its hash
	Extra   map[string]string `json:"extra,omitempty"` // whatever else the runtime keeps
	Files   []FileInfo        `json:"files"`
	SHA256  string            `json:"manifest_sha256"` // of this file with zeros here; the last field
}

// FileInfo is a file of a checkpoint.
type FileInfo struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

var noHash = strings.Repeat("0", 2*sha256.Size)

// encode is the manifest as a file, sealed with its own hash.
func (m Manifest) encode() ([]byte, error) {
	m.Format, m.SHA256 = formatVersion, noHash
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	b = append(b, '\n')
	copy(b[bytes.LastIndex(b, []byte(noHash)):], hash(b))
	return b, nil
}

// decodeManifest reads a manifest and checks it against its own hash.
func decodeManifest(b []byte) (Manifest, error) {
	var version struct{ Format int }
	if err := json.Unmarshal(b, &version); err != nil {
		return Manifest{}, damaged("is damaged: %v", err)
	}
	if version.Format != formatVersion {
		return Manifest{}, damaged("has format %d, and this program reads %d: another version of planc saved it, or "+
			"it is damaged", version.Format, formatVersion)
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return Manifest{}, damaged("is damaged: %v", err)
	}
	at := bytes.LastIndex(b, []byte(m.SHA256))
	if len(m.SHA256) != len(noHash) || at < 0 {
		return Manifest{}, damaged("is damaged: its checksum is missing")
	}
	zeroed := bytes.Clone(b)
	copy(zeroed[at:], noHash)
	if hash(zeroed) != m.SHA256 {
		return Manifest{}, damaged("is damaged: it does not match its own checksum")
	}
	if err := m.check(); err != nil {
		return Manifest{}, err
	}
	for _, f := range m.Files {
		if f.Name != filepath.Base(f.Name) || !filepath.IsLocal(f.Name) {
			return Manifest{}, damaged("names the file %q, which is not in its folder", f.Name)
		}
	}
	return m, nil
}

// check refuses counts that no training has.
func (m *Manifest) check() error {
	for _, c := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"step", m.Step, maxCount}, {"updates", m.Updates, m.Step}, {"samples", m.Samples, maxCount},
		{"tokens", m.Tokens, maxCount},
	} {
		if c.value < 0 || c.value > c.most {
			return damaged("has %s %d; a count from 0 to %d is allowed", c.name, c.value, c.most)
		}
	}
	for _, f := range m.Files {
		if f.Size < 0 {
			return damaged("has size %d for the file %q; a size is at least 0", f.Size, f.Name)
		}
	}
	return nil
}

// damaged is an InputError that begins with the manifest's name; the caller puts its folder before it.
func damaged(format string, args ...any) error {
	return &InputError{manifestName + " " + fmt.Sprintf(format, args...)}
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// stepName is the name of a step's folder.
func stepName(step int64) string { return fmt.Sprintf("step-%08d", step) }
