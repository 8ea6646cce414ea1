#!/usr/bin/env bash
# Checks the pages of docs, builds the book from them into target/book, and checks the book. mdBook is installed once, as
# helm is (tests/helm.sh). MDBOOK names another one.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
if [ -z "${MDBOOK:-}" ]; then
	folder=${CROWNLABS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crownlabs}/mdbook-$version
	MDBOOK=$folder/bin/mdbook
	if [ ! -x "$MDBOOK" ]; then
		echo "installing mdBook $version once into $folder"
		# Without the features to serve or watch: the book is read from files.
		# Without optimisation: the build takes a fraction of the time, a book a few seconds.
		CARGO_PROFILE_DEV_DEBUG=false \
			cargo install --locked --quiet --debug --root "$folder" --no-default-features --features search "mdbook@$version"
	fi
fi

# The address of the published repository, for links. Continuous integration sets it; in a clone it is the origin.
# Without either, links lead to the files here.
if [ -z "${BOOK_REPOSITORY:-}" ]; then
	origin=${GITHUB_REPOSITORY:+$GITHUB_SERVER_URL/$GITHUB_REPOSITORY}
	BOOK_REPOSITORY=$(sed -nE 's#^(ssh://)?git@([^:/]+)[:/]#https://\2/#; s#\.git$##; /^https:/p' \
		<<<"${origin:-$(git config --get remote.origin.url || true)}")
fi
export BOOK_REPOSITORY
if [ -n "$BOOK_REPOSITORY" ]; then
	export MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL=$BOOK_REPOSITORY
	export MDBOOK_OUTPUT__HTML__EDIT_URL_TEMPLATE=$BOOK_REPOSITORY/edit/HEAD/docs/{path}
fi

export PYTHONDONTWRITEBYTECODE=1
python3 tests/book/faults.py --quiet
python3 tests/book/check.py
rm -rf target/book
# Warnings of mdBook, such as an unclosed tag, are errors, too.
said=$("$MDBOOK" build docs 2>&1) || { echo "$said" >&2; exit 1; }
if grep -E 'WARN|ERROR' <<<"$said" >&2; then exit 1; fi
# mdBook copies this file because it is not a page.
rm -f target/book/book.toml
python3 tests/book/check.py target/book
echo "target/book/index.html: $(find target/book -name '*.html' | wc -l) pages"
