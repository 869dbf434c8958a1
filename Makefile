# The targets of developers and of the build service; make help lists them. make test needs only Go. make check also
# needs gcc (for the race detector), Node.js and Python 3. Other targets install Debian packages.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO        ?= go
FUZZTIME  ?= 60s
COUNT     ?= 6
BASE      ?= HEAD
BENCH     ?= .
BENCHFLAGS ?=
FAULTS    ?=
WORLDS    ?=
RUNS      ?= 10
PAGES     ?=
VERSION   ?=
# The Go release that builds releases. Another Go release would give other bytes. The Dockerfile names it too.
RELEASE_GO := go1.26.8
# Use another vulnerability database, and set its date if it has none: see .ci/vulnerabilities.
export VULNDB VULNDB_DATE
# No target changes go.mod. If a module is missing there, it is an error and not downloaded.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -mod=readonly)
# The developers' tools are pinned in a module file of their own. In go.mod they would become dependencies of every
# program that imports this module.
TOOLS_MOD := .ci/tools.mod
TOOL_DEPS := $(TOOLS_MOD) .ci/tools.sum
LINT      := .tools/golangci-lint
BENCHSTAT := .tools/benchstat
GOVULN    := .tools/govulncheck

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  \1\t\2/p' Makefile | expand -t 22

.PHONY: run
run: build ## start the demo: a whole node, fed by a simulated market
	./tasard demo

# .ci/smaller has flags that make the program 3 MB smaller: no symbols, and no inlining in libraries that no request for
# rates uses. A record of a cluster costs the same. The Dockerfile and .ci/release use these flags too.
.PHONY: build
build: ## build ./tasard
	@echo 'building ./tasard: the first time takes one to three minutes' >&2
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto $$(cat .ci/smaller) -o tasard .

.PHONY: test
test: ## every test that a change must pass: needs nothing but Go; packages that did not change are not run again
	$(GO) test ./...

.PHONY: check
check: test lint race sweeps contract licences ## test, and: lint, race detector, whole sweeps, the contract, licences

.PHONY: verify
verify: test-faults fuzz bench-check pages-test worlds ## the checks that take hours: faults, fuzzing, costs, a browser, unusual machines

.PHONY: lint
lint: $(LINT) ## golangci-lint with .golangci.yml
	$(LINT) run

.PHONY: vet
vet: ## go vet, with and without the fault tests
	$(GO) vet ./...
	$(GO) vet -tags faults ./...

.PHONY: race
race: ## every test with the race detector, in random order
	@command -v gcc >/dev/null || { echo "go test -race needs a C compiler: apt-get install gcc" >&2; exit 1; }
	$(GO) test -race -shuffle=on -timeout 15m ./...

# Tests that read SWEEP run on samples unless it is "whole". For other tests go test uses its cached result.
.PHONY: sweeps
sweeps: ## every test with whole sweeps in place of samples: each byte, each bit, a million conversions
	SWEEP=whole $(GO) test -timeout 15m ./...

.PHONY: worlds
worlds: ## make test on unusual machines: busy, other paths, not root, other clocks; WORLDS="busy path" picks, RUNS=10
	@.ci/worlds -n $(RUNS) $(WORLDS)

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (60s)
	.ci/fuzz $(FUZZTIME)

.PHONY: test-faults
test-faults: build ## crashes, power cuts, full disks, overload, hostile clients: an hour; FAULTS=W1 picks by name
	@.ci/debian faults
	@.ci/faults $(FAULTS)

.PHONY: release
release: ## archives, .deb, OCI image, SBOM and sums of the commit in dist; VERSION=1.2.3, else its tag's
	rm -rf dist
	GOTOOLCHAIN=$(RELEASE_GO) .ci/release/release $(VERSION)

.PHONY: release-check
release-check: ## make release twice, in two clones with their own caches, and compare the bytes; 10 minutes
	@.ci/release-check $(VERSION)

