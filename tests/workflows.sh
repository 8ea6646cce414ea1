#!/usr/bin/env bash
# The workflows of .github: actionlint, which is built once as helm is (tests/helm.sh), and that clusters of kind have the
# versions of Kubernetes that the tests run. ACTIONLINT names another one.
set -euo pipefail
cd "$(dirname "$0")/.."

for kubernetes in oldest newest; do
	module=tests/cluster/go/kubernetes$([ $kubernetes = newest ] || echo -$kubernetes)
	tested=$(sed -n 's|^[[:space:]]*k8s.io/kubernetes v\([0-9]*\.[0-9]*\)\..*|\1|p' "$module/go.mod")
	grep -q "kubernetes: $kubernetes, node: \"kindest/node:v${tested:?}\." .github/workflows/kind.yml ||
		{ echo ".github/workflows/kind.yml: the $kubernetes Kubernetes of the tests is $tested" >&2; exit 1; }
done

if [ -z "${ACTIONLINT:-}" ]; then
	module=tests/cluster/go/actionlint
	cache=${CROWNLABS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crownlabs}
	ACTIONLINT=$cache/actionlint-$(cat "$module/go.mod" "$module/go.sum" | sha256sum | cut -c1-16)/actionlint
	if [ ! -x "$ACTIONLINT" ]; then
		if ! command -v go >/dev/null 2>&1; then
			echo "workflows: not checked, actionlint is built by Go, which is not here" >&2
			exit
		fi
		echo "building actionlint once into $(dirname "$ACTIONLINT")"
		mkdir -p "$(dirname "$ACTIONLINT")"
		(cd "$module" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$ACTIONLINT.new" github.com/rhysd/actionlint/cmd/actionlint)
		mv "$ACTIONLINT.new" "$ACTIONLINT"
	fi
fi
# What it says does not depend on other programs that may be here.
"$ACTIONLINT" -shellcheck= -pyflakes= .github/workflows/*.yml
echo "workflows ok"
