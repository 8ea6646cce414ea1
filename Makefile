# Everything a contributor types. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= cargo

.PHONY: dashboard-test help prerequisites assets build test properties soak lint chart chart-test ship-test generate demo newcomer bench load load-report dist image image-exporter uploader-image ssh-bastion-image sbom release-test book clean

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

prerequisites: ## The prerequisites of the build and the tests: installed if possible, else named
	@./tests/prerequisites.sh

.PHONY: control-plane-prerequisites
control-plane-prerequisites:
	@./tests/prerequisites.sh control-plane

# The shipped binary is static, so that it runs in an empty image. It does not contain the names of the build folders, so
# that builds in different folders are identical. With --target the flags do not apply to build scripts. Relocations are
# packed, and identical functions are merged where the linker is known to be LLD, as Rust has it for this target.
, := ,
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
TARGET ?= $(HOST)
FEATURES := $(if $(findstring musl,$(TARGET)),--features mimalloc)
RELEASE := --release --locked --target $(TARGET) --bin crownlabs $(FEATURES)
CARGO_HOME ?= $(HOME)/.cargo
REVISION ?= $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)
LINK := -C link-arg=-Wl,-z,pack-relative-relocs $(if $(filter x86_64-unknown-linux-gnu,$(TARGET)),-C link-arg=-Wl$(,)--icf=all)
STATIC_FLAGS := -C target-feature=+crt-static $(LINK) --remap-path-prefix=$(CURDIR)=. --remap-path-prefix=$(CARGO_HOME)=cargo
STATIC := RUSTFLAGS="$(STATIC_FLAGS)" CROWNLABS_REVISION="$(REVISION)" $(CARGO)

LIVE := assets/vendor/live.js.gz
assets: $(LIVE) ## The scripts of the dashboard's live pages, terminals and consoles, from npm by the hashes of assets/package-lock.json

$(LIVE): assets/fetch.sh assets/package-lock.json $(wildcard assets/terminal.js assets/console.js)
	./assets/fetch.sh

build: $(LIVE) ## The release binary, target/TARGET/release/crownlabs: static, without paths of this machine
	$(STATIC) build $(RELEASE)

# More tests at once than there are cores: most tests spend most of their time waiting.
TEST_THREADS ?= 6

# The tests that depend most on the version of Kubernetes: the objects of the Go operators, CRDs and their rules, webhooks,
# policies.
OLDEST_TESTS ?= takeover:: compatibility:: rules:: webhook:: policies:: definitions:: impersonation::

test: $(if $(OLDEST),control-plane-prerequisites,prerequisites) ## Everything: unit, snapshot, property and integration tests on a real control plane. OLDEST=1: the tests that depend most on the version of Kubernetes, with the oldest supported one
	$(CARGO) test --locked --no-fail-fast $(if $(OLDEST),--test integration) -- --test-threads=$(TEST_THREADS) $(if $(OLDEST),$(OLDEST_TESTS))

# Failing cases are written to proptest-regressions, and every run begins with them.
CASES ?= 25600
properties: ## The unit tests with other random inputs than `make test`: CASES for each property with 256 there, the others in proportion; PROPTEST_RNG_SEED repeats a run
	@seed=$${PROPTEST_RNG_SEED:-$$(( RANDOM << 15 | RANDOM ))}; set -x; PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$(CASES) \
	$(CARGO) test --locked --lib

soak: control-plane-prerequisites ## Two replicas that are killed, stopped and cut off for an hour (SOAK_SECONDS), then compared with undisturbed ones
	SOAK_SECONDS=$${SOAK_SECONDS:-3600} SOAK_SEED=$${SOAK_SEED:-$$RANDOM} $(CARGO) test --locked --test integration -- --nocapture soak::

lint: ## Format, lints, rules for dependencies, the Dockerfiles and the files of a release
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --test ship --test quickstart --test dashboard -- -D warnings
	$(CARGO) clippy --locked --no-default-features --features cli -- -D warnings
	./tests/deny.sh
	./tests/dockerfiles.sh
	./tests/workflows.sh

