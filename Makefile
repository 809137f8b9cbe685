# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0

# Everything that is built, started or written lives below this one ignored folder.
DIR := .fleetgate
BIN := $(DIR)/bin
GO ?= go
# What compiles and analyzes: with 8 GB of free memory, fewer garbage collections save a fifth of its CPU time.
COMPILE ?= $(if $(shell awk '$$1 == "MemAvailable:" && $$2 > 8000000' /proc/meminfo 2>/dev/null),env GOGC=300 )$(GO)
# One set of flags for programs, images, linters and tests, so that Go's cache has each package once. Only the
# race detector needs cgo. A shell shares the cache after: export CGO_ENABLED=0 GOFLAGS=-trimpath
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath)
RACE := CGO_ENABLED=1
TOOL := $(COMPILE) tool -modfile=go.tools.mod
STEP := hack/step.sh

# hack/kube/go.mod requires it. It is the newest version whose published sums hack/prebuilt pins.
KUBE_VERSION := v1.37.1
# The previous minor version, with which test-matrix mixes it.
KUBE_OLDER := v1.36.3
# The oldest kubectl that users may have; hack/kubectl/go.mod requires it.
KUBECTL_OLDEST := v1.29.15
# Of hack/k9s/go.mod.
K9S_VERSION := v0.50.16
KUBE_LINKS := etcd kube-apiserver kube-controller-manager kube-scheduler kubectl
NODE_LINKS := kubelet kube-proxy
KUBE_STAMP := k8s.io/component-base/version
kube_ldflags = -s -w -X $(KUBE_STAMP).gitVersion=$(1) -X $(KUBE_STAMP).gitMajor=1 -X $(KUBE_STAMP).gitMinor=$(word 2,$(subst ., ,$(1))) \
	-X $(KUBE_STAMP).gitTreeState=clean -X $(KUBE_STAMP).gitCommit=unknown -X $(KUBE_STAMP).buildDate=1970-01-01T00:00:00Z

# What downloads programs of the versions in hack instead of building them, where the internet can be reached;
# OFFLINE=1 builds them, also those that were downloaded before.
OFFLINE ?=
PREBUILT = $(if $(OFFLINE),false,$(GO) run ./hack/prebuilt -store $(DIR)/prebuilt -links $(@D))
$(if $(OFFLINE),$(shell find $(BIN) -lname '*/prebuilt/*' -delete 2>/dev/null))

# Groups of the benchmarks, how long each figure is measured, and how often.
BENCH ?= all
BENCHTIME ?= 1s
COUNT ?= 1
# A folder for results.json and a chart of each group; earlier results of other groups stay.
RESULTS ?= $(DIR)/benchmark/results
# A folder for what a failed integration or end-to-end test leaves behind.
ARTIFACTS ?= $(DIR)/artifacts

# One version for binaries, images and charts; a test compares them.
VERSION ?= $(shell sed -n 's/^appVersion: *//p' charts/gateway/Chart.yaml)
# -buildid= and -trimpath: the same source gives the same binary, wherever it is built.
LDFLAGS := -s -w -buildid= -X fleetgate.io/fleetgate/pkg/telemetry/version.version=$(VERSION)
PLATFORMS ?= linux/amd64 linux/arm64
# Where images will be, and where to push them now, if anywhere.
REPOSITORY ?= ghcr.io/fleetgate
PUSH ?=
# The time in images is that of the commit, or SOURCE_DATE_EPOCH.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

# What was said to an earlier `make up` holds until something else is said.
FLEET = $(BIN)/fleet $(if $(OCM),-ocm) $(if $(TUNNEL),-tunnel=$(TUNNEL)) $(if $(GATEWAY_FLAGS),-gateway-flags='$(GATEWAY_FLAGS)') $(if $(AGENT_FLAGS),-agent-flags='$(AGENT_FLAGS)')

# Of both modules; pkg/apis is one of its own.
PACKAGES := ./... fleetgate.io/fleetgate/pkg/apis/...
SOURCES := $(shell find cmd pkg -name '*.go' -o -name '*.yaml' 2>/dev/null) go.mod go.sum

.DEFAULT_GOAL := help

##@ Try it

.PHONY: help
help: ## Print this help.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make TARGET\n"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*##/ {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: up
up: tools ## Start a hub and two members on this machine, and run the main job on them; MEMBERS=3, OCM=1 for ManagedClusters too, GATEWAY_FLAGS=, AGENT_FLAGS=, TUNNEL=port|konnectivity.
	@$(FLEET) $(if $(MEMBERS),-members=$(MEMBERS)) up

