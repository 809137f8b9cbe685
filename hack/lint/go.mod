module fleetgate.io/fleetgate/hack/lint

go 1.26.0

require (
	github.com/gostaticanalysis/nilerr v0.1.2
	github.com/julz/importas v0.2.0
	github.com/polyfloyd/go-errorlint v1.8.0
	github.com/sivchari/containedctx v1.0.3
	golang.org/x/tools v0.49.0
)

require github.com/gostaticanalysis/comment v1.5.0 // indirect