generate: ## The files that are generated from the code: CRDs, reference, default configuration, schema, and the rights and keys of loops in the chart
	UPDATE_MANIFESTS=1 $(CARGO) test --locked --lib --bin crownlabs up_to_date
	$(CARGO) run --locked -- config default > config/crownlabs.yaml.new
	mv config/crownlabs.yaml.new config/crownlabs.yaml
	$(MAKE) chart

chart: ## The files that are generated from the chart or for it: values.schema.json, the kustomize base, the plain files of pods on nodes, the table of values
	$(CARGO) run --quiet --locked -- config schema | python3 tests/chart/schema.py > manifests/chart/values.schema.json.new
	mv manifests/chart/values.schema.json.new manifests/chart/values.schema.json
	./tests/chart.sh render

chart-test: prerequisites ## The chart: lint, rendered objects, and equality with the plain manifests
	./tests/chart.sh

book: ## The pages of docs as a book, target/book/index.html: every page and link is checked
	./tests/book.sh

dashboard-test: prerequisites $(LIVE) ## The dashboard in Chromium: a real control plane, Keycloak, two replicas. DASHBOARD_GREP chooses tests
	$(CARGO) test --locked --test dashboard -- --nocapture

ship-test: prerequisites ## The shipped artifacts: the image, unpacked, and the chart, installed on a real control plane
	./tests/ship.sh

demo: ## A control plane, the daemon and a lab machine of each type. DETACH=1 ends by itself; KEYCLOAK=1 shows accounts, DASHBOARD=1 the dashboard, AUTOMATION=1 the end of unused machines, BASTION=1 a login over SSH, IMAGES=1 the images of a registry, EXAM=1 an exam server, PODCONFIG=1 networks for running pods, METRICS=1 the resource usage of lab machines in containers
	@CARGO="$(CARGO)" ./examples/demo/run.sh $(if $(DETACH),--detach)

newcomer: ## How long `make demo` and `cargo install` take with empty caches: a table for docs/performance.md
	./tests/newcomer.sh

# The bench builds a binary with the features that the tests add; the shipped binary replaces it before it is measured.
MEASURE = figures=$$($(STATIC) bench --locked --target $(TARGET) --bench figures --no-run --message-format=json-render-diagnostics | \
	sed -n 's/.*"name":"figures".*"executable":"\([^"]*\)".*/\1/p') && $(STATIC) build $(RELEASE) && "$$figures" --bench

bench: prerequisites $(LIVE) ## The figures of docs/performance.md, measured here; table and JSON in target/bench
	$(MEASURE)

load: prerequisites $(LIVE) ## Every loop on, with 100, 1,000 and 5,000 Instances and an hour idle; as root. With LOAD_KWOK=1 LOAD_STEPS=10000 they run
	$(MEASURE) load
	$(MAKE) load-report

load-report: ## The tables of docs/performance.md and its plots, from the results of `make load`
	python3 benches/plots.py

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

image: build ## The container image of the daemon, with the binary built here; `docker build .` builds the binary, too
	./images/build.sh crownlabs crownlabs/crownlabs:$(VERSION) target/$(TARGET)/release/crownlabs

image-exporter: ## The container image that exports the disks of snapshots
	./images/build.sh img-exporter crownlabs/img-exporter:$(VERSION)

uploader-image: ## The container image that uploads the content of Instances
	./images/build.sh uploader crownlabs/uploader:$(VERSION)

ssh-bastion-image: ## The container image of the SSH server of the bastion
	./images/build.sh ssh-bastion crownlabs/ssh-bastion:$(VERSION)

