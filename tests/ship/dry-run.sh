#!/usr/bin/env bash
# A dry run of .github/workflows/release.yml in a clean clone of the last commit. It leaves the artifacts in target/release-test, and
# prints the steps that cannot run on this machine. BINARY is a static binary of the commit that is built already.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/target/release-test
rm -rf "$out"
mkdir -p "$out"
binary=${BINARY:+$(realpath "$BINARY")}
folder=$(mktemp -d)
trap 'rm -rf "$folder"; [ -z "${base:-}" ] || buildah rmi "$base" >/dev/null' EXIT
git clone --quiet . "$folder/clone"
cd "$folder/clone"
export OWNER=dry-run SOURCE_DATE_EPOCH REVISION
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
REVISION=$(git rev-parse --short=12 HEAD)
skipped=()
has_target() { rustup target list --installed 2>/dev/null | grep -qx "$1"; }

echo "== names"
./images/pin.sh names
host=$(rustc -vV | sed -n 's/^host: //p')
case $host in aarch64-*) arch=arm64 ;; *) arch=amd64 ;; esac
target=${host%%-*}-unknown-linux-musl
if ! has_target "$target" || ! command -v musl-gcc >/dev/null; then
	skipped+=("binary for $target (rustup target add $target; musl-tools): $host instead, and its digest differs from a release's")
	target=$host
fi
case $arch in amd64) skipped+=("binary for arm64: its own runner") ;; *) skipped+=("binary for amd64: its own runner") ;; esac
skipped+=("commands for macOS: their own runner")

echo "== binary"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
mkdir -p target/dist
archive=target/dist/crownlabs-$version-linux-$arch
if [ -n "$binary" ]; then
	./images/archive.sh "$binary" "$archive.tar.gz"
	./images/sbom.py binary "$target" >"$archive.cdx.json"
else
	make archive TARGET="$target"
	binary=target/$target/release/crownlabs
fi

echo "== commands"
if has_target x86_64-pc-windows-gnu && command -v x86_64-w64-mingw32-gcc >/dev/null; then
	make cli TARGET=x86_64-pc-windows-gnu PRINTS="$binary"
else
	skipped+=("commands for Windows (rustup target add x86_64-pc-windows-gnu; gcc-mingw-w64-x86-64)")
fi
cp target/dist/crownlabs-* "$out"

echo "== images, chart, bills of materials, checksums"
names=(crownlabs)
# The base image is that of the Dockerfiles, from the packages of its release: its registry may be unreachable.
if [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null && debootstrap --variant=minbase trixie "$folder/root" >"$folder/log" 2>&1; then
	base=localhost/crownlabs-release-test-base
	container=$(buildah from scratch)
	buildah add --quiet "$container" "$folder/root" / >/dev/null
	buildah commit --quiet --rm "$container" "$base" >/dev/null
	export BASE=$base
	names+=(img-exporter uploader ssh-bastion)
	skipped+=("base image of img-exporter, uploader and ssh-bastion, from its registry: built by debootstrap instead")
else
	skipped+=("images img-exporter, uploader and ssh-bastion (as root, with debootstrap and access to Debian's archive)")
fi
ARCHITECTURES=$arch ./tests/ship/release.sh "$binary" "$out" "${names[@]}"
skipped+=("images of the other architecture: an emulator")
for name in "${names[@]}"; do
	python3 -c 'import json, sys; print(sys.argv[1], len(json.load(open(sys.argv[1]))["components"]), "components")' \
		"$out/image-$name-$version-$arch.cdx.json"
done

echo "== documents"
make book
cp -r target/book "$out/book"
skipped+=("krew.yaml: it names the archives of all platforms (tests/workflows.sh checks images/krew.sh)")
skipped+=("signatures, provenance and the release itself: the identity of the workflow" "the upload of the book: GitHub Pages")

echo "== artifacts in target/release-test"
(cd "$out" && ls -1)
echo "== not on this machine"
printf -- '- %s\n' "${skipped[@]}"
