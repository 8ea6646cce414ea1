#!/usr/bin/env python3
"""The checks of `tests/book.sh`: `check.py` checks the pages, `check.py FOLDER` the book built from them.

Each error is a line with its place, the problem, and the fix."""

import posixpath
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pages
import published

SUMMARY = "docs/SUMMARY.md"
# The languages that both the book and repository hosts highlight correctly.
LANGUAGES = {"bash", "console", "json", "promql", "rust", "sh", "text", "toml", "yaml"}
ALERTS = {"NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"}
UNKNOWN = [
    (re.compile(r"^[ \t]*(!!!|\?\?\?\+?|:::)"), "a block of another program: write a paragraph"),
    (re.compile(r"\{\{|\{%"), "a directive of a template: only one renderer of the page supports it"),
    (re.compile(r"^\[TOC\]", re.IGNORECASE), "a table of contents: the book makes its own"),
    (re.compile(r"\[\["), "a link of a wiki: write [text](page.md)"),
    (re.compile(r"\{[:#.][^}]*\}\s*$"), "an attribute: only one renderer of the page supports it"),
    (re.compile(r"\$\$"), "a formula: write it as text or code"),
    (re.compile(r"\[\^[^\]]+\]"), "a footnote: write a sentence"),
]


def syntax(page, text):
    """Syntax that one of the renderers would show verbatim."""
    faults = []
    for first, _, language in pages.fences(text):
        if language not in LANGUAGES:
            named = f"the language {language!r}" if language else "no language"
            known = ", ".join(sorted(LANGUAGES))
            faults.append(f"{page}:{first + 1}: a block of code with {named}: one of {known} is expected")
    for number, line in enumerate(pages.prose(text).split("\n"), 1):
        alert = re.match(r"^[ \t]*>[ \t]*\[!(\w+)\]", line)
        if alert and alert.group(1) not in ALERTS:
            faults.append(f"{page}:{number}: [!{alert.group(1)}] is not known: one of {', '.join(sorted(ALERTS))} is")
        for pattern, what in UNKNOWN:
            if pattern.search(line):
                faults.append(f"{page}:{number}: {line.strip()!r} is {what}")
    return faults


def relative(page, text, read, files):
    """Links of a page to files that are missing in the repository. `read` returns the text of a file."""
    faults = []
    for first, _, link in pages.links(text):
        if pages.ELSEWHERE.match(link):
            continue
        at = f"{page}:{pages.line(text, first)}: {link}"
        path, fragment = pages.target(page, unquote(link))
        if path is None or path not in files and not pages.is_folder(path, files):
            faults.append(f"{at}: the repository has no such file: name one relative to the page")
        elif fragment and (not path.endswith(".md") or fragment not in pages.anchors(read(path))):
            faults.append(f"{at}: {path} has no heading with that anchor")
    return faults


def table_of_contents(text, files):
    """Pages that are missing in SUMMARY.md, and wrong entries in it."""
    wanted = {name for name in files if name.startswith("docs/") and name.endswith(".md")} - {SUMMARY}
    named = [pages.target(SUMMARY, link)[0] for _, _, link in pages.links(text)]
    faults = [f"{SUMMARY}: {page} is missing: every page is in the table of contents" for page in sorted(wanted - set(named))]
    faults += [f"{SUMMARY}: {page} is named twice" for page in sorted({page for page in named if named.count(page) > 1})]
    drafts = [number for number, line in enumerate(text.split("\n"), 1) if re.search(r"\]\(\s*\)", line)]
    return faults + [f"{SUMMARY}:{number}: a chapter without a page: name its file" for number in drafts]


def sources(root=pages.ROOT):
    """The errors in all documents of a repository."""
    files = pages.tracked(root)
    read = lambda name: (root / name).read_text()
    faults = table_of_contents(read(SUMMARY), files) + published.sources(files, read)
    for page in sorted(name for name in files if name.endswith(".md")):
        text = read(page)
        faults += relative(page, text, read, files)
        if page.startswith("docs/"):
            faults += syntax(page, text)
    return faults


class Page(HTMLParser):
    """The links and the link targets of a page of the book."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("href") and attributes.get("rel") != "canonical":
            self.loaded.append(attributes["href"])
        elif attributes.get("src"):
            self.loaded.append(attributes["src"])


def in_repository(link, files, read):
    """The error in a link to the repository; None if it is correct, or leads elsewhere."""
    here = pages.place("", files)
    ways = [] if here.startswith("file:") else ["tree", "edit"]
    prefixes = [here] + [here.replace("/blob/HEAD", f"/{way}/HEAD") for way in ways]
    rest = next((link[len(prefix) :] for prefix in prefixes if link.startswith(prefix)), None)
    if rest is None:
        return None
    path, _, fragment = unquote(rest).partition("#")
    path = posixpath.normpath(path.strip("/"))
    if path not in files and not pages.is_folder(path, files):
        return f"the repository has no {path}"
    if fragment and (not path.endswith(".md") or fragment not in pages.anchors(read(path))):
        return f"{path} has no heading with that anchor"
    return None


def built(folder, root=pages.ROOT):
    """The errors of a book: broken links, and files that are loaded from other hosts."""
    folder = Path(folder).resolve()
    found = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    files = pages.tracked(root)
    read = lambda name: (root / name).read_text()
    faults = [] if found else [f"{folder} has no page"]
    for path, page in found.items():
        name = path.relative_to(folder)
        faults += [f"{name}: {link} is loaded from elsewhere" for link in page.loaded if pages.ELSEWHERE.match(link)]
        for link in page.links + page.loaded:
            if pages.ELSEWHERE.match(link):
                fault = in_repository(link, files, read)
                faults += [f"{name}: {link}: {fault}"] if fault else []
                continue
            target, _, fragment = unquote(link).partition("#")
            there = (path.parent / target.split("?")[0]).resolve() if target else path
            there = there / "index.html" if there.is_dir() else there
            if not there.is_relative_to(folder) or not there.exists():
                faults.append(f"{name}: {link}: the book has no such file")
            elif fragment and there in found and fragment not in found[there].ids:
                faults.append(f"{name}: {link}: {there.relative_to(folder)} has no such anchor")
    return faults


def main():
    faults = built(sys.argv[1]) if sys.argv[1:] else sources()
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
