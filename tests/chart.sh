#!/usr/bin/env bash
# Lints and renders the chart, and compares it with the plain manifests, the configuration and the metrics of the code.
# `tests/chart.sh render` writes the rendered files: manifests/kustomize/base.
set -euo pipefail
cd "$(dirname "$0")/.."

. tests/helm.sh
exec python3 tests/chart/check.py "$@"