.PHONY: member
member: tools ## Add a member to what `make up` started: NAME=member-3.
	@$(FLEET) member '$(NAME)'

.PHONY: down
down: ## Stop what `make up` started and remove its files.
	@if [ -x $(BIN)/fleet ]; then $(BIN)/fleet down; else echo "Nothing to stop: $(BIN)/fleet was never built"; fi

.PHONY: clean
clean: down ## Stop what `make up` started, and remove all that was built here.
	@rm -rf $(DIR)

##@ Build

.PHONY: build
build: $(BIN)/gateway $(BIN)/agent $(BIN)/kubectl-fleetgate ## Build gateway, agent and the kubectl plugin.

$(BIN)/gateway: $(SOURCES)
	@$(STEP) "Building gateway" $(COMPILE) build -o $@ ./cmd/gateway

$(BIN)/agent: $(SOURCES)
	@$(STEP) "Building agent" $(COMPILE) build -o $@ ./cmd/agent

$(BIN)/kubectl-fleetgate: $(SOURCES)
	@$(STEP) "Building the kubectl plugin" $(COMPILE) build -o $@ ./cmd/kubectl-fleetgate

.PHONY: kube
kube: $(BIN)/kube $(BIN)/kwok ## Download or build the Kubernetes programs that tests and `make up` run (once).

