#!/usr/bin/env bash
# Runs schemathesis with these arguments. It is installed once into the cache, like mdBook (tests/book.sh), with the versions
# in tests/schemathesis/requirements.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

requirements=$PWD/tests/schemathesis/requirements.txt
cache=${CROWNLABS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crownlabs}
folder=$cache/schemathesis-$(cat "$requirements" tests/schemathesis.sh | sha256sum | cut -c1-16)
mkdir -p "$cache"
# Two tests that start at once install it once; it gets its name when it is complete.
exec 9>"$cache/schemathesis.lock"
flock 9
if [ ! -e "$folder/complete" ]; then
	echo "installing schemathesis once into $folder" >&2
	rm -rf "$folder"
	python3 -m venv "$folder"
	"$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$requirements" >&2
	touch "$folder/complete"
fi
exec 9>&-

# Its files between runs stay out of the tree.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$folder/bin/st" "$@"
