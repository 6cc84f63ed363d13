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

// manifestName is the file that is written last and makes a checkpoint complete.
const manifestName = "manifest.json"

// maxManifest bounds the size of a manifest, in bytes. planc's manifests have about a thousand bytes, and some 40 more
// per entry of data.train, so that Save cannot write one that Open refuses.
const maxManifest = 1 << 26

// maxCount bounds a manifest's counts. Float64 holds every whole number up to it, sums of several do not overflow, and
// no training reaches it: 9·10¹⁵ tokens are 600 times what Llama 3 was trained on.
const maxCount = 1 << 53

// formatVersion is raised when an older program cannot read a newer checkpoint.
const formatVersion = 1

// Manifest is the state of training without the tensors. Save fills in Format, Files and SHA256.
type Manifest struct {
	Format  int               `json:"format"`
	Step    int64             `json:"step"`            // finished optimizer steps
	Updates int64             `json:"updates"`         // steps that changed the parameters: Adam's t
	Samples int64             `json:"samples"`         // training samples read, which is the number of the next one
	Tokens  int64             `json:"tokens"`          // trained tokens, without masked ones
	Seed    uint64            `json:"seed"`            // seed of the run
	Data    string            `json:"data"`            // data.Set.ID, which identifies the order of the samples
	Plan    string            `json:"plan"`            // plan of the run that saved it, for people
	Program string            `json:"program"`         // hash of the program
	Extra   map[string]string `json:"extra,omitempty"` // further notes of the runtime
	Files   []FileInfo        `json:"files"`
	SHA256  string            `json:"manifest_sha256"` // hash of this file with zeros in this field, which is the last
}

// FileInfo is a file of a checkpoint.
type FileInfo struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

var noHash = strings.Repeat("0", 2*sha256.Size)

// encode returns the content of the manifest file, including its own hash.
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

// decodeManifest parses a manifest and verifies its own hash.
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

// check refuses counts that no training can reach.
func (m *Manifest) check() error {
	for _, c := range []struct {
		name  string
		value int64
		limit int64
	}{
		{"step", m.Step, maxCount}, {"updates", m.Updates, m.Step}, {"samples", m.Samples, maxCount},
		{"tokens", m.Tokens, maxCount},
	} {
		if c.value < 0 || c.value > c.limit {
			return damaged("has %s %d; it must be from 0 to %d", c.name, c.value, c.limit)
		}
	}
	for _, f := range m.Files {
		if f.Size < 0 {
			return damaged("has size %d for the file %q; it must be at least 0", f.Size, f.Name)
		}
	}
	return nil
}

// damaged returns an InputError that begins with the manifest's name. The caller puts the folder in front.
func damaged(format string, args ...any) error {
	return &InputError{manifestName + " " + fmt.Sprintf(format, args...)}
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// stepName returns the name of a step's folder.
func stepName(step int64) string { return fmt.Sprintf("step-%08d", step) }