ARCH_OF = $(subst x86_64,amd64,$(subst aarch64,arm64,$(firstword $(subst -, ,$(1)))))
# The linker for arm64 of Debian (`gcc-aarch64-linux-gnu`); with `rustup target add aarch64-unknown-linux-gnu`, `dist` builds for it.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := $(shell command -v aarch64-linux-gnu-gcc || echo cc)
DIST_TARGETS ?= $(TARGET) $(if $(and $(findstring x86_64,$(TARGET)),$(shell command -v aarch64-linux-gnu-gcc)),aarch64-unknown-linux-gnu)

CLI_TARGETS ?= $(if $(shell command -v x86_64-w64-mingw32-gcc),x86_64-pc-windows-gnu)

dist: ## The files of a release, target/dist: an archive of the binary for each of DIST_TARGETS, of the commands alone for CLI_TARGETS, their bills of materials, checksums
	rm -rf target/dist
	mkdir -p target/dist
	for target in $(DIST_TARGETS); do $(MAKE) archive TARGET=$$target; done
	for target in $(CLI_TARGETS); do $(MAKE) cli TARGET=$$target; done
	cd target/dist && sha256sum *.tar.gz *.json > SHA256SUMS

ARCHIVE = target/dist/crownlabs-$(VERSION)-linux-$(call ARCH_OF,$(TARGET))

.PHONY: archive
archive: build
	./images/archive.sh target/$(TARGET)/release/crownlabs $(ARCHIVE).tar.gz target/$(HOST)/release/crownlabs
	./images/sbom.py binary $(TARGET) $(FEATURES) > $(ARCHIVE).cdx.json

# The commands without the daemon, for macOS and Windows. For Windows they are linked here by Debian's `gcc-mingw-w64-x86-64`, with
# `rustup target add x86_64-pc-windows-gnu`; for macOS on macOS only. PRINTS is the program that prints the man pages of a binary
# for another machine.
OS_OF = $(if $(findstring windows,$(1)),windows,$(if $(findstring darwin,$(1)),darwin,linux))
CLI_FEATURES := --no-default-features --features cli
CLI := --release --locked --target $(TARGET) --bin crownlabs $(CLI_FEATURES)
CLI_ARCHIVE = target/dist/crownlabs-cli-$(VERSION)-$(call OS_OF,$(TARGET))-$(call ARCH_OF,$(TARGET))
CLI_FLAGS := --remap-path-prefix=$(CURDIR)=. --remap-path-prefix=$(CARGO_HOME)=cargo

.PHONY: cli
cli:
	mkdir -p target/dist
	RUSTFLAGS="$(CLI_FLAGS)" CROWNLABS_REVISION="$(REVISION)" $(CARGO) build $(CLI)
	./images/archive.sh target/$(TARGET)/release/crownlabs$(if $(findstring windows,$(TARGET)),.exe) \
		$(CLI_ARCHIVE).tar.gz $(PRINTS)
	./images/sbom.py binary $(TARGET) $(CLI_FEATURES) > $(CLI_ARCHIVE).cdx.json

sbom: ## The bill of materials of the binary of TARGET, target/crownlabs.cdx.json
	mkdir -p target
	./images/sbom.py binary $(TARGET) $(FEATURES) > target/crownlabs.cdx.json

release-test: prerequisites ## Every step of a release that can run on this machine, in a clean clone of the last commit: target/release-test has the artifacts
	./tests/ship/dry-run.sh

.PHONY: install deploy run
install: ## The CRDs of this clone, into the cluster of the current kubeconfig
	kubectl apply --server-side -f manifests/crds

deploy: ## The chart of this clone, into the cluster of the current kubeconfig; DEPLOY_ARGS are more arguments of helm, such as `--values FILE`
	helm upgrade --install --take-ownership --namespace crownlabs-system --create-namespace crownlabs manifests/chart $(DEPLOY_ARGS)

CONFIG ?= config/demo.yaml
run: ## The daemon of this clone, against the cluster of the current kubeconfig, with the configuration CONFIG
	$(CARGO) run --locked -- run --config $(CONFIG)

clean: ## Removes the build output (the control plane in the cache stays)
	$(CARGO) clean
