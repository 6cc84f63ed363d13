package costmodel

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed catalogue/*.yaml
var catalogue embed.FS

// clusterAliases are other names of catalogue rows.
var clusterAliases = map[string]string{"dgx-a100": "dgx-a100-80g"}

// gpuNodes maps the names of GPUs to nodes. The N of NxNAME then counts devices. Some rows have the name of their GPU.
var gpuNodes = map[string]string{
	"a100": "dgx-a100-80g", "a100-80g": "dgx-a100-80g", "a100-40g": "dgx-a100-40g", "h100": "dgx-h100",
	"h200": "dgx-h200",
	"h800": "dgx-h800", "b200": "dgx-b200", "gb200": "gb200-nvl72", "v100": "v100-32g", "v100-16g": "v100-16g",
	"v100-32g": "v100-32g",
	"b300":     "dgx-b300", "gb300": "gb300-nvl72", "a800": "dgx-a800", "h100-96g": "h100-96g",
	"h100-pcie": "h100-pcie",
	"a100-pcie": "a100-pcie",
	"gh200":     "gh200", "l4": "l4", "a10": "a10", "a40": "a40", "a6000": "a6000", "rtx-5090": "rtx-5090",
	"l40s": "l40s", "rtx-3090": "rtx-3090", "rtx-4090": "rtx-4090", "t4": "t4",
}

// ClusterNames returns the sorted names of the catalogue, without aliases.
func ClusterNames() []string {
	files, err := catalogue.ReadDir("catalogue")
	if err != nil {
		panic("costmodel: embedded catalogue: " + err.Error())
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// ClusterAliases returns the other names of catalogue rows, including names of GPUs.
func ClusterAliases() map[string]string {
	all := maps.Clone(gpuNodes)
	maps.Copy(all, clusterAliases)
	return all
}

// ClusterFile returns a catalogue row as a cluster file.
func ClusterFile(name string) ([]byte, error) {
	data, err := catalogue.ReadFile("catalogue/" + canonical(name) + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("the catalogue has no cluster %s", name)
	}
	return data, nil
}

func canonical(name string) string {
	if full, ok := clusterAliases[name]; ok {
		return full
	}
	return name
}
