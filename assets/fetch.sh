#!/usr/bin/env bash
# Fetches the script of live pages, as package-lock.json has it, and makes one compressed file of it and its extensions.
set -euo pipefail
cd "$(dirname "$0")"
npm ci --ignore-scripts --no-audit --no-fund --silent
dist=node_modules/htmx.org/dist
mkdir -p vendor
# Each ends without a line break.
for file in "$dist"/htmx.min.js "$dist"/ext/hx-csp.min.js "$dist"/ext/hx-sse.min.js; do
    cat "$file"
    printf '\n'
done | gzip -9n > vendor/live.js.gz.new
mv vendor/live.js.gz.new vendor/live.js.gz
