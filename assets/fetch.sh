#!/usr/bin/env bash
# Fetches the libraries of the pages in the versions of package-lock.json, and compresses them: htmx and its extensions into
# one file, xterm.js with the script of terminals into another, and noVNC with the script of consoles into a third one.
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

# xterm.js, with the script of terminals. The licences of their authors are kept in the comments.
bundle() {
    npx --no-install esbuild "$1" --bundle --minify --format=esm --target=es2022 --log-level=warning --legal-comments=inline
}
bundle terminal.js | gzip -9n > vendor/terminal.js.gz.new
npx --no-install esbuild node_modules/@xterm/xterm/css/xterm.css --minify --log-level=warning |
    gzip -9n > vendor/terminal.css.gz.new
mv vendor/terminal.css.gz.new vendor/terminal.css.gz
mv vendor/terminal.js.gz.new vendor/terminal.js.gz

# noVNC consists of modules, which esbuild joins with the script of consoles.
npx --no-install esbuild console.js --bundle --minify --format=esm --target=es2022 --log-level=warning \
    --banner:js='/* with noVNC: https://github.com/novnc/noVNC, MPL-2.0 */' | gzip -9n > vendor/console.js.gz.new
mv vendor/console.js.gz.new vendor/console.js.gz
