package machine

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// queryTopology queries nvidia-smi for the connections of the GPUs. Old versions of it, and some containers, do not
// report them; they stay unknown then.
func (b *GPUInventory) queryTopology(ask commandRunner) {
	if len(b.GPUs) < 2 {
		return
	}
	if out, err := ask("nvidia-smi", "topo", "-m"); err == nil {
		b.Paths = pathTable(out, len(b.GPUs))
	}
	if out, err := ask("nvidia-smi", "topo", "-p2p", "r"); err == nil {
		b.Direct = allOK(pathTable(out, len(b.GPUs)))
	}
	if out, err := ask("nvidia-smi", "nvlink", "-s"); err == nil {
		b.NVLink = linkSum(out, len(b.GPUs))
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m") // the header of the table is underlined

// pathTable parses nvidia-smi's table of connections between GPUs; nil if the output is not such a table.
func pathTable(out string, gpus int) (rows [][]string) {
	for line := range strings.Lines(escapes.ReplaceAllString(out, "")) {
		words := strings.Fields(line)
		if len(words) > gpus && words[0] == "GPU"+strconv.Itoa(len(rows)) && words[1] != "GPU1" {
			rows = append(rows, words[1:gpus+1])
		}
	}
	if len(rows) != gpus {
		return nil
	}
	return rows
}

// allOK reports whether all pairs of GPUs have peer access.
func allOK(rows [][]string) bool {
	for i, row := range rows {
		for j, word := range row {
			if i != j && word != "OK" {
				return false
			}
		}
	}
	return rows != nil
}

var linkRate = regexp.MustCompile(`Link \d+: ([\d.]+) GB/s`)

// linkSum returns the GB/s of all NVLinks of one GPU, in one direction; 0 if GPUs differ or one reports no links.
// nvidia-smi prints the raw signaling rate: 26.562 GB/s carry 25 GB/s of data, and 53.125 carry 50.
func linkSum(out string, gpus int) float64 {
	var sums []float64
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "GPU ") {
			sums = append(sums, 0)
		}
		if found := linkRate.FindStringSubmatch(line); found != nil && len(sums) > 0 {
			rate := decimal(found[1])
			switch {
			case rate > 26.5 && rate < 26.6:
				rate = 25
			case rate > 53 && rate < 53.2:
				rate = 50
			}
			sums[len(sums)-1] += rate
		}
	}
	if len(sums) != gpus || slices.Max(sums) != slices.Min(sums) {
		return 0
	}
	return sums[0]
}

// linkKind returns how the GPUs are connected: nvswitch if each pair can use all NVLinks of a GPU, nvlink if each pair
// is connected by some NVLinks, otherwise pcie; "" if it is unknown. linkRate is the GB/s of one NVLink.
func (b *GPUInventory) linkKind(linkRate float64) string {
	if b.Paths == nil {
		return ""
	}
	minLinks, maxLinks := -1, 0
	for i, row := range b.Paths {
		for j, word := range row {
			if i == j {
				continue
			}
			n := 0
			if text, ok := strings.CutPrefix(word, "NV"); ok {
				n = int(decimal(text))
			}
			maxLinks = max(maxLinks, n)
			if minLinks < 0 || n < minLinks {
				minLinks = n
			}
		}
	}
	switch {
	case minLinks <= 0:
		return "pcie" // perhaps with bridges between some pairs: collectives run at the rate of the slowest pair
	case len(b.GPUs) > 2 && float64(minLinks)*linkRate >= b.NVLink && b.NVLink > 0:
		return "nvswitch"
	case len(b.GPUs) > 2 && b.NVLink == 0 && minLinks == maxLinks && minLinks > 4:
		return "nvswitch" // without switches, no GPU has enough links for more than four to each of several others
	}
	return "nvlink"
}

// nics describes the active network ports of the fastest kind.
type nics struct {
	Count int
	Gbps  float64
	Kind  string // InfiniBand, Ethernet
}

// findNICs finds the active RDMA ports of the system, or its Ethernet ports if there are no RDMA ports.
func findNICs(root fs.FS) nics {
	var all []nics
	ports, _ := fs.Glob(root, "sys/class/infiniband/*/ports/*/rate") // the pattern is valid
	for _, p := range ports {
		dir := path.Dir(p)
		if !strings.Contains(readTrimmed(root, dir+"/state"), "ACTIVE") {
			continue
		}
		words := strings.Fields(readTrimmed(root, p)) // 400 Gb/sec (4X NDR)
		if len(words) > 0 {
			all = append(all, nics{1, decimal(words[0]), readTrimmed(root, dir+"/link_layer")})
		}
	}
	if len(all) == 0 {
		files, _ := fs.Glob(root, "sys/class/net/*/speed") // the pattern is valid
		for _, f := range files {
			if mbps := decimal(readTrimmed(root, f)); mbps > 0 && readTrimmed(root, path.Dir(f)+"/operstate") == "up" &&
				readTrimmed(root, path.Dir(f)+"/device/uevent") != "" {
				all = append(all, nics{1, mbps / 1000, "Ethernet"})
			}
		}
	}
	var best nics
	for _, n := range all {
		switch {
		case n.Gbps > best.Gbps || n.Gbps == best.Gbps && n.Kind == "InfiniBand" && best.Kind != "InfiniBand":
			best = n
		case n.Gbps == best.Gbps && n.Kind == best.Kind:
			best.Count++
		}
	}
	return best
}

// readTrimmed returns the trimmed content of a small file; "" if it cannot be read.
func readTrimmed(root fs.FS, file string) string {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
