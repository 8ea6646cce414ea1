#!/usr/bin/env python3
"""Shows that every check of the book can fail: small repositories and books, each with one error."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import check
import links
import pages

GOOD = {
    "README.md": "See [what](docs/README.md) and [its end](docs/more.md#the-end).\n",
    "docs/SUMMARY.md": "# Summary\n\n[What](README.md)\n\n- [More](more.md)\n",
    "docs/README.md": "# What\n\n> [!NOTE]\n> A note, and `[[code]](nowhere.md)`.\n\nSee [more](more.md), [code](../src/a.rs).\n",
    "docs/more.md": "# More\n\n```sh\n# {{ not read }} [x](nowhere.md)\n```\n\n## The `end`\n\n[start](#more)\n",
    "src/a.rs": "",
    "manifests/chart/Chart.yaml": "version: 1.2.3\nhome: https://github.com/o/crownlabs\n",
}
SUMMARY = GOOD["docs/SUMMARY.md"]
BOOK = {
    "index.html": '<h1 id="what">What</h1><a href="more.html#end">more</a><script src="a.js"></script>',
    "more.html": '<h2 id="end">End</h2><a href="index.html">what</a><a href="https://host/o/r/blob/HEAD/src/a.rs">a</a>',
    "a.js": "",
}


def written(files):
    folder = tempfile.TemporaryDirectory()
    for name, text in files.items():
        path = Path(folder.name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


class Faults(unittest.TestCase):
    def faults_of_pages(self, changes):
        files = {name: text for name, text in (GOOD | changes).items() if text is not None}
        with written(files) as root:
            subprocess.run(["git", "init", "--quiet", root], check=True)
            return check.sources(Path(root))

    def faults_of_book(self, changes):
        repository = written(GOOD)
        with repository as root, written(BOOK | changes) as folder:
            subprocess.run(["git", "init", "--quiet", root], check=True)
            return check.built(folder, Path(root))

    def test_pages(self):
        self.assertEqual(self.faults_of_pages({}), [])
        more = GOOD["docs/more.md"]
        for name, changes, expected in [
            ("a page that is not named", {"docs/lost.md": "# Lost\n"}, "docs/lost.md is missing"),
            ("a page that is named twice", {"docs/SUMMARY.md": SUMMARY + "- [Again](more.md)\n"}, "more.md is named twice"),
            ("a draft", {"docs/SUMMARY.md": SUMMARY + "- [Later]()\n"}, "a chapter without a page"),
            ("a missing page", {"docs/SUMMARY.md": SUMMARY + "- [x](x.md)\n"}, "docs/SUMMARY.md:6: x.md: the repository has no"),
            ("a missing file", {"src/a.rs": None}, "../src/a.rs: the repository has no such file"),
            ("a link out of the repository", {"README.md": "[x](../../x.md)\n"}, "../../x.md: the repository has no"),
            ("an anchor", {"docs/more.md": "# More\n\n[start](#more)\n"}, "docs/more.md#the-end: docs/more.md has no"),
            ("an anchor of the page itself", {"docs/more.md": more + "[x](#none)\n"}, "#none: docs/more.md has no"),
            ("an anchor of code", {"docs/more.md": more + "[x](../src/a.rs#L1)\n"}, "src/a.rs has no heading"),
            ("a definition", {"docs/more.md": more + "\n[x]: nowhere.md\n"}, "nowhere.md: the repository has no"),
            ("HTML", {"docs/more.md": more + '\n<img src="no.png">\n'}, "no.png: the repository has no"),
            ("mermaid", {"docs/more.md": more + "```mermaid\n```\n"}, "the language 'mermaid'"),
            ("a block without a language", {"docs/more.md": more + "```\nx\n```\n"}, "with no language"),
            ("an alert", {"docs/more.md": more + "\n> [!DANGER]\n> x\n"}, "[!DANGER] is not known"),
            ("an admonition", {"docs/more.md": more + "\n!!! note\n    x\n"}, "a block of another program"),
            ("a container", {"docs/more.md": more + "\n:::note\n"}, "a block of another program"),
            ("an include", {"docs/more.md": more + "\n{{#include a.md}}\n"}, "a directive of a template"),
            ("a wiki", {"docs/more.md": more + "\n[[more]]\n"}, "a link of a wiki"),
            ("an attribute", {"docs/more.md": more + "\n## Title {#id}\n"}, "an attribute"),
            ("a formula", {"docs/more.md": more + "\n$$x$$\n"}, "a formula"),
            ("a footnote", {"docs/more.md": more + "\nx[^1]\n"}, "a footnote"),
            ("a table of contents", {"docs/more.md": more + "\n[TOC]\n"}, "a table of contents"),
        ]:
            with self.subTest(name):
                found = self.faults_of_pages(changes)
                self.assertEqual(len(found), 1, found)
                self.assertIn(expected, found[0])

    def test_links_to_the_published_repository(self):
        at = "https://github.com/o/crownlabs"
        for link in [
            at, f"{at}/releases", f"{at}/blob/v1.2.3/docs/more.md#the-end", f"{at}/tree/HEAD/docs.", "https://github.com/other/project",
            "https://raw.githubusercontent.com/o/crownlabs/v1.2.3/src/a.rs", "docs/more.md#the-end",
        ]:
            with self.subTest(link):
                self.assertEqual(self.faults_of_pages({"manifests/chart/values.yaml": f"# See {link}\n"}), [])
        for link, expected in [
            (f"{at}/blob/HEAD/docs/none.md", "manifests/chart/values.yaml:1: https://github.com/o/crownlabs/blob/HEAD/docs/none.md"),
            (f"{at}/blob/HEAD/docs/more.md#none", "docs/more.md has no heading"),
            (f"{at}/blob/v1.2.4/docs/more.md", "v1.2.4 is neither HEAD nor the tag v1.2.3"),
            (f"{at}/wiki", "wiki is no page"),
            (f"{at}/.github/workflows/none.yml@refs/tags/v1.2.3", "the repository has no .github/workflows/none.yml"),
            ("https://raw.githubusercontent.com/o/crownlabs/HEAD/none.svg", "the repository has no none.svg"),
            ("https://github.com/netgroup-polito/CrownLabs", "leads to another repository: expected o/crownlabs"),
            ("docs/more.md#none", "docs/more.md has no heading"),
            ("docs/none.md", "the repository has no docs/none.md"),
        ]:
            with self.subTest(link):
                found = self.faults_of_pages({"manifests/chart/values.yaml": f"# See {link}.\n"})
                self.assertEqual(len(found), 1, found)
                self.assertIn(expected, found[0])
        self.assertIn("Chart.yaml is missing", self.faults_of_pages({"manifests/chart/Chart.yaml": None})[0])

    def test_book(self):
        os.environ["BOOK_REPOSITORY"] = "https://host/o/r"
        self.assertEqual(self.faults_of_book({}), [])
        repository = "https://host/o/r"
        for name, link, expected in [
            ("a page", '<a href="none.html">', "none.html: the book has no such file"),
            ("a file above the book", '<a href="../x.html">', "../x.html: the book has no such file"),
            ("an anchor", '<a href="more.html#none">', "more.html has no such anchor"),
            ("an anchor of the page", '<a href="#none">', "x.html has no such anchor"),
            ("a script", '<script src="none.js">', "none.js: the book has no such file"),
            ("a script from elsewhere", '<script src="https://cdn/x.js">', "is loaded from elsewhere"),
            ("a style from elsewhere", '<link rel="stylesheet" href="//cdn/x.css">', "is loaded from elsewhere"),
            ("a file of the repository", f'<a href="{repository}/blob/HEAD/src/b.rs">', "the repository has no src/b.rs"),
            ("a folder of it", f'<a href="{repository}/tree/HEAD/none">', "the repository has no none"),
            ("a page to be edited", f'<a href="{repository}/edit/HEAD/docs/b.md">', "the repository has no docs/b.md"),
            ("an anchor of it", f'<a href="{repository}/blob/HEAD/docs/more.md#none">', "docs/more.md has no heading"),
        ]:
            with self.subTest(name):
                found = self.faults_of_book({"x.html": link})
                self.assertEqual(len(found), 1, found)
                self.assertIn(expected, found[0])
        with written({}) as folder:
            self.assertEqual(len(check.built(folder)), 1, "a book without pages")

    def test_links_to_the_repository(self):
        text = "[a](../src/a.rs) [b](../docs) [c](more.md) [d](../x.md#y) `[a](../src/a.rs)` [e](https://e) [f](#f)"
        files = {"src/a.rs", "docs/more.md", "x.md"}
        os.environ["BOOK_REPOSITORY"] = at = "https://host/o/r"
        expected = (
            f"[a]({at}/blob/HEAD/src/a.rs) [b]({at}/tree/HEAD/docs) [c](more.md) [d]({at}/blob/HEAD/x.md#y) "
            "`[a](../src/a.rs)` [e](https://e) [f](#f)"
        )
        self.assertEqual(links.rewritten("docs/page.md", text, files), expected)
        os.environ["BOOK_REPOSITORY"] = ""
        here = pages.ROOT.as_uri()
        self.assertEqual(links.rewritten("docs/page.md", "[a](../src/a.rs)", files), f"[a]({here}/src/a.rs)")
        with self.assertRaisesRegex(SystemExit, "docs/page.md:2: ../no.rs leads to no file"):
            links.rewritten("docs/page.md", "\n[a](../no.rs)", files)


if __name__ == "__main__":
    unittest.main()
