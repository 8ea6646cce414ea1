#!/bin/sh
# Packs everything below SOURCE_PATH into FILENAME.zip, posts it to DESTINATION_URL as the form field `binfile`, with the field
# `filename`, and leaves a receipt: one JSON object with the name, the size in bytes and the SHA-256 of the archive, as the
# termination message of the container.
#
# The exit status is 0 once the server has accepted the archive (2xx), else 1. A receipt that cannot be written does not change
# it, because the archive would be uploaded again.
set -eu

fail() {
	echo "uploader: $*" >&2
	exit 1
}

for variable in SOURCE_PATH DESTINATION_URL FILENAME; do
	eval "value=\${$variable:-}"
	[ -n "$value" ] || fail "the variable $variable is missing"
done
case $FILENAME in
*[!A-Za-z0-9._-]*) fail "FILENAME may contain only letters, digits, dots, dashes and underscores: $FILENAME" ;;
esac
receipt=${TERMINATION_LOG:-/dev/termination-log}

name=$FILENAME.zip
work=$(mktemp -d) || fail "no temporary folder can be created"
trap 'rm -rf "$work"' EXIT
archive=$work/$name

cd "$SOURCE_PATH" || fail "$SOURCE_PATH cannot be opened"
echo "uploader: packing $SOURCE_PATH"
# Without the times of access and the owners (-X), a repeated upload has the same digest.
zip -q -r -X "$archive" . || fail "$SOURCE_PATH cannot be packed; zip also fails if it is empty"
size=$(wc -c <"$archive")
digest=$(sha256sum <"$archive")
digest=${digest%% *}

echo "uploader: uploading $name, $size bytes, SHA-256 $digest"
status=$(curl --silent --show-error --output /dev/null --write-out '%{http_code}' \
	--form "binfile=@\"$archive\"" --form-string "filename=$name" "$DESTINATION_URL") ||
	fail "the server did not answer (HTTP status $status)"
case $status in
2??) ;;
*) fail "the server rejected $name: HTTP status $status" ;;
esac

echo "uploader: the server accepted $name"
printf '{"name":"%s","size":%d,"sha256":"%s"}' "$name" "$size" "$digest" >"$receipt" ||
	echo "uploader: the receipt cannot be written to $receipt" >&2
