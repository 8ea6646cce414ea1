#!/usr/bin/env bash
# Builds the images of a release for all architectures, pushes them, and prints the name and the digest of each: push.sh
# REGISTRY VERSION NAME...
#
# The binaries are in folders as in the archives of the release, crownlabs-VERSION-linux-ARCH, in the current folder: the
# folders determine the architectures. Each image gets a bill of materials there, image-NAME-VERSION-ARCH.cdx.json, which includes
# crownlabs-VERSION-linux-ARCH.cdx.json of the binary if it exists. Needs Buildah. With TLS_VERIFY=false, the registry may speak HTTP.
set -euo pipefail
registry=$1 version=$2
shift 2
images=$(dirname "$0")
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

for name in "$@"; do
	list=$registry/$name:$version
	buildah manifest create "$list" >&2
	for folder in crownlabs-"$version"-linux-*/; do
		folder=${folder%/}
		arch=${folder##*-linux-}
		ARCH=$arch "$images/build.sh" "$name" "$list-$arch" "$folder/crownlabs" >&2
		buildah manifest add "$list" "$list-$arch" >&2
		binary=()
		if [ "$name" = crownlabs ] && [ -e "$folder.cdx.json" ]; then binary=("$folder.cdx.json"); fi
		buildah push --quiet "$list-$arch" "dir:$temporary/image" >&2
		python3 "$images/sbom.py" image "$name" "$version" "$temporary/image" "${binary[@]}" >"image-$name-$version-$arch.cdx.json"
		rm -rf "$temporary/image"
	done
	buildah manifest push --all --tls-verify="${TLS_VERIFY:-true}" --digestfile "$temporary/digest" "$list" "docker://$list" >&2
	echo "$name $(cat "$temporary/digest")"
done
