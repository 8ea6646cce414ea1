#!/usr/bin/env bash
# Builds the images of a release for all architectures, pushes them, and prints the name and the digest of each: push.sh
# REGISTRY VERSION NAME...
#
# The binaries are in folders as in the archives of the release, crownlabs-VERSION-linux-ARCH, in the current folder: the
# folders determine the architectures. Needs Buildah. With TLS_VERIFY=false, the registry may speak HTTP.
set -euo pipefail
registry=$1 version=$2
shift 2
images=$(dirname "$0")
digest=$(mktemp)
trap 'rm -f "$digest"' EXIT

for name in "$@"; do
	list=$registry/$name:$version
	buildah manifest create "$list" >&2
	for folder in crownlabs-"$version"-linux-*/; do
		arch=$(basename "${folder##*-linux-}")
		ARCH=$arch "$images/build.sh" "$name" "$list-$arch" "$folder/crownlabs" >&2
		buildah manifest add "$list" "$list-$arch" >&2
	done
	buildah manifest push --all --tls-verify="${TLS_VERIFY:-true}" --digestfile "$digest" "$list" "docker://$list" >&2
	echo "$name $(cat "$digest")"
done
