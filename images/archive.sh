#!/usr/bin/env bash
# Packs a release: archive.sh BINARY ARCHIVE [SAME], with the man pages and the shell completions that the binary prints. SAME
# is the program built for this machine: it prints them if BINARY is for another one. Without SAME, the archive has none. The
# same files give the same archive; SOURCE_DATE_EPOCH is its time stamp.
set -euo pipefail
binary=$1 archive=$(realpath "$2") prints=$1
"$prints" --version >/dev/null 2>&1 || prints=${3-}
root=$(dirname "$0")/..
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
name=$(basename "$archive" .tar.gz)
install -D -m 0755 "$binary" "$folder/$name/$(basename "$binary")"
cp "$root"/{LICENSE,README.md,CHANGELOG.md} "$folder/$name"
if [ -n "$prints" ]; then
	"$prints" man "$folder/$name/man"
	mkdir "$folder/$name/completion"
	for shell in bash zsh fish; do
		"$prints" completion "$shell" >"$folder/$name/completion/crownlabs.$shell"
	done
fi
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@${SOURCE_DATE_EPOCH:-0}" \
	--directory "$folder" "$name" | gzip --no-name >"$archive"
