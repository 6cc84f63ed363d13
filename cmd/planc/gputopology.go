package main

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// queryTopology asks nvidia-smi how GPUs are connected. What it does not say stays unknown: old ones, and those in some
// containers, do not.
func (b *gpuInventory) queryTopology(ask commandRunner) {
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

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m") // the head of the table is underlined

// pathTable reads nvidia-smi's table of what lies between each two GPUs; nil if it is none.
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

// allOK says whether each GPU reads from each other.
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

// linkSum is what NVLinks carry of each GPU, in one direction; 0 if GPUs differ, or one says nothing. nvidia-smi counts
// the wire's bits: 26.562 are 25 GB/s of data, as vendors print it, and 53.125 are 50.
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

// linkKind is how the GPUs are connected: nvswitch where each has all its NVLinks to each other, nvlink where each
// reaches each other by some, else pcie. "" where nobody says.
func (b *gpuInventory) linkKind(each float64) string {
	if b.Paths == nil {
		return ""
	}
	least, most := -1, 0
	for i, row := range b.Paths {
		for j, word := range row {
			if i == j {
				continue
			}
			n := 0
			if text, ok := strings.CutPrefix(word, "NV"); ok {
				n = int(decimal(text))
			}
			most = max(most, n)
			if least < 0 || n < least {
				least = n
			}
		}
	}
	switch {
	case least <= 0:
		return "pcie" // or bridges between some: collectives go at the pace of the slowest
	case len(b.GPUs) > 2 && float64(least)*each >= b.NVLink && b.NVLink > 0:
		return "nvswitch"
	case len(b.GPUs) > 2 && b.NVLink == 0 && least == most && least > 4:
		return "nvswitch" // no GPU has so many links that each of several others gets more than four
	}
	return "nvlink"
}

// nics are the network's ports of the fastest kind, where there are any that are up.
type nics struct {
	Count int
	Gbps  float64
	Kind  string // InfiniBand, Ethernet
}

// findNICs reads the system's RDMA ports, and of a machine without such its Ethernet ones.
func findNICs(root fs.FS) nics {
	var all []nics
	ports, _ := fs.Glob(root, "sys/class/infiniband/*/ports/*/rate") // a good pattern
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
		files, _ := fs.Glob(root, "sys/class/net/*/speed") // a good pattern
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

// readTrimmed is a small file without its surrounding space; "" where it cannot be read.
func readTrimmed(root fs.FS, file string) string {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
