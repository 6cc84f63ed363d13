module github.com/planc-dev/planc/tools/cudalab

go 1.26.0

require (
	github.com/planc-dev/planc v0.0.0-00010101000000-000000000000
	gorgonia.org/cu v0.9.6
)

require (
	github.com/google/uuid v1.1.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
)

replace github.com/planc-dev/planc => ../..