KUBE_SOURCES := hack/kube/main.go $(wildcard hack/kube/multicall/*.go) hack/prebuilt/sums.txt

# Programs that were downloaded have no binary in common: kube is then one of them.
$(BIN)/kube: $(KUBE_SOURCES) hack/kube/go.mod hack/kube/go.sum
	@rm -f $@
	@echo "==> Kubernetes $(KUBE_VERSION)"; $(PREBUILT) kube && ln -s kube-apiserver $@ || { \
		$(STEP) "Building Kubernetes $(KUBE_VERSION) (about 8 minutes on 2 cores, once)" \
		$(COMPILE) build -C hack/kube -ldflags '$(call kube_ldflags,$(KUBE_VERSION))' -o $(CURDIR)/$@ . && \
		for name in $(KUBE_LINKS); do ln -sf kube $(@D)/$$name; done; }

$(BIN)/node: $(wildcard hack/kube/node/*.go) $(wildcard hack/kube/multicall/*.go) hack/kube/go.mod hack/kube/go.sum | $(BIN)/kube
	@$(STEP) "Building kubelet and kube-proxy $(KUBE_VERSION)" \
		$(COMPILE) build -C hack/kube -ldflags '$(call kube_ldflags,$(KUBE_VERSION))' -o $(CURDIR)/$@ ./node
	@for name in $(NODE_LINKS); do ln -sf node $(BIN)/$$name; done

.PHONY: kube-older
kube-older: $(BIN)/older/kube ## Download or build the same programs of the previous minor version, for test-matrix (once).

$(BIN)/older/kube: $(KUBE_SOURCES) hack/kube/older.mod hack/kube/older.sum | $(BIN)/kwok
	@rm -f $@
	@echo "==> Kubernetes $(KUBE_OLDER)"; $(PREBUILT) kube-older && ln -s kube-apiserver $@ || { \
		$(STEP) "Building Kubernetes $(KUBE_OLDER) (about 8 minutes on 2 cores, once)" \
		$(COMPILE) build -C hack/kube -modfile=older.mod -ldflags '$(call kube_ldflags,$(KUBE_OLDER))' -o $(CURDIR)/$@ . && \
		for name in $(KUBE_LINKS); do ln -sf kube $(@D)/$$name; done; }
	@ln -sf ../kwok $(@D)/kwok

$(BIN)/kwok: hack/kwok/go.mod hack/kwok/go.sum hack/prebuilt/sums.txt
	@rm -f $@
	@echo "==> KWOK"; $(PREBUILT) kwok || $(STEP) "Building KWOK" $(COMPILE) build -C hack/kwok -ldflags '-s -w' -o $(CURDIR)/$@ sigs.k8s.io/kwok/cmd/kwok

$(BIN)/helm: hack/helm/go.mod hack/helm/go.sum hack/prebuilt/sums.txt
	@rm -f $@
	@echo "==> Helm"; $(PREBUILT) helm || $(STEP) "Building Helm" $(COMPILE) build -C hack/helm -ldflags '-s -w' -o $(CURDIR)/$@ helm.sh/helm/v4/cmd/helm

$(BIN)/lint: $(wildcard hack/lint/*.go) hack/lint/go.mod hack/lint/go.sum
	@$(STEP) "Building the tool of go vet" $(COMPILE) build -C hack/lint -o $(CURDIR)/$@ .

$(BIN)/golangci-lint: hack/golangci/main.go hack/golangci/go.mod hack/golangci/go.sum
	@$(STEP) "Building golangci-lint" $(COMPILE) build -C hack/golangci -ldflags '-s -w' -o $(CURDIR)/$@ .

$(BIN)/certmanager: hack/certmanager/main.go hack/certmanager/go.mod hack/certmanager/go.sum
	@$(STEP) "Building cert-manager's controllers" $(COMPILE) build -C hack/certmanager -ldflags '-s -w' -o $(CURDIR)/$@ .

$(BIN)/argocd: hack/argocd/main.go hack/argocd/go.mod hack/argocd/go.sum
	@$(STEP) "Building Argo CD's way to deploy" $(COMPILE) build -C hack/argocd -ldflags '-s -w' -o $(CURDIR)/$@ .

$(BIN)/konnectivity/server: hack/konnectivity/go.mod hack/konnectivity/go.sum
	@$(STEP) "Building upstream's Konnectivity" $(COMPILE) build -C hack/konnectivity -ldflags '-s -w' -o $(CURDIR)/$(@D)/ tool

# Each controller with the definitions and webhooks of its release.
$(BIN)/clusterapi/core/manager: hack/clusterapi/go.mod hack/clusterapi/go.sum
	@for package in core bootstrap/kubeadm controlplane/kubeadm test/infrastructure/docker; do \
		to=$(BIN)/clusterapi/$${package%%/*}; mkdir -p $$to; \
		$(STEP) "Building Cluster API: $$package" $(COMPILE) build -C hack/clusterapi -ldflags '-s -w' -o $(CURDIR)/$$to/manager sigs.k8s.io/cluster-api/$$package && \
		rm -rf $$to/config && cp -r --no-preserve=mode "$$($(GO) list -C hack/clusterapi -f '{{.Dir}}' sigs.k8s.io/cluster-api/$$package)/config" $$to/ || exit 1; \
	done; touch $@

.PHONY: clusterapi
clusterapi: $(BIN)/clusterapi/core/manager ## Build Cluster API's controllers and its in-memory infrastructure provider, for test-matrix (once).

# Outside kube's folder, so that only suites that ask for it run it.
$(BIN)/kubectl-oldest: hack/kubectl/main.go hack/kubectl/go.mod hack/kubectl/go.sum
	@$(STEP) "Building kubectl $(KUBECTL_OLDEST)" \
		$(COMPILE) build -C hack/kubectl -ldflags '-s -w -X k8s.io/component-base/version.gitVersion=$(KUBECTL_OLDEST)' -o $(CURDIR)/$@ .

.PHONY: k9s
k9s: $(BIN)/k9s ## Build k9s, for test-matrix (once).

$(BIN)/k9s: hack/k9s/go.mod hack/k9s/go.sum
	@$(STEP) "Building k9s $(K9S_VERSION)" \
		$(COMPILE) build -C hack/k9s -ldflags '-s -w -X github.com/derailed/k9s/cmd.version=$(K9S_VERSION)' -o $(CURDIR)/$@ github.com/derailed/k9s

$(BIN)/fleet: $(SOURCES) $(shell find hack/fleet test/support/env test/support/fleet -name '*.go' 2>/dev/null)
	@$(STEP) "Building the launcher" $(COMPILE) build -o $@ ./hack/fleet

.PHONY: images
images: ## Build images of gateway and agent, without Docker, into .fleetgate/images; PLATFORMS=, PUSH=<registry>.
	@$(COMPILE) build -C hack/images -o $(CURDIR)/$(BIN)/images .
	@for name in gateway agent; do \
		flags=; \
		for platform in $(PLATFORMS); do \
			binary=$(DIR)/images/bin/$$platform/$$name; \
			GOOS=$${platform%/*} GOARCH=$${platform#*/} \
				$(STEP) "Building $$name for $$platform" $(COMPILE) build -buildvcs=false -ldflags '$(LDFLAGS)' -o $$binary ./cmd/$$name || exit 1; \
			flags="$$flags -binary=$$platform=$$binary"; \
		done; \
		$(BIN)/images -name=$$name -version=$(VERSION) -created=$(SOURCE_DATE_EPOCH) -out=$(DIR)/images -repository=$(REPOSITORY)/$$name \
			$(if $(PUSH),-push=$(PUSH)/$$name) $$flags || exit 1; \
	done
	@$(if $(PUSH),$(IMAGE_FLAGS))

