# Everything here works on a fresh clone with Go and make; `make help` lists the targets.

SERVICES := ingress analyzer enricher dispatcher session-writer
BINARIES := hydrallm $(SERVICES)
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X hydrallm/shared/process.version=$(VERSION)

TEST_TIMEOUT ?= 30m
# The packages whose tests run a real browser, which takes all processors for itself: they are tested one after the other, behind the rest.
BROWSER_TESTS := hydrallm/services/enricher/internal/browser hydrallm/services/enricher/internal/reader hydrallm/services/hydrallm/e2e/webui
FUZZTIME     ?= 60s
FUZZTOTAL    ?=
BENCH        ?= .
BENCHTIME    ?= 1s
SOAK         ?= 30m
CHAOS_AS     ?=

# The directories of the modules of go.work, one per line; evaluated only where it is used.
MODULES = $(shell go list -m -f '{{.Dir}}')
# Those of the modules with code that are not in go.work, so that their dependencies are not the gateway's.
APART = $(CURDIR)/deploy/kubernetes/check $(CURDIR)/deploy/tools/release
# The binary of a tool that deploy/tools pins; it is built on the first use and cached by Go.
TOOL = GOWORK=off go -C $(CURDIR)/deploy/tools tool -n

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## run the gateway in one process; without any configuration it is a demo with a mock upstream
	@go build -o bin/hydrallm ./services/hydrallm/cmd/hydrallm && exec bin/hydrallm serve --or-demo $(ARGS)

.PHONY: test
test: ## vet and test every module with the race detector
	go vet work
	go test -race -timeout $(TEST_TIMEOUT) $$(go list work | grep -vxF $(BROWSER_TESTS:%=-e %))
	go test -race -timeout $(TEST_TIMEOUT) -p 1 $(BROWSER_TESTS)
	@$(MAKE) --no-print-directory manifests packaging
	@go test -count 1 hydrallm/shared/testkit/archtest hydrallm/services/hydrallm/internal/doctest # read files of every module, which Go's test cache does not see

.PHONY: manifests
manifests: ## build the manifests of Kubernetes and check them; needs the module proxy once
	@cd deploy/kubernetes/check && if [ "$$HYDRALLM_REQUIRE_SERVICES" = 1 ] || GOWORK=off go mod download >/dev/null 2>&1; then GOWORK=off go test ./...; \
		else echo "manifests: the modules of Kubernetes can't be had, skipped"; fi

.PHONY: build
build: ## build bin/hydrallm and one binary per service
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o bin/ \
		$(foreach b,$(BINARIES),./services/$(b)/cmd/$(b))

.PHONY: release
release: ## archives, images, packages for Debian and npm, a chart, bills of materials and checksums, in dist/VERSION (PLATFORMS="linux/amd64")
	@GOWORK=off go -C deploy/tools/release run . $(if $(RELEASE_URL),-url "$(RELEASE_URL)") "$(VERSION)" "$(CURDIR)/dist/$(VERSION)" $(PLATFORMS)

.PHONY: reproducible
reproducible: ## make a release twice, in two directories with nothing of the first build, and compare (PLATFORMS="linux/amd64")
	@deploy/reproducible.sh $(PLATFORMS)

.PHONY: packaging
packaging: ## the tests of what makes a release; needs the module proxy once
	@cd deploy/tools/release && if [ "$$HYDRALLM_REQUIRE_SERVICES" = 1 ] || GOWORK=off go mod download >/dev/null 2>&1; then GOWORK=off go test ./...; \
		else echo "packaging: the modules of the release can't be had, skipped"; fi

.PHONY: installs
installs: ## go each way to install in a clean container up to the first answer, and print how long it took (HYDRALLM_DIST=dist/VERSION of the version dev)
	@deploy/baseimages/images.sh
	go test -tags e2e -count 1 -v -timeout 2h ./services/hydrallm/e2e/install

.PHONY: check
check: tidy fmt vet lint race alone vuln ## everything that must hold before a change lands

.PHONY: tidy
tidy: ## fail when a go.mod or go.sum is not tidy
	@for dir in $(MODULES) $(APART) $(CURDIR)/deploy/tools; do echo "tidy $${dir#$(CURDIR)/}"; (cd $$dir && GOWORK=off go mod tidy -diff) || exit 1; done

