#!/usr/bin/env bash
# Fetches htmx and its extensions in the versions of package-lock.json, and compresses them into one file.
set -euo pipefail
cd "$(dirname "$0")"
npm ci --ignore-scripts --no-audit --no-fund --silent
dist=node_modules/htmx.org/dist
mkdir -p vendor
# The files have no line break at the end.
for file in "$dist"/htmx.min.js "$dist"/ext/hx-csp.min.js "$dist"/ext/hx-sse.min.js; do
    cat "$file"
    printf '\n'
done | gzip -9n > vendor/live.js.gz.new
mv vendor/live.js.gz.new vendor/live.js.gz