# What names images that were pushed.
define IMAGE_FLAGS
printf 'They are pushed. For charts/gateway:\n  %s\nFor charts/agent:\n  %s\n' \
	'--set image.repository=$(PUSH)/gateway,image.tag=$(VERSION),agentImage.repository=$(PUSH)/agent,agentImage.tag=$(VERSION)' \
	'--set image.repository=$(PUSH)/agent,image.tag=$(VERSION)'
endef

# The platforms of the kubectl plugin, and where its archives will be.
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
PLUGIN_URL ?= $(SOURCE)/releases/download/$(VERSION)

.PHONY: plugin
plugin: ## Build the kubectl plugin for all its platforms, with archives and Krew's manifest, into .fleetgate/plugin; PLUGIN_PLATFORMS=, PLUGIN_URL=.
	@for platform in $(PLUGIN_PLATFORMS); do \
		os=$${platform%/*}; arch=$${platform#*/}; exe=; [ $$os != windows ] || exe=.exe; \
		GOOS=$$os GOARCH=$$arch $(STEP) "Building the plugin for $$platform" \
			$(COMPILE) build -buildvcs=false -ldflags '$(LDFLAGS)' -o $(DIR)/plugin/bin/$$os-$$arch/kubectl-fleetgate$$exe ./cmd/kubectl-fleetgate || exit 1; \
	done
	@$(GO) run ./hack/krew -version=$(VERSION:v%=%) -binaries=$(DIR)/plugin/bin -url='$(PLUGIN_URL)' -out=$(DIR)/plugin $(PLUGIN_PLATFORMS)
	@echo "Wrote $(DIR)/plugin/fleetgate.yaml and the archives that it names"

.PHONY: kind
kind: $(BIN)/helm ## Make a hub and a member with kind, and install our images and charts there (needs kind and Docker).
	@$(MAKE) --no-print-directory images PLATFORMS=linux/$$($(GO) env GOARCH)
	@hack/kind.sh

.PHONY: charts
charts: $(BIN)/helm ## Pack the charts, and an install manifest beside them, into .fleetgate/charts.
	@mkdir -p $(DIR)/charts
	@$(BIN)/helm package charts/gateway charts/agent --destination $(DIR)/charts
	@$(BIN)/helm template gateway charts/gateway --namespace fleet-system --no-hooks --set hubURL=https://CHANGE-ME:6443 > $(DIR)/charts/install.yaml
	@echo "Wrote $(DIR)/charts/install.yaml: give it the hub's URL before it is applied"

# Who signs: KEY is a file with cosign's private key, and TLOG=1 records its signatures in the log; without KEY it is
# keyless, for the IDENTITY that ISSUER vouches for. SIGNING_CONFIG and TRUSTED_ROOT name other services than Sigstore's
# public ones. TRIAL=1 takes any tree.
KEY ?=
TLOG ?=
IDENTITY ?=
ISSUER ?=
SIGNING_CONFIG ?=
TRUSTED_ROOT ?=
TRIAL ?=
SOURCE ?= https://github.com/fleetgate/fleetgate
release_command = $(BIN)/release -push='$(PUSH)' -version=$(VERSION) -source=$(SOURCE) -created=$(SOURCE_DATE_EPOCH) \
	-images=$(DIR)/images -helm=$(BIN)/helm -out=$(DIR)/release \
	-key='$(KEY)' $(if $(TLOG),-transparency-log) -identity='$(IDENTITY)' -issuer='$(ISSUER)' -signing-config='$(SIGNING_CONFIG)' -trusted-root='$(TRUSTED_ROOT)' \
	$(if $(TRIAL),-trial)

.PHONY: release
release: $(BIN)/helm $(BIN)/release ## Put a release into .fleetgate/release, push its images and charts, sign all with SBOM and provenance, and verify that: PUSH=<registry>, KEY=<file> or keyless.
	@$(release_command) -check
	@$(MAKE) --no-print-directory release-folder
	@$(release_command)

