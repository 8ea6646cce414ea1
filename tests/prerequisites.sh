#!/usr/bin/env bash
# The prerequisites of the tests besides Rust: Go to build the control plane once, Maven and Java for Keycloak, and a few tools
# of the system: among them a container registry, QEMU's disk tools, Buildah, a mail server, Prometheus and Chromium.
# `prerequisites.sh control-plane` leaves out the tools that only Keycloak, snapshots, mail and Prometheus need.
# `prerequisites.sh demo FROM` also leaves out those that the demo does not need: network namespaces, and Go unless the control
# plane is built from its modules (`programs.sh --from`).
set -euo pipefail
what=${1:-all}
from=${2:-modules}

packages=()
need() { command -v "$1" >/dev/null 2>&1 || packages+=("$2"); }
need openssl openssl
need setpriv util-linux
need cc gcc
if [ "$what" != demo ]; then
	need git git
	# Network namespaces and their devices.
	need ip iproute2
	[ -z "${KUBEBUILDER_ASSETS:-}" ] || from=there
fi
# Any Go since 1.21 fetches the version that the modules require.
[ "$from" != modules ] || need go golang-go
if [ "$what" = all ]; then
	# Snapshots: the exporter, a registry, and the tool that builds and pushes images without root.
	need qemu-img qemu-utils
	need docker-registry docker-registry
	need buildah buildah
	# The server and `promtool`, which writes samples of any time.
	need prometheus prometheus
	# Pods on a real container runtime.
	need containerd containerd
	need runc runc
	[ -x /usr/lib/cni/bridge ] || need cni-bridge containernetworking-plugins
	# The quickstart: a proxy before lab machines, a browser that opens them, and the base of their image.
	need nginx nginx-light
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || need chromium-headless-shell chromium-headless-shell
	chroot /bin ./busybox true 2>/dev/null || packages+=(busybox-static)
	# Kills the daemon at a system call.
	need strace strace
	# The bench compares the capture with it.
	need tcpdump tcpdump
	# The bastion and web SSH: an SSH server and its client.
	need ssh openssh-client
	[ -x /usr/sbin/sshd ] || need sshd openssh-server
	need java default-jre-headless
	need mvn maven
	# The scripts of the dashboard, and the browser of its tests.
	need npm npm
	# Used in a command of the documents.
	need jq jq
	# The checks of the chart.
	need python3 python3
	python3 -c 'import yaml' >/dev/null 2>&1 || packages+=(python3-yaml)
	# Schemathesis, which is installed from PyPI.
	python3 -c 'import ensurepip' >/dev/null 2>&1 || packages+=(python3-venv)
	# Mail: a server with TLS and login. Any Python with aiosmtpd will do; Debian installs it for the
	# system's Python.
	has_aiosmtpd() { "$1" -c 'import aiosmtpd' >/dev/null 2>&1; }
	has_aiosmtpd python3 || has_aiosmtpd /usr/bin/python3 || packages+=(python3-aiosmtpd)
fi

if [ ${#packages[@]} -gt 0 ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		echo "installing: ${packages[*]}"
		apt-get update -qq
		# The tests start servers themselves: no package may start one as a service.
		if [ ! -e /usr/sbin/policy-rc.d ]; then
			printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
			chmod +x /usr/sbin/policy-rc.d
			trap 'rm -f /usr/sbin/policy-rc.d' EXIT
		fi
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
	else
		echo "missing: ${packages[*]} (on Debian: sudo apt-get install ${packages[*]})" >&2
		exit 1
	fi
fi

if [ "$from" = modules ]; then
	version=$(go env GOVERSION | sed 's/^go//')
	if [ "$(printf '%s\n1.21\n' "$version" | sort -V | head -1)" != 1.21 ]; then
		echo "Go $version is too old to build the control plane of the tests: 1.21 or later is needed (https://go.dev/dl; or set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd)" >&2
		exit 1
	fi
fi

if [ "$what" = all ]; then
	# `java -version` prints `openjdk version "17.0.15"`, on standard error.
	java=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)
	if [ "${java:-0}" -lt 17 ]; then
		echo "Java ${java:-?} is too old for the Keycloak of the tests: 17 or later is needed (on Debian: default-jre-headless)" >&2
		exit 1
	fi
fi
