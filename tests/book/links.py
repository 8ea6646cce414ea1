#!/usr/bin/env python3
"""A preprocessor of mdBook: links of pages to files that are not in the book lead to the repository.

In the repository, such a link is relative and works. The file is not in the book."""

import json
import sys

import pages

DOCS = "docs"


def is_in_book(path):
    """Whether mdBook has the file: pages and the files beside them."""
    return path.startswith(f"{DOCS}/")


def rewritten(page, text, files):
    """The text of a page with these links changed."""
    done, parts = 0, []
    for first, end, link in pages.links(text):
        if link.startswith("#") or pages.ELSEWHERE.match(link):
            continue
        path, fragment = pages.target(page, link)
        if path is None or path not in files and not pages.is_folder(path, files):
            sys.exit(f"{page}:{pages.line(text, first)}: {link} leads to no file of the repository")
        if is_in_book(path) and path in files:
            continue
        parts += [text[done:first], pages.place(path, files) + (f"#{fragment}" if fragment else "")]
        done = end
    return "".join(parts) + text[done:]


def chapters(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    files = pages.tracked()
    for chapter in chapters(book.get("items") or book.get("sections")):
        if chapter.get("source_path"):
            page = f"{DOCS}/{chapter['source_path']}"
            chapter["content"] = rewritten(page, chapter["content"], files)
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