# PUSH is where the charts find the images; nothing is pushed.
.PHONY: release-folder
release-folder: $(BIN)/helm ## Put all that a release publishes into .fleetgate/release, with checksums, without signatures: PUSH=<registry>.
	@$(MAKE) --no-print-directory images PUSH=
	@$(MAKE) --no-print-directory plugin
	@$(GO) run ./hack/bundle -version=$(VERSION) -repository='$(or $(PUSH),$(REPOSITORY))' -created=$(SOURCE_DATE_EPOCH) \
		-images=$(DIR)/images -plugin=$(DIR)/plugin -charts=charts -helm=$(BIN)/helm -out=$(DIR)/release

$(BIN)/release: $(wildcard hack/release/*.go) hack/release/go.mod hack/release/go.sum
	@$(STEP) "Building what signs a release (about 5 minutes, once)" $(COMPILE) build -C hack/release -ldflags '-s -w' -o $(CURDIR)/$@ .

.PHONY: tools
tools: kube $(BIN)/helm $(BIN)/gateway $(BIN)/agent $(BIN)/kubectl-fleetgate $(BIN)/fleet ## Build all that `make up` and the tests run.

##@ Develop

.PHONY: generate
generate: ## Regenerate deepcopy code, OpenAPI and CRDs.
	@$(STEP) "Generating" hack/generate.sh

.PHONY: update
update: generate $(BIN)/helm ## Bring everything up to date that `make verify` compares.
	@$(GO) test -count=1 ./test/documents ./test/charts -update >/dev/null
	@gofmt -w $$(git ls-files -co --exclude-standard '*.go')

.PHONY: verify
verify: lint $(BIN)/helm ## Check generated files, formatting, modules, documents, charts and lints.
	@$(STEP) "Verifying generated files" hack/verify-generated.sh
	@$(STEP) "Verifying documents" $(GO) test -count=1 ./test/documents
	@$(STEP) "Verifying prose" $(GO) test -count=1 ./test/prose
	@$(STEP) "Verifying charts" $(GO) test -count=1 ./test/charts
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
		if [ -n "$$unformatted" ]; then echo "Not formatted (run: make update):"; echo "$$unformatted"; exit 1; fi
	@$(STEP) "Verifying go.mod" sh -c '$(GO) mod tidy -diff && $(GO) -C pkg/apis mod tidy -diff'
	@$(STEP) "Verifying alerts" sh -c 'cd hack/alerts && $(GO) mod tidy -diff && $(GO) vet . && $(GO) test -count=1 .'
	@$(STEP) "Verifying images" sh -c 'cd hack/images && $(GO) mod tidy -diff && $(GO) vet . && $(GO) test .'

.PHONY: site
site: ## Build the documentation as a website into .fleetgate/site, one folder for each VERSION=; needs Node.js and npm.
	@$(STEP) "Building the website" hack/site.sh build '$(VERSION)'

.PHONY: site-serve
site-serve: ## Serve the documentation on this machine, with live reload; needs Node.js and npm.
	@hack/site.sh serve '$(VERSION)'

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what gateway and agent call, where the database of govulncheck can be reached.
	@$(GO) run ./hack/vulncheck $(TOOL) govulncheck ./cmd/...

GOLANGCI := GOLANGCI_LINT_CACHE=$(abspath $(DIR))/lint $(abspath $(BIN))/golangci-lint

.PHONY: lint
lint: $(BIN)/lint $(BIN)/golangci-lint ## Run go vet, staticcheck, golangci-lint (with kube-api-linter on our API groups) and the import table.
	@$(GO) test -C hack/lint .
	@$(STEP) "go vet, with staticcheck and nilerr" $(COMPILE) vet -vettool=$(CURDIR)/$(BIN)/lint $(PACKAGES)
	@$(STEP) "golangci-lint" env $(GOLANGCI) run ./...
	@$(STEP) "golangci-lint, with kube-api-linter" sh -c 'cd pkg/apis && $(GOLANGCI) run --enable kubeapilinter ./...'
	@$(STEP) "Import table" $(GO) test -count=1 ./test/imports

##@ Test

# go test does not vet, because make verify does: with the race detector, vet would load all
# dependencies of the tests a second time.
TEST := $(GO) test -vet=off

# FLAKE_ATTEMPTS=2 lets a spec on real API servers fail once: it is then listed as flaky,
# and is still a bug, but does not hold up a change that has nothing to do with it. So does
# a package of units: a runner that stands still for half a minute fails each test that waits.
# SUITES is how many of them run at a time, FLEETS how many fleets of the main job: they wait more
# than they compute.
SUITES ?= 3
FLEETS ?= 2
# Which of them.
INTEGRATION ?= ./test/support/env/... ./test/integration/...
ATTEMPTS = $(if $(FLAKE_ATTEMPTS),-ginkgo.flake-attempts=$(FLAKE_ATTEMPTS))
# A spec that hangs is named, after minutes and before go test ends the suite with all its goroutines and no name.
PATIENCE := -ginkgo.timeout=39m -ginkgo.poll-progress-after=4m

# One suite of test/integration for each subject, the longest first, so that it does not run alone at the end.
SUBJECTS := placement admission charts work proxy addons tunnel ocmplacements members
# Suites that run fleets of their own: they come when nothing else computes.
FLEETWIDE := fleetview plugin
# Of the others, those that only run programs, of which the race detector would see nothing.
PROGRAMS := workloads rights placementfleet chaos apis
# The longest first, too.
OTHERS := klusterlets workloads rights registration placementfleet manifestwork tokens chaos immutability apis
OTHERS += $(filter-out $(SUBJECTS) $(FLEETWIDE) $(OTHERS),$(notdir $(patsubst %/,%,$(wildcard test/integration/*/))))
# Targets that make test runs beside its suites.
BESIDE ?=
# A program that runs each suite, as go test -exec does.
EXEC ?=

