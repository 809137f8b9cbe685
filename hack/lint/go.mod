module fleetgate.io/fleetgate/hack/lint

go 1.26.0

require (
	github.com/gostaticanalysis/nilerr v0.1.2
	golang.org/x/tools v0.49.0
)

require (
	github.com/gostaticanalysis/comment v1.5.0 // indirect
	github.com/gostaticanalysis/testutil v0.4.0 // indirect
)
