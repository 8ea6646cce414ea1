#!/usr/bin/env bash
# Checks the files of a release: those of tests/release/check.py; that kind clusters have the versions of Kubernetes that the tests
# run; that the manifest for Krew names the archives of a release; and the workflows of .github with actionlint, which is built once
# like helm (tests/helm.sh). ACTIONLINT names another one.
set -euo pipefail
cd "$(dirname "$0")/.."

export PYTHONDONTWRITEBYTECODE=1
python3 tests/release/faults.py --quiet
python3 tests/release/check.py

for kubernetes in oldest newest; do
	module=tests/cluster/go/kubernetes$([ $kubernetes = newest ] || echo -$kubernetes)
	tested=$(sed -n 's|^[[:space:]]*k8s.io/kubernetes v\([0-9]*\.[0-9]*\)\..*|\1|p' "$module/go.mod")
	grep -q "kubernetes: $kubernetes, node: \"kindest/node:v${tested:?}\." .github/workflows/kind.yml ||
		{ echo ".github/workflows/kind.yml: the $kubernetes Kubernetes of the tests is $tested" >&2; exit 1; }
done

sums=$(mktemp)
trap 'rm -f "$sums"' EXIT
for archive in crownlabs-1.2.3-linux-{amd64,arm64} crownlabs-cli-1.2.3-{darwin-{amd64,arm64},windows-amd64}; do
	echo "$(sha256sum </dev/null | cut -d' ' -f1)  $archive.tar.gz" >>"$sums"
done
./images/krew.sh 1.2.3 https://example.org/crownlabs/releases/download/v1.2.3 "$sums" | python3 -c '
import sys, yaml
spec = yaml.safe_load(sys.stdin)["spec"]
platforms = spec["platforms"]
assert spec["homepage"] == "https://example.org/crownlabs", spec["homepage"]
named = [(each["selector"]["matchLabels"]["os"], each["uri"].rsplit("/", 1)[1], each["bin"]) for each in platforms]
assert len(named) == 5 and all(len(each["sha256"]) == 64 for each in platforms), named
assert ("windows", "crownlabs-cli-1.2.3-windows-amd64.tar.gz", "crownlabs.exe") in named, named'
sed -i /windows/d "$sums"
if ./images/krew.sh 1.2.3 https://example.org/crownlabs/releases/download/v1.2.3 "$sums" >/dev/null 2>&1; then
	echo "images/krew.sh does not notice a missing archive" >&2
	exit 1
fi

if [ -z "${ACTIONLINT:-}" ]; then
	module=tests/cluster/go/actionlint
	cache=${CROWNLABS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crownlabs}
	ACTIONLINT=$cache/actionlint-$(cat "$module/go.mod" "$module/go.sum" | sha256sum | cut -c1-16)/actionlint
	if [ ! -x "$ACTIONLINT" ]; then
		if ! command -v go >/dev/null 2>&1; then
			echo "workflows: not checked, actionlint is built with Go, which is not installed" >&2
			exit
		fi
		echo "building actionlint once into $(dirname "$ACTIONLINT")"
		mkdir -p "$(dirname "$ACTIONLINT")"
		(cd "$module" && CGO_ENABLED=0 go build -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w" -o "$ACTIONLINT.new" github.com/rhysd/actionlint/cmd/actionlint)
		mv "$ACTIONLINT.new" "$ACTIONLINT"
	fi
fi
# Its result must not depend on other programs on this machine.
"$ACTIONLINT" -shellcheck= -pyflakes= .github/workflows/*.yml
echo "workflows ok"