.PHONY: test
test: tools ## Run what a change needs: units, make verify, a suite on real API servers for each subject, and the main job; starts and stops all it needs.
	@$(RACE) $(STEP) "Compiling with the race detector (once)" $(COMPILE) build -race ./pkg/...
	@$(MAKE) --no-print-directory -j2 test-beside test-servers

# With an empty build cache, make verify compiles longer than the suites run: the main job does not wait for it.
.PHONY: test-servers
test-servers:
	@$(MAKE) --no-print-directory test-suites
	@$(MAKE) --no-print-directory test-mainjob

# What computes runs beside suites on real API servers, which wait more than they compute. What no test
# waits for in it takes the time that they leave: on a slow machine API servers that shared it with
# linters did not start in time. Its output follows when it has ended, so that both can be read.
.PHONY: test-beside
test-beside:
	@mkdir -p $(DIR)/logs; echo "==> Units and make verify, beside suites on real API servers: $(DIR)/logs/beside.log"
	@status=0; { $(MAKE) test-unit || status=1; nice $(MAKE) verify $(BESIDE) || status=1; } >$(DIR)/logs/beside.log 2>&1; \
		cat $(DIR)/logs/beside.log; exit $$status

.PHONY: test-suites
test-suites:
	@$(MAKE) --no-print-directory test-integration INTEGRATION='$(SUBJECTS:%=./test/integration/%)'

# make runs SUITES of them at a time: go test would run those without the race detector after those with it, and
# the last ones of both alone.
.PHONY: test-others
test-others: ## Run the suites that make test does not run, but for those that run large fleets.
	@$(MAKE) --no-print-directory --keep-going --jobs=$(SUITES) --output-sync=target $(OTHERS:%=suite-%)

.PHONY: $(OTHERS:%=suite-%)
$(OTHERS:%=suite-%): suite-%: tools
	@$(MAKE) --no-print-directory test-integration INTEGRATION=./test/integration/$* $(if $(filter $*,$(PROGRAMS)),RACE=)

.PHONY: test-fleetwide
test-fleetwide:
	@$(MAKE) --no-print-directory test-integration RACE= SUITES=2 INTEGRATION='$(FLEETWIDE:%=./test/integration/%)'

.PHONY: test-all
test-all: test ## Run all tests: make test, all other suites, the console in a browser, real Pods, and make test-matrix.
	@$(MAKE) --no-print-directory test-others
	@$(MAKE) --no-print-directory test-fleetwide
	@$(MAKE) --no-print-directory test-console
	@$(MAKE) --no-print-directory test-pods
	@$(MAKE) --no-print-directory test-matrix

.PHONY: test-unit
test-unit: ## Run the unit tests with the race detector.
	@export $(RACE); units=$$($(GO) list $(PACKAGES) | grep -vE '/test/(charts|documents|imports|prose|integration|e2e|pods)'); \
		$(TEST) -race -timeout 20m $$units && exit; [ -n "$(FLAKE_ATTEMPTS)" ] || exit 1; \
		echo "Again: what passes now is flaky; what is cached has passed"; \
		$(TEST) -race -timeout 20m $$units