.PHONY: fmt
fmt: ## fail when a file is not formatted or uses an idiom that go fix replaces
	@out=$$(gofmt -l docs services shared deploy); [ -z "$$out" ] || { echo "not formatted:"; echo "$$out"; exit 1; }
	@for dir in $(MODULES) $(APART); do out=$$(cd $$dir && GOWORK=off go fix -diff ./... 2>&1) || true; \
		[ -z "$$out" ] || { echo "go fix has to say:"; echo "$$out"; exit 1; }; done

.PHONY: vet
vet:
	go vet work
	go vet -tags e2e ./services/hydrallm/e2e/...

.PHONY: lint
lint: ## run golangci-lint in every module
	@lint=$$($(TOOL) golangci-lint) && for dir in $(MODULES) $(APART); do \
		echo "lint $${dir#$(CURDIR)/}"; (cd $$dir && GOWORK=off "$$lint" run --config $(CURDIR)/.golangci.yml ./...) || exit 1; done

.PHONY: race
race: ## the tests with the race detector, never from the cache
	go test -race -count 1 -timeout $(TEST_TIMEOUT) $$(go list work | grep -vxF $(BROWSER_TESTS:%=-e %))
	go test -race -count 1 -timeout $(TEST_TIMEOUT) -p 1 $(BROWSER_TESTS)

.PHONY: alone
alone: ## build and vet each module without the workspace, as somebody else would
	@for dir in $(MODULES) $(APART); do echo "alone $${dir#$(CURDIR)/}"; (cd $$dir && GOWORK=off go vet ./...) || exit 1; done

.PHONY: vuln
vuln: ## look for known vulnerabilities; needs the vulnerability database
	@vuln=$$($(TOOL) govulncheck) && for dir in $(MODULES); do \
		out=$$(cd $$dir && "$$vuln" ./... 2>&1); code=$$?; \
		case "$$out" in *"fetching vulnerabilities"*|*"dial tcp"*) echo "vuln: the vulnerability database is not reachable, skipped"; exit 0;; esac; \
		[ $$code -eq 0 ] || { echo "$$out"; exit 1; }; done

.PHONY: docs
docs: ## write the tables of docs/configuration.md, which come from the code, and the documents as a web site into dist/docs
	go test -count 1 -run TestPageIsUpToDate ./shared/config -update
	go run ./docs/cmd/site dist/docs

.PHONY: bench
bench: ## run the benchmarks (BENCH=regexp BENCHTIME=1s)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) work

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME each, or those that fit into FUZZTOTAL seconds
	@deploy/fuzz.sh $(FUZZTIME) $(FUZZTOTAL)

.PHONY: chaos
chaos: ## kill, pause and cut off parts of a distributed gateway under load: processes, and containers if a Docker engine answers (CHAOS_AS=processes|containers CHAOS_SEED=n CHAOS_ROUNDS=1 CHAOS_ONLY="dispatcher killed")
	@[ "$(CHAOS_AS)" = processes ] || ! docker info >/dev/null 2>&1 || deploy/baseimages/images.sh
	go test -tags e2e -count 1 -v -timeout 3h -run '(?i)^TestChaos$(CHAOS_AS)' ./services/hydrallm/e2e/chaos

.PHONY: soak
soak: ## run a distributed gateway at half of its capacity for SOAK (30m) and fail when anything grows
	SOAK=$(SOAK) go test -tags e2e -count 1 -v -timeout 4h -run '^TestSoak$$' ./services/hydrallm/e2e/chaos

.PHONY: weather
weather: ## the suites of the services on a bus whose messages are late, out of order and repeated, on a busy machine (BUS_WEATHER=n)
	@services/hydrallm/e2e/weather.sh

.PHONY: cluster
cluster: ## build the images, run the cluster of deploy/cluster on the Docker engine, scale it, kill a NATS server and talk to it
	@deploy/baseimages/images.sh
	go test -tags e2e -count 1 -v -timeout 90m -run '^TestComposeCluster$$' ./services/hydrallm/e2e

.PHONY: e2e
e2e: ## run real clients against the gateway, a short form of chaos, build the images, run the compose set and talk to it
	@services/hydrallm/e2e/run.sh
