#!/usr/bin/env bash
# The sources of the programs of the test cluster: the folder KUBEBUILDER_ASSETS, else the cache. The cache is filled with
# the projects' release archives if they can be reached, else with programs that Go builds from their modules (go/).
#
# programs.sh NAME… builds missing programs; prints the name and the path of each program programs.sh --from NAME… prints
# their source: `cache`, `archives` or `modules`
#
# With OLDEST=1, the programs of Kubernetes have the oldest supported version (go/kubernetes-oldest). The reason for a
# failure is printed to standard output, too, and progress to standard error. See README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

fail() { echo "$*"; exit 1; }
say() { echo "test cluster: $*" >&2; }

# The version of the Go module for the programs of a folder below go/.
version() { sed -n "s|^[[:space:]]*$2 \(v[^ ]*\).*|\1|p" "$here/go/$1/go.mod" | head -1; }
newest=$(version kubernetes k8s.io/kubernetes)
# The module of Kubernetes' programs, and its version.
control_plane=kubernetes
case ${OLDEST:-0} in 0) ;; *) control_plane=kubernetes-oldest ;; esac
kubernetes=$(version "$control_plane" k8s.io/kubernetes)
etcd=$(version etcd go.etcd.io/etcd/server/v3)
kwok=$(version kwok sigs.k8s.io/kwok)

# The folder of a program's module, its main package, and the usual build times on two cores.
module() {
	case $1 in
	kube-apiserver | kube-controller-manager | kube-scheduler | kubectl | kubelet) echo "$control_plane" ;;
	etcd | kwok | kube-router | oauth2-proxy) echo "$1" ;;
	*) return 1 ;;
	esac
}
package() {
	case $1 in
	etcd) echo go.etcd.io/etcd/server/v3 ;;
	kwok) echo sigs.k8s.io/kwok/cmd/kwok ;;
	kube-router) echo github.com/cloudnativelabs/kube-router/v2/cmd/kube-router ;;
	oauth2-proxy) echo github.com/oauth2-proxy/oauth2-proxy/v7 ;;
	*) echo "k8s.io/kubernetes/cmd/$1" ;;
	esac
}
declare -A usual=([kubernetes]="9 minutes" [kubernetes-oldest]="9 minutes" [etcd]="1 minute" [kwok]="1 minute" [kube-router]="2 minutes"
	[oauth2-proxy]="1 minute")
declare -A megabytes=([kubernetes]=320 [kubernetes-oldest]=310 [etcd]=25 [kwok]=65)

