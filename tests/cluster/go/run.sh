#!/usr/bin/env bash
# Runs `go` in the folder of a module: run.sh MODULE ARGUMENT…
#
# Cargo, npm, pip and Maven try a download again by themselves; Go does not. So it is run up to three times while it ends with
# a URL that could not be read (`Get "https://…": …`), GO_PAUSE seconds apart. Its cache keeps the modules that have arrived.
set -euo pipefail
cd "$(dirname "$0")/$1"
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for left in 2 1 0; do
	status=0
	go "$@" >"$folder/output" 2>"$folder/errors" || status=$?
	if [ "$status" = 0 ] || [ "$left" = 0 ] || ! grep -qE 'Get \\?"https?://' "$folder/output" "$folder/errors"; then break; fi
	echo "go $1: $(grep -hE 'Get \\?"https?://' "$folder/errors" "$folder/output" | tail -1); trying again" >&2
	sleep "${GO_PAUSE:-10}"
done
cat "$folder/output"
cat "$folder/errors" >&2
exit "$status"