.PHONY: test-quick
test-quick: ## Vet, formats and units without the race detector: only what has changed since it last passed, as Go's caches know it.
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
		if [ -n "$$unformatted" ]; then echo "Not formatted (run: make update):"; echo "$$unformatted"; exit 1; fi
	@$(STEP) "go vet" $(GO) vet $(PACKAGES)
	@$(STEP) "Units" $(GO) test -short $$($(GO) list $(PACKAGES) | grep -vE '/test/(integration|e2e|pods)')

.PHONY: test-integration
test-integration: tools ## Run the integration suites on real API servers.
	$(RACE) FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) $(TEST) $(if $(RACE),-race) $(if $(EXEC),-exec $(EXEC)) -p $(SUITES) -count=1 -timeout 40m $(INTEGRATION) $(ATTEMPTS) $(PATIENCE) -ginkgo.label-filter='!matrix'

.PHONY: test-e2e
test-e2e: test-mainjob test-console ## Run the main job end to end, with its assertions, and the console in a browser.

.PHONY: test-mainjob
test-mainjob: tools
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) $(GO) tool ginkgo --procs=$(FLEETS) --vet=off --timeout=20m --label-filter='!matrix' $(if $(FLAKE_ATTEMPTS),--flake-attempts=$(FLAKE_ATTEMPTS)) ./test/e2e

.PHONY: test-console
test-console: tools
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) $(TEST) -count=1 -timeout 20m ./test/e2e/console -ginkgo.label-filter='!matrix' $(ATTEMPTS)

# Which specs on real Pods; those of the plugin, which install a second member, are longer.
PODS ?= !matrix
.PHONY: test-pods
test-pods: kube $(BIN)/node $(BIN)/helm ## Install the charts on real Pods (kubelet, containerd, our images), as root on Linux; installs Debian's packages that are missing.
	@$(MAKE) --no-print-directory images PLATFORMS=linux/$$($(GO) env GOARCH)
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) $(TEST) -count=1 -timeout 20m -exec $(CURDIR)/test/pods/machine.sh ./test/pods $(ATTEMPTS) -ginkgo.label-filter='$(PODS)'

.PHONY: test-matrix
test-matrix: tools kube-older clusterapi $(BIN)/certmanager $(BIN)/argocd $(BIN)/konnectivity/server $(BIN)/kubectl-oldest k9s ## Run what is longer: the main job over the agents' port, over Konnectivity, with hub or members of the minor version of Kubernetes before, placement on a hub with ManagedClusters, and with agents or a gateway of the previous release (FLEETGATE_PREVIOUS=<commit>), repeated kills of each process during it and during registration, cert-manager's own controllers, Argo CD's own deploying, Cluster API's own controllers, upstream's own Konnectivity, proxy and views with the oldest kubectl, views with Python's client (Debian's, which hack/python.sh installs) and with k9s (in Debian's tmux, which hack/tmux.sh installs), cut-off members, wars of writes, gateways killed under load, half an hour of random changes and faults, clocks that are ten minutes wrong, 1 GiB through each tunnel, a network that leads nowhere, arm64, a release.
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_TUNNEL=port $(GO) test -count=1 -timeout 20m ./test/e2e/... -ginkgo.focus='The main job make up'
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_TUNNEL=konnectivity $(GO) test -count=1 -timeout 20m ./test/e2e/... -ginkgo.focus='The main job make up'
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_HUB_BIN=$(abspath $(BIN))/older $(GO) test -count=1 -timeout 20m ./test/e2e/... -ginkgo.focus='The main job make up'
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_MEMBER_BIN=$(abspath $(BIN))/older $(GO) test -count=1 -timeout 20m ./test/e2e/... -ginkgo.focus='The main job make up'
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_SKEW=agent $(GO) test -count=1 -timeout 20m ./test/e2e/... -ginkgo.focus='The main job make up'
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_SKEW=gateway $(GO) test -count=1 -timeout 20m ./test/e2e/... -ginkgo.focus='The main job make up'
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_OCM=1 $(GO) test -count=1 -timeout 40m ./test/integration/placement -ginkgo.label-filter='!matrix'
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_OCM=1 $(GO) test -count=1 -timeout 40m ./test/integration/placementfleet
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) $(GO) test -count=1 -p 1 -timeout 40m ./test/integration/... -ginkgo.label-filter=matrix
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_KUBECTL=kubectl-oldest $(GO) test -count=1 -p 1 -timeout 40m ./test/integration/proxy ./test/integration/fleetview -ginkgo.label-filter='!matrix'
	@$(MAKE) --no-print-directory test-chaos
	@$(MAKE) --no-print-directory test-pods PODS=
	@$(MAKE) --no-print-directory test-airgap
	@$(MAKE) --no-print-directory test-arm64
	@$(MAKE) --no-print-directory test-release
	$(RACE) FLEETGATE_MATRIX=1 $(GO) test -race -count=1 -timeout 30m ./pkg/tunnel/... -run='TestTransport/.*/a_large_transfer|TestARelayedConnectionBehavesLikeADirectOne/a_large_transfer'
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) $(GO) test -count=1 -timeout 20m ./test/e2e/... -ginkgo.label-filter=matrix
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_MATRIX=1 $(GO) test -count=1 -timeout 40m ./test/e2e/... -ginkgo.focus='kill -9'

