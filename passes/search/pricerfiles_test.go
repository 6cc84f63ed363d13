package search

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pricerFiles are the files of the pricer, without .go. All others belong to the search.
var pricerFiles = strings.Fields(`baseprofile candidateprice commroutes degreeclass engineprofile expertgroups family
	layermemory layerprofile layertimes moeload pipelinesplit plantables postpass precompile pricer shardingcost
	stagememory statelayout stepbound tablestep traffic`)

// declared returns the names of a file's top-level types, functions, variables and constants, and the types that its
// methods belong to.
func declared(f *ast.File) (names, receivers []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
				continue
			}
			receiver := d.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			if id, ok := receiver.(*ast.Ident); ok {
				receivers = append(receivers, id.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						names = append(names, id.Name)
					}
				}
			}
		}
	}
	return names, receivers
}

// The pricer depends on nothing of the search.
func TestPricerFilesReferToNothingOfTheSearch(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	pricer, ofSearch, ofPricer := map[string]*ast.File{}, map[string]string{}, map[string]string{}
	methodsOf := map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		names, receivers := declared(f)
		owner := ofSearch
		if slices.Contains(pricerFiles, strings.TrimSuffix(path, ".go")) {
			pricer[path], owner = f, ofPricer
		} else {
			for _, name := range receivers {
				methodsOf[name] = path
			}
		}
		for _, name := range names {
			owner[name] = path
		}
	}
	if len(pricer) != len(pricerFiles) {
		t.Errorf("%d of the %d files of the pricer exist", len(pricer), len(pricerFiles))
	}
	for path, f := range pricer {
		for _, id := range f.Unresolved {
			if ofSearch[id.Name] != "" {
				t.Errorf("%s uses %s of %s", path, id.Name, ofSearch[id.Name])
			}
		}
	}
	for name, path := range methodsOf {
		if ofPricer[name] != "" {
			t.Errorf("%s adds methods to %s of %s", path, name, ofPricer[name])
		}
	}
}