# The cache, and the folder in it of some programs of one module. Its name has the hash (FNV-1a, 64 bits) of their
# sources.
cache=${CROWNLABS_CACHE:-${XDG_CACHE_HOME:+$XDG_CACHE_HOME/crownlabs}}
cache=${cache:-${HOME:+$HOME/.cache/crownlabs}}
[ -n "$cache" ] || fail "no folder for the cache of the test cluster: set CROWNLABS_CACHE"
folder() {
	local module=$1 name packages=() bytes byte hash=$((16#cbf29ce484222325))
	shift
	for name in "$@"; do packages+=("$(package "$name")"); done
	while read -ra bytes; do
		for byte in "${bytes[@]}"; do hash=$(((hash ^ byte) * 16#100000001b3)); done
	done < <({
		cat "$here/go/$module/go.mod" "$here/go/$module/go.sum"
		printf '%s%s' "$newest" "${packages[*]}"
	} | od -An -v -tu1 -w1000)
	printf '%s/%s-%016x' "$cache" "$module" "$hash"
}

# Archives. CROWNLABS_ARCHIVES is a mirror (below it are the names of the hosts), or `none`.
archives=${CROWNLABS_ARCHIVES:-https:/}
archives=${archives%/}
case $(uname -sm) in
"Linux x86_64") machine=linux-amd64 ;;
"Linux aarch64") machine=linux-arm64 ;;
*) machine= ;;
esac
github=$archives/github.com

# Prints a small file. Ends within five seconds if there is no response.
small() { curl --fail --silent --location --connect-timeout 5 --max-time "${2:-20}" "$1"; }
# Fetches large files, all at the same time: pairs of a URL and a file. Each ends if there is no response, or if less than
# 50 kB arrive each second for ten seconds.
large() {
	local arguments=()
	while [ $# -gt 0 ]; do arguments+=(--output "$2" "$1"); shift 2; done
	curl --fail --silent --location --parallel --connect-timeout 5 --max-time 1800 --speed-time 10 --speed-limit 50000 \
		"${arguments[@]}" 2>/dev/null
}
# The URL of the checksums of a module's archives.
checksums() {
	case $1 in
	kubernetes*) echo "$archives/dl.k8s.io/$kubernetes/bin/${machine/-//}/$2.sha256" ;;
	etcd) echo "$github/etcd-io/etcd/releases/download/$etcd/SHA256SUMS" ;;
	kwok) echo "$archives/api.github.com/repos/kubernetes-sigs/kwok/releases/tags/$kwok" ;;
	esac
}
# Whether archives of a module can be reached: one small request, answered within five seconds. After a failure, no more
# requests are sent.
reachable() {
	case $1 in kube-router | oauth2-proxy) return 1 ;; esac
	[ -n "$machine" ] && [ "$archives" != none ] && command -v curl >/dev/null || return 1
	small "$(checksums "$1" "$2")" 5 >/dev/null || { archives=none; return 1; }
}
# Reads the checksum of a file from the input: a line of sha256sum, the sum alone, or the digest after the file's name in the
# response of GitHub's API about a release.
sum_of() {
	tr -d '\r' | tr '{,' '\n' | awk -v file="$1" '
		$2 == file || $2 == "*" file || (NF == 1 && $1 ~ /^[0-9a-f]+$/) { print $1; exit }
		/"name":/ { named = index($0, "\"" file "\"") > 0 }
		named && /"digest":/ { sub(/.*"sha256:/, ""); sub(/".*/, ""); print; exit }'
}
# The URL of a program's archive.
archive() {
	case $1 in
	etcd) echo "$github/etcd-io/etcd/releases/download/$etcd/etcd-$etcd-$machine.tar.gz" ;;
	kwok) echo "$github/kubernetes-sigs/kwok/releases/download/$kwok/kwok-$machine" ;;
	*) echo "$archives/dl.k8s.io/$kubernetes/bin/${machine/-//}/$1" ;;
	esac
}
# Fills a folder with some programs of a module from archives with the right checksums. Prints the error if
# it fails.
from_archives() {
	local module=$1 out=$2 name url sums found wanted=() fetched=()
	shift 2
	for name in "$@"; do
		url=$(archive "$name") sums=$(checksums "$module" "$name")
		wanted+=("$(small "$sums" | sum_of "${url##*/}" || true)")
		[[ ${wanted[-1]} =~ ^[0-9a-f]{64}$ ]] || { say "there is no checksum of ${url##*/} in $sums"; return 1; }
		fetched+=("$url" "$out/$name")
	done
	large "${fetched[@]}" || { say "${module}'s archives did not arrive whole from ${url%/*}"; return 1; }
	for name in "$@"; do
		found=$(sha256sum "$out/$name" | cut -d' ' -f1)
		[ "$found" = "${wanted[0]}" ] ||
			{ say "$(archive "$name") has the checksum $found instead of ${wanted[0]}, and is not used"; return 1; }
		wanted=("${wanted[@]:1}")
	done
	if [ "$module" = etcd ]; then
		mv "$out/etcd" "$out/etcd.tar.gz"
		tar -xzf "$out/etcd.tar.gz" -C "$out" --no-same-owner --strip-components=1 "etcd-$etcd-$machine/etcd" ||
			{ say "$(archive etcd) has no etcd"; return 1; }
		rm "$out/etcd.tar.gz"
	fi
	(cd "$out" && chmod 755 "$@")
}

# Fills a folder with some programs of a module, built by Go.
from_modules() {
	local module=$1 out=$2 name packages=() wanted found log=$2/build.log
	shift 2
	local get="install it from https://go.dev/dl and put it on the PATH"
	wanted=$(sed -n 's/^go //p' "$here/go/$module/go.mod")
	found=$(cd "$here/go/$module" && go env GOVERSION 2>&1) ||
		fail "the test cluster is built with Go $wanted or newer, and \`go\` does not run (${found##*: }): $get"
	[ "$(printf '%s\n' "$wanted" "${found#go}" | sort -V | head -1)" = "$wanted" ] ||
		fail "the test cluster is built with Go $wanted or newer, found ${found#go}: $get"
	for name in "$@"; do packages+=("$(package "$name")"); done
	# `go build -o` takes a file for one main package, and a folder (with a trailing slash) for several.
	local output=$out/
	[ $# -gt 1 ] || output=$out/$1
	# The compiler collects its garbage less often, and writes nothing for debuggers: this saves a third of the time.
	(cd "$here/go/$module" && CGO_ENABLED=0 GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-2GiB} go build -trimpath \
		-gcflags=all=-dwarf=false -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes" -o "$output" "${packages[@]}") >"$log" 2>&1 ||
		fail "building $module for the test cluster failed; the end of the output of \`go build\`:
$(tail -20 "$log")"
}

# Sorts the programs: `path` has their current or future paths, `missing` the programs to build, by module, and `folders`
# their folders.
declare -A path=() missing=() folders=()
sort_out() {
	local name names module dir
	declare -A asked=()
	for name in "$@"; do module "$name" >/dev/null || fail "there is no program $name"; done
	# A fixed order, whatever the caller's, because the hash depends on it.
	for name in kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet etcd kwok kube-router oauth2-proxy; do
		[[ " $* " = *" $name "* ]] || continue
		module=$(module "$name")
		if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -f "$KUBEBUILDER_ASSETS/$name" ]; then
			path[$name]=$KUBEBUILDER_ASSETS/$name
		else
			asked[$module]+=" $name"
		fi
	done
	for module in "${!asked[@]}"; do
		read -ra names <<<"${asked[$module]}"
		dir=$(folder "$module" "${names[@]}")
		[ -d "$dir" ] || missing[$module]=${asked[$module]} folders[$module]=$dir
		for name in "${names[@]}"; do path[$name]=$dir/$name; done
	done
}

# Creates a program folder of a module in the cache. It gets its name when it is complete.
make_folder() {
	local module=$1 begin=$SECONDS dir=${folders[$1]} out
	shift
	[ ! -d "$dir" ] || return 0
	out=$(mktemp -d "$cache/building-XXXXXX")
	scratch=$out
	chmod 755 "$out"
	if reachable "$module" "$1"; then
		say "fetching $module $(version_of "$module") (${megabytes[$module]} MB) …"
		if ! from_archives "$module" "$out" "$@"; then
			say "$module is built from Go modules instead"
			find "$out" -mindepth 1 -delete
		fi
	fi
	if [ ! -f "$out/$1" ]; then
		say "building $module $(version_of "$module") once from Go modules (about ${usual[$module]} with empty caches) …"
		from_modules "$module" "$out" "$@"
	fi
	mv "$out" "$dir"
	scratch=
	say "$module is in $dir, after $((SECONDS - begin)) s"
}
version_of() {
	case $1 in
	kubernetes*) echo "$kubernetes" ;;
	*) version "$1" "$(package "$1" | sed 's|/cmd/.*||')" ;;
	esac
}

from=
if [ "${1:-}" = --from ]; then from=yes; shift; fi
if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
	for name in kube-apiserver etcd; do
		[ -f "$KUBEBUILDER_ASSETS/$name" ] ||
			fail "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no $name: unset it, or fill it with setup-envtest"
	done
fi
sort_out "$@"
if [ -n "$from" ]; then
	what=cache
	for module in "${!missing[@]}"; do
		read -ra names <<<"${missing[$module]}"
		what=archives
		reachable "$module" "${names[0]}" || { what=modules; break; }
	done
	echo "$what"
	exit
fi
if [ ${#missing[@]} -gt 0 ]; then
	mkdir -p "$cache"
	exec 9>"$cache/build.lock"
	flock -n 9 || { say "waiting for another build, $cache/build.lock"; flock 9; }
	scratch=
	# Nothing incomplete stays behind.
	trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT
	trap 'exit 130' INT TERM HUP
	for module in "$control_plane" etcd kwok kube-router oauth2-proxy; do
		[ -n "${missing[$module]:-}" ] || continue
		read -ra names <<<"${missing[$module]}"
		make_folder "$module" "${names[@]}"
	done
fi
for name in "$@"; do echo "$name ${path[$name]}"; done