# How long, and which changes and faults; without a seed, it is random and printed.
CHAOS ?= 30m
SEED ?=
.PHONY: test-chaos
test-chaos: tools ## Change a fleet at random while parts of it fail, and look for deletions without a cause: CHAOS=30m, SEED=<number>.
	@seed=$(or $(SEED),$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')); echo "SEED=$$seed"; \
		FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) FLEETGATE_CHAOS=$(CHAOS) FLEETGATE_SEED=$$seed $(GO) test -count=1 -timeout 90m ./test/integration/chaos -ginkgo.timeout=89m

.PHONY: test-arm64
test-arm64: ## Build the images' binaries for arm64 and run them under Debian's qemu-user, as far as --version and --help.
	@$(MAKE) --no-print-directory images PLATFORMS=linux/arm64
	@hack/arm64.sh $(foreach name,gateway agent,$(DIR)/images/bin/linux/arm64/$(name))

# In a network of its own there is nothing but loopback.
.PHONY: test-airgap
test-airgap: tools ## Run the main job and a chart from a local registry in a network that leads nowhere, as root on Linux.
	FLEETGATE_ARTIFACTS=$(abspath $(ARTIFACTS)) GOPROXY=off unshare --net sh -c 'ip link set lo up && \
		$(GO) test -count=1 -timeout 20m ./test/e2e -ginkgo.focus="The main job make up" -ginkgo.label-filter="!matrix" && \
		$(GO) test -count=1 ./pkg/placement/helmchart/...'

.PHONY: test-release
test-release: $(BIN)/helm ## Release to a registry of the test's own, and verify every signature and statement.
	@$(STEP) "Verifying what signs a release" sh -c 'cd hack/release && $(GO) mod tidy -diff && $(GO) vet .'
	$(GO) test -C hack/release -count=1 -timeout 10m .

# What each target of go test -fuzz finds stays in testdata/fuzz beside it, to be committed
# with the fix; what makes it go further stays in the cache, for the next time.
FUZZTIME ?= 1m
FUZZ ?= .
FUZZCACHE := $(abspath $(DIR))/fuzz

.PHONY: fuzz
fuzz: ## Run all fuzz targets, one after another, FUZZTIME (1m) each; FUZZ=<regexp> chooses some.
	@hack/fuzz.sh '$(FUZZ)' '$(FUZZTIME)' '$(FUZZCACHE)'

# Only some groups run a fleet, and need programs for it. What builds them talks to
# stderr: stdout is for benchstat.
.PHONY: bench
bench: ## Print figures beside their baselines; BENCH=agent|tunnel|proxy|fleetview|scheduler|placement|scale|ocmplacement|works|manifestworks|admission|authors|membership|managedclusters|addons|members|plugin|tokens chooses a group.
	$(if $(strip $(foreach group,all agent admission authors proxy placement scale works manifestworks membership managedclusters addons members plugin tunnel,$(findstring $(group),$(BENCH)))),@$(MAKE) --silent --no-print-directory kube build >&2)
	@$(COMPILE) build -o $(BIN)/bench ./test/benchmark/bench
	@exec $(BIN)/bench -benchtime='$(BENCHTIME)' -count='$(COUNT)' -results='$(RESULTS)' '$(BENCH)'
