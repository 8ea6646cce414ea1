"""The table of values in the chart's README: each key of values.yaml with its default and the comment above it."""

import json
import re
import unittest

import yaml

BEGIN = "<!-- The table of values: `make chart` writes it from values.yaml. -->\n"
END = "<!-- The end of the table. -->\n"


def rows(source):
    """The keys that have a comment or a default, as (path, default, comment). Keys below `config` belong to the daemon."""
    values, path, comment, below = yaml.safe_load(source), [], [], None
    for line in source.splitlines():
        indent = len(line) - len(line.lstrip())
        text = line.strip()
        if below is not None and (indent > below or text.startswith("- ")):
            continue
        below = None
        if text.startswith("#"):
            comment.append(text.removeprefix("#").strip())
            continue
        found = re.match(r"([\w-]+):(?:\s+(.*))?$", text)
        if not found:
            # An empty line ends a comment that belongs to no key.
            comment = []
            continue
        path = [*path[: indent // 2], found[1]]
        default = found[2] or ""
        value = values
        for key in path:
            value = value[key]
        if found[1] == "config":
            below, default = indent, default or "see values.yaml"
        elif not default and (isinstance(value, list) or any("/" in key or "." in key for key in value)):
            # A list, or a key that is not a section: the keys in it are not keys of the chart.
            below, default = indent, json.dumps(value)
        yield ".".join(path), default, " ".join(comment)
        comment = []


def row(path, default, comment):
    code = f"`{default}`" if default and default != "see values.yaml" else default.replace("values.yaml", "[values.yaml](values.yaml)")
    return f"| `{path}` | {code} | {comment} |".replace("|  |", "| |")


def table(source):
    lines = [row(*found).replace("\n", " ") for found in rows(source) if found[1] or found[2]]
    return "\n".join(["| value | default | meaning |", "|---|---|---|", *lines]) + "\n"


def written(readme, values):
    """The README with the table of these values."""
    head, _, rest = readme.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise AssertionError("manifests/chart/README.md lacks the comments around the table of values")
    return head + BEGIN + "\n" + table(values) + "\n" + END + tail


class Table(unittest.TestCase):
    def test_a_row_has_the_path_the_default_and_the_comment(self):
        values = """
# A sentence
# of two lines.
config:
  # Not here.
  key: 1

first: 1
# About it: `a|b`.
outer:
  inner: {a: "", b: [1]}
  # Deep.
  deeper:
    last: ""
    labels:
      # What it means.
      example.com/a: b
    list:
    - {c: d}
"""
        self.assertEqual(list(rows(values)), [
            ("config", "see values.yaml", "A sentence of two lines."), ("first", "1", ""), ("outer", "", "About it: `a|b`."),
            ("outer.inner", '{a: "", b: [1]}', ""), ("outer.deeper", "", "Deep."), ("outer.deeper.last", '""', ""),
            ("outer.deeper.labels", '{"example.com/a": "b"}', ""), ("outer.deeper.list", '[{"c": "d"}]', ""),
        ])
        self.assertIn("| `outer.inner` | `{a: \"\", b: [1]}` | |\n", table(values))
