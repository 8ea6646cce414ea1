#!/usr/bin/env bash
# Builds the shipped artifacts (the static binary, its image, helm for the chart), unpacks the image, runs tests/ship with
# it, and then tests/quickstart, which pulls it.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/helm.sh

target=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
make build
binary=target/$target/release/crownlabs
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
image=localhost/crownlabs:ship-test
export SOURCE_DATE_EPOCH=0
# The same files give the same image and the same archive.
for copy in first second; do
	./images/build.sh crownlabs "$image" "$binary" >"$folder/log" 2>&1 ||
		{ cat "$folder/log" >&2; exit 1; }
	buildah push --quiet "$image" "dir:$folder/$copy"
	buildah rmi "$image" >/dev/null
	./images/archive.sh "$binary" "$folder/$copy/archive.tar.gz"
done
cmp "$folder/first/manifest.json" "$folder/second/manifest.json"
cmp "$folder/first/archive.tar.gz" "$folder/second/archive.tar.gz"
packed=$(tar --list --gzip --file "$folder/first/archive.tar.gz")
for file in crownlabs LICENSE README.md CHANGELOG.md man/crownlabs-run.1 completion/crownlabs.{bash,zsh,fish}; do
	grep -qx "archive/$file" <<<"$packed" || { echo "the archive lacks $file: $packed" >&2; exit 1; }
done
revision=$(git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)
"$binary" --version | grep -F "($revision)" || { echo "--version lacks the commit $revision" >&2; exit 1; }
./tests/ship/release.sh "$binary"
mkdir "$folder/root"
python3 -c 'import json,sys; [print(layer["digest"].split(":")[1]) for layer in json.load(sys.stdin)["layers"]]' \
	<"$folder/first/manifest.json" |
	while read -r layer; do tar --extract --file "$folder/first/$layer" --directory "$folder/root"; done
CROWNLABS_ROOT=$folder/root cargo test --locked --test ship -- "$@"
CROWNLABS_BINARY=$binary cargo test --locked --test quickstart -- "$@"
