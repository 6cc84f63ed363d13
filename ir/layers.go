package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// Layers says which layers of a segment are local (with a window and a rotary base of their own) and which are full:
// runs of l and f that repeat over the layers, such as "5l1f" for five local layers and a full one. "" means that all
// layers are alike.
type Layers string

// LayersOf returns the shortest pattern of the layers; "" if all are alike.
func LayersOf(local []bool) Layers {
	n := len(local)
	period := 1
	for ; period < n; period++ {
		if repeats(local, period) {
			break
		}
	}
	if period == 1 {
		return ""
	}
	var b strings.Builder
	for i := 0; i < period; {
		j := i
		for j < period && local[j] == local[i] {
			j++
		}
		fmt.Fprintf(&b, "%d%c", j-i, kind(local[i]))
		i = j
	}
	return Layers(b.String())
}

func repeats(local []bool, period int) bool {
	for i := period; i < len(local); i++ {
		if local[i] != local[i-period] {
			return false
		}
	}
	return true
}

func kind(local bool) byte {
	if local {
		return 'l'
	}
	return 'f'
}

// ParseLayers reads a pattern, which must have the form that LayersOf returns.
func ParseLayers(s string) (Layers, error) {
	var local []bool
	for rest := s; rest != ""; {
		i := strings.IndexAny(rest, "lf")
		n, err := strconv.Atoi(rest[:max(i, 0)])
		if i < 0 || err != nil || n < 1 || n > 1<<14 {
			return "", fmt.Errorf("%q must be runs of local and full layers such as 5l1f", s)
		}
		for range n {
			local = append(local, rest[i] == 'l')
		}
		rest = rest[i+1:]
	}
	if l := LayersOf(append(local, local...)); string(l) != s {
		return "", fmt.Errorf("layers %q must be written %q", s, l)
	}
	return Layers(s), nil
}

// Pattern returns one period; nil if all layers are alike.
func (l Layers) Pattern() []bool {
	var local []bool
	for rest := string(l); rest != ""; {
		i := strings.IndexAny(rest, "lf")
		n, _ := strconv.Atoi(rest[:i])
		for range n {
			local = append(local, rest[i] == 'l')
		}
		rest = rest[i+1:]
	}
	return local
}

// LocalPart returns the fraction of a period's layers that are local.
func (l Layers) LocalPart() float64 {
	p := l.Pattern()
	if len(p) == 0 {
		return 1
	}
	n := 0
	for _, local := range p {
		if local {
			n++
		}
	}
	return float64(n) / float64(len(p))
}

// Local reports whether a layer, counted from 0, is local. Without a pattern every layer is.
func (l Layers) Local(layer int) bool {
	p := l.Pattern()
	return len(p) == 0 || p[layer%len(p)]
}
