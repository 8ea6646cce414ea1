#!/usr/bin/env bash
# Lints and renders the chart, and compares it with the plain manifests, the configuration and the metrics of the code; and Helm 4
# with Helm 3.
# `tests/chart.sh render` writes the rendered files: manifests/kustomize/base.
set -euo pipefail
cd "$(dirname "$0")/.."

. tests/helm.sh
if [ $# = 0 ]; then
	HELM4=$(
		unset HELM
		HELM_MAJOR=4
		. tests/helm.sh >&2
		echo "$HELM"
	)
	export HELM4
fi
exec python3 tests/chart/check.py "$@"
