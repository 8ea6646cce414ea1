#!/usr/bin/env bash
# Builds an image: build.sh NAME TAG [BINARY]. Uses Buildah if it is installed, because it needs no engine, else Docker.
#
# NAME is a folder beside this file, with a Dockerfile; or `crownlabs`, the image of ../Dockerfile. For `crownlabs`, only
# the last stage is built: with the static BINARY, and the authorities of this system. That image has the same digest
# whenever it is built from the same files; SOURCE_DATE_EPOCH is its time stamp. BASE replaces the base image of the others, for
# machines without access to its registry.
set -euo pipefail
name=$1 tag=$2
binary=${3:+$(realpath "$3")}
cd "$(dirname "$0")"

version=$(sed -n 's/^version = "\(.*\)"/\1/p' ../Cargo.toml | head -1)
revision=${REVISION:-$(git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)}
labels=(--label "org.opencontainers.image.version=$version" --label "org.opencontainers.image.revision=$revision")

build() { # ARGUMENT...
	if command -v buildah >/dev/null; then
		buildah build --format oci --tag "$tag" "${labels[@]}" ${ARCH:+--arch "$ARCH"} "$@"
	else
		docker build --tag "$tag" "${labels[@]}" ${ARCH:+--platform "linux/$ARCH"} "$@"
	fi
}

if [ "$name" != crownlabs ]; then
	build ${BASE:+--from "$BASE"} "$name"
	exit
fi

headers=$(readelf --program-headers "$binary")
if grep -q INTERP <<<"$headers"; then
	echo "$binary is not static: an empty image has no libraries for it (make build)" >&2
	exit 1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
install -D -m 0755 "$binary" "$folder/crownlabs"
install -D -m 0644 "${CA_CERTIFICATES:-/etc/ssl/certs/ca-certificates.crt}" "$folder/etc/ssl/certs/ca-certificates.crt"
find "$folder" -exec touch --no-dereference --date "@${SOURCE_DATE_EPOCH:-0}" {} +
reproducible=()
if command -v buildah >/dev/null; then
	reproducible=(--timestamp "${SOURCE_DATE_EPOCH:-0}" --identity-label=false)
fi
build "${reproducible[@]}" --build-context "files=$folder" --file ../Dockerfile "$folder"
