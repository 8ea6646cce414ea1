#!/usr/bin/env bash
# What the tests need beside Rust: Go to build the control plane once, and a few tools of the system.
set -euo pipefail

packages=()
need() { command -v "$1" >/dev/null 2>&1 || packages+=("$2"); }
need openssl openssl
need setpriv util-linux
need cc gcc
need git git

if [ ${#packages[@]} -gt 0 ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		echo "installing: ${packages[*]}"
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
	else
		echo "missing: ${packages[*]} (on Debian: sudo apt-get install ${packages[*]})" >&2
		exit 1
	fi
fi

if [ -z "${KUBEBUILDER_ASSETS:-}" ] && ! command -v go >/dev/null 2>&1; then
	echo "missing: Go 1.26 or later, to build the control plane of the tests (https://go.dev/dl; or set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd)" >&2
	exit 1
fi
