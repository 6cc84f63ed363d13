package main

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
)

// The catalogues' listings fit a screen in width, whatever is added to them.
func TestListings(t *testing.T) {
	clusters := []clusterRow{}
	for _, name := range costmodel.ClusterNames() {
		clusters = append(clusters, catalogueRow(name))
	}
	for _, text := range []string{modelsScreen(catalogueModels()), clustersScreen(clusters)} {
		for line := range strings.Lines(text) {
			if w := layout.Width(strings.TrimSuffix(line, "\n")); w > layout.ScreenWidth {
				t.Errorf("%d columns: %q", w, line)
			}
		}
	}
}