.PHONY: package-check
package-check: ## install the .deb of dist in a Debian that boots, run the image of dist, both architectures; needs root
	@.ci/debian package
	@.ci/package-check dist
	@.ci/image-check dist

.PHONY: vuln
vuln: $(GOVULN) ## known vulnerabilities of Go and of modules that our code can reach; VULNDB=file:///dir without a network
	@.ci/vulnerabilities

.PHONY: contract
contract: build ## the OpenAPI document of a demo, checked with well-known tools, and the clients of docs/clients.md; needs Node.js, Python
	@.ci/contract/check

.PHONY: pages-test
pages-test: build ## the pages in a real browser: sign-up, accessibility, policy; PAGES=sign-up picks by name; needs Node.js
	@.ci/debian browser
	@.ci/browser/check "$(PAGES)"

.PHONY: licences
licences: ## the licence of each linked module; fails on an unknown or copyleft one
	@.ci/licences

.PHONY: bench
bench: build ## the node under load against a bare server and nginx, 15 minutes; prints a table; BENCHFLAGS="-goals F1r -rounds 5"
	@.ci/debian bench
	$(GO) build -trimpath -o .tools/bench ./bench
	.tools/bench -tasard ./tasard $(BENCHFLAGS)

.PHONY: bench-check
bench-check: ## compare the instructions that a request takes with the accepted ones
	@.ci/debian costs
	INSTRUCTIONS=check $(GO) test -count=1 -run '^TestInstructions' ./httpapi

.PHONY: bench-accept
bench-accept: ## accept the present cost of a request (.ci/costs.json); give the reason in the commit
	@.ci/debian costs
	INSTRUCTIONS=accept $(GO) test -count=1 -run '^TestInstructions' ./httpapi

.PHONY: bench-go
bench-go: ## Go benchmarks of every package, COUNT (6) times each; BENCH=regexp picks
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

.PHONY: bench-compare
bench-compare: $(BENCHSTAT) ## the same, against BASE (HEAD), alternating, with benchstat
	.ci/bench-compare $(BASE) $(COUNT) '$(BENCH)'

# Only packages that define the flag -update: the others would reject it.
.PHONY: golden
golden: ## rewrite the golden files; read the diff before you commit it
	@dirs=$$(grep -rlE --include='*_test.go' 'flag\.Bool(Var)?\(.*"update"' . | xargs -r -n1 dirname | sort -u); \
	if [ -z "$$dirs" ]; then echo "no package has golden files"; exit 0; fi; \
	$(GO) test $$dirs -run Golden -count=1 -update; \
	git status --short -- '*testdata*'

.PHONY: cover
cover: ## coverage of all packages by all tests, in cover.html
	$(GO) test -coverpkg=./... -coverprofile=cover.out ./...
	$(GO) tool cover -html=cover.out -o cover.html
	$(GO) tool cover -func=cover.out | tail -1

.PHONY: docs-assets
docs-assets: ## fetch the pinned Swagger UI (npm) that the pages of documentation embed
	@.ci/docs-assets

.PHONY: tools
tools: $(LINT) $(BENCHSTAT) $(GOVULN) ## build the pinned tools into .tools

.PHONY: clean
clean: ## remove built files and reports; data directories stay
	rm -rf .tools tasard dist cover.html cover.out

$(LINT): $(TOOL_DEPS)
	@echo "building golangci-lint (once, some minutes)"
	$(GO) build -modfile=$(TOOLS_MOD) -trimpath -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(BENCHSTAT): $(TOOL_DEPS)
	$(GO) build -modfile=$(TOOLS_MOD) -trimpath -o $@ golang.org/x/perf/cmd/benchstat
	@touch $@

$(GOVULN): $(TOOL_DEPS)
	$(GO) build -modfile=$(TOOLS_MOD) -trimpath -o $@ golang.org/x/vuln/cmd/govulncheck
	@touch $@
