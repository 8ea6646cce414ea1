#!/usr/bin/env bash
# Builds what ships (the static binary, its image, helm for the chart), unpacks the image, and runs tests/ship with it.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/helm.sh

target=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
make build
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
image=localhost/crownlabs:ship-test
export SOURCE_DATE_EPOCH=0
# The same files give the same image.
for copy in first second; do
	./images/build.sh crownlabs "$image" "target/$target/release/crownlabs" >"$folder/log" 2>&1 ||
		{ cat "$folder/log" >&2; exit 1; }
	buildah push --quiet "$image" "dir:$folder/$copy"
	buildah rmi "$image" >/dev/null
done
cmp "$folder/first/manifest.json" "$folder/second/manifest.json"
mkdir "$folder/root"
python3 -c 'import json,sys; [print(layer["digest"].split(":")[1]) for layer in json.load(sys.stdin)["layers"]]' \
	<"$folder/first/manifest.json" |
	while read -r layer; do tar --extract --file "$folder/first/$layer" --directory "$folder/root"; done
CROWNLABS_ROOT=$folder/root cargo test --locked --test ship -- "$@"
