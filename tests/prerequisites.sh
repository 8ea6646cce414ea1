#!/usr/bin/env bash
# The prerequisites of the tests besides Rust: Go to build the control plane once, Maven and Java for Keycloak, and a few tools
# of the system: among them a container registry, QEMU's disk tools, Buildah, a mail server, Prometheus and Chromium.
# `prerequisites.sh control-plane` leaves out the tools that only Keycloak, snapshots, mail and Prometheus need.
# `prerequisites.sh demo FROM [PART …]` checks only the tools of the demo and of these parts of it, such as `dashboard`, and Go
# only if the control plane is built from its modules (`programs.sh --from`).
set -euo pipefail
what=${1:-all}
from=${2:-modules}
parts=("${@:3}")

packages=()
need() { command -v "$1" >/dev/null 2>&1 || [[ " ${packages[*]} " = *" $2 "* ]] || packages+=("$2"); }
# Tools of several parts. The parts of the demo are below.
has_java=
keycloak() {
	need java default-jre-headless
	need mvn maven
	has_java=yes
}
# Network namespaces and their devices.
networks() { need ip iproute2; }
# The rules of kube-router.
policies() {
	[ -x /usr/sbin/iptables ] || need iptables iptables
	[ -x /usr/sbin/ipset ] || need ipset ipset
}
runtime() {
	need containerd containerd
	need runc runc
	[ -x /usr/lib/cni/bridge ] || need cni-bridge containernetworking-plugins
	networks
}
# The server and `promtool`, which writes samples of any time.
automation() { need prometheus prometheus; }
# An SSH server and its client.
bastion() {
	need ssh openssh-client
	[ -x /usr/sbin/sshd ] || need sshd openssh-server
	networks
}
# A login, a proxy with HTTPS, the script of the pages, and the client that acts as a browser.
dashboard() {
	keycloak
	need nginx nginx-light
	need npm npm
	need curl curl
}
images() { need docker-registry docker-registry; }
metrics() { runtime; }
podconfig() { runtime; }

need openssl openssl
need setpriv util-linux
need cc gcc
if [ "$what" != demo ]; then
	need git git
	networks
	[ -z "${KUBEBUILDER_ASSETS:-}" ] || from=there
fi
for part in "${parts[@]}"; do
	case $part in
	automation | bastion | dashboard | images | keycloak | metrics | podconfig) "$part" ;;
	*)
		echo "the demo has no part $part" >&2
		exit 1
		;;
	esac
done
# Any Go since 1.21 fetches the version that the modules require.
[ "$from" != modules ] || need go golang-go
if [ "$what" = all ]; then
	automation
	bastion
	dashboard
	images
	runtime
	policies
	# Snapshots: the exporter, and the tool that builds and pushes images without root.
	need qemu-img qemu-utils
	# Consoles: a machine with a screen.
	need qemu-system-x86_64 qemu-system-x86
	need buildah buildah
	# Exams: the script of the uploader.
	need curl curl
	need zip zip
	# The quickstart: a browser that opens lab machines, and the base of their image.
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || need chromium-headless-shell chromium-headless-shell
	chroot /bin ./busybox true 2>/dev/null || packages+=(busybox-static)
	# Kills the daemon at a system call.
	need strace strace
	# The bench compares the capture with it.
	need tcpdump tcpdump
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

if [ -n "$has_java" ]; then
	# `java -version` prints `openjdk version "17.0.15"`, on standard error.
	java=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)
	if [ "${java:-0}" -lt 17 ]; then
		echo "Java ${java:-?} is too old for Keycloak: 17 or later is needed (on Debian: default-jre-headless)" >&2
		exit 1
	fi
fi
