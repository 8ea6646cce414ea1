#!/usr/bin/env bash
# Builds an image: build.sh NAME TAG [BINARY]. Uses Buildah if it is installed, because it needs no engine, else Docker.
#
# NAME is a folder beside this file, with a Dockerfile; or `crownlabs`, the image of ../Dockerfile. For `crownlabs`, only
# the last stage is built: with the static BINARY, and the authorities of this system. That image has the same digest
# whenever it is built from the same files; SOURCE_DATE_EPOCH is its time stamp.
set -euo pipefail
name=$1 tag=$2
binary=${3:+$(realpath "$3")}
cd "$(dirname "$0")"

build() { # FOLDER
	if command -v buildah >/dev/null; then
		buildah build --format oci --tag "$tag" ${ARCH:+--arch "$ARCH"} "$1"
	else
		docker build --tag "$tag" ${ARCH:+--platform "linux/$ARCH"} "$1"
	fi
}

if [ "$name" != crownlabs ]; then
	build "$name"
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
if command -v buildah >/dev/null; then
	buildah build --format oci --tag "$tag" ${ARCH:+--arch "$ARCH"} --timestamp "${SOURCE_DATE_EPOCH:-0}" \
		--identity-label=false --build-context "files=$folder" --file ../Dockerfile "$folder"
else
	docker build --tag "$tag" ${ARCH:+--platform "linux/$ARCH"} --build-context "files=$folder" --file ../Dockerfile "$folder"
fi
