#!/usr/bin/env bash
# How long a newcomer waits: `make demo` and `cargo install` in fresh clones with empty caches, one after the other. Rust and
# Go are installed, but their caches are empty. Prints a table for docs/performance.md, and takes half an hour.
#
# newcomer.sh [modules] [archives] [install] only these; `archives` needs the programs that `modules` has built in the same
# run
#
# The archives come from a server on this machine, which serves the programs of `modules`: the time of a download must be
# added.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- modules archives install
source=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/newcomer-XXXXXX")
server=
trap 'chmod -R u+w "$work"; rm -rf "$work"; [ -z "$server" ] || kill "$server"' EXIT

# Settings are not caches: the sources of crates and modules stay as they are.
GOPROXY=$(go env GOPROXY) GOSUMDB=$(go env GOSUMDB) GONOSUMDB=$(go env GONOSUMDB) GOTOOLCHAIN=$(go env GOTOOLCHAIN)
GOFLAGS=$(go env GOFLAGS)
settings=${CARGO_HOME:-$HOME/.cargo}
export RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup} GOPROXY GOSUMDB GONOSUMDB GOTOOLCHAIN GOFLAGS
unset CROWNLABS_CACHE XDG_CACHE_HOME GOCACHE GOPATH GOMODCACHE KUBEBUILDER_ASSETS CARGO_TARGET_DIR

# Makes a fresh clone and an empty home folder, and changes to the clone.
arrive() {
	cd "$work"
	chmod -R u+w home clone 2>/dev/null || true
	rm -rf home clone
	mkdir -p home/.cargo
	for file in config config.toml; do
		[ ! -f "$settings/$file" ] || cp "$settings/$file" home/.cargo/
	done
	export HOME=$work/home CARGO_HOME=$work/home/.cargo
	git clone --quiet "$source" clone
	cd clone
}
# Runs a command and adds a line to the table, with the time until a line of its output if one is named.
rows=()
measure() {
	local what=$1 line=$2 begin=$SECONDS until=
	shift 2
	arrive
	echo "measuring: $what" >&2
	begin=$SECONDS
	"$@" 2>&1 | while IFS= read -r text; do echo "$((SECONDS - begin)) $text"; done | tee "$work/log" >&2
	local whole=$((SECONDS - begin))
	[ -z "$line" ] || until=$(grep -F -m1 "$line" "$work/log" | cut -d' ' -f1)
	rows+=("| $what | ${until:+$(clock "$until")} | $(clock "$whole") |")
}
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# Lays out the built programs as on the projects' servers, with checksums, and serves them.
serve() {
	local cache=$work/home/.cache/crownlabs machine kubernetes etcd kwok folder name
	machine=$(go env GOARCH)
	of() { sed -n "s|^[[:space:]]*$2 \(v[^ ]*\).*|\1|p" "$source/tests/cluster/go/$1/go.mod" | head -1; }
	kubernetes=$(of kubernetes k8s.io/kubernetes) etcd=$(of etcd go.etcd.io/etcd/server/v3) kwok=$(of kwok sigs.k8s.io/kwok)
	folder=$work/archives/dl.k8s.io/$kubernetes/bin/linux/$machine
	mkdir -p "$folder"
	for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
		cp "$cache"/kubernetes-*/"$name" "$folder/"
		sha256sum "$folder/$name" | cut -d' ' -f1 >"$folder/$name.sha256"
	done
	folder=$work/archives/github.com/etcd-io/etcd/releases/download/$etcd
	name=etcd-$etcd-linux-$machine
	mkdir -p "$folder/$name"
	cp "$cache"/etcd-*/etcd "$folder/$name/"
	tar -czf "$folder/$name.tar.gz" -C "$folder" "$name"
	rm -r "${folder:?}/$name"
	(cd "$folder" && sha256sum "$name.tar.gz" >SHA256SUMS)
	folder=$work/archives/github.com/kubernetes-sigs/kwok/releases/download/$kwok
	mkdir -p "$folder" "$work/archives/api.github.com/repos/kubernetes-sigs/kwok/releases/tags"
	name=kwok-linux-$machine
	cp "$cache"/kwok-*/kwok "$folder/$name"
	printf '{"assets": [{"name": "%s", "digest": "sha256:%s"}]}' "$name" "$(sha256sum "$folder/$name" | cut -d' ' -f1)" \
		>"$work/archives/api.github.com/repos/kubernetes-sigs/kwok/releases/tags/$kwok"
	python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$work/archives" >"$work/server" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/server")
		[ -z "$port" ] || break
		sleep 0.1
	done
}

there="the daemon runs"
for part in "$@"; do
	case $part in
	modules)
		measure "\`make demo\`, control plane from Go modules" "$there" env CROWNLABS_ARCHIVES=none make demo DETACH=1
		serve
		;;
	archives)
		[ -n "$server" ] || { echo "archives must come after modules" >&2; exit 1; }
		measure "\`make demo\`, control plane from archives" "$there" \
			env CROWNLABS_ARCHIVES="http://127.0.0.1:$port" no_proxy=127.0.0.1 make demo DETACH=1
		;;
	install) measure "\`cargo install --path . --locked\`" "" cargo install --path . --locked --root "$work/installed" ;;
	*) echo "there is no part $part" >&2; exit 1 ;;
	esac
done
echo
echo "$(nproc) cores, $(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo | awk '{printf "%.0f GiB", $1 / 1048576}')$(
	[ -z "$server" ] || echo "; $(du -sLm "$work/archives" | cut -f1) MB of archives")"
echo "| from nothing | until the daemon runs | until the end |"
echo "|---|---|---|"
printf '%s\n' "${rows[@]}"
