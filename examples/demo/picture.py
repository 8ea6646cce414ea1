#!/usr/bin/env python3
"""Draws the README's picture from what the demo prints: make demo DETACH=1 | python3 examples/demo/picture.py

The picture has the first and the last table before the demo stops an Instance, and what follows until that is off; the other
tables are left out, and what is too long for a line is cut off.
"""

import re
import sys
from html import escape
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent.parent / "docs/images/demo.svg"
COLUMNS, LINE, WIDTH_OF_LETTER, MARGIN = 104, 18, 7.8, 16
TEXT, BACKGROUND = "#d8dee9", "#20242c"
COLOURS = [
    (r"\b(Ready|Completed|accepted)\b", "#8fbf6a"),
    (r"\b(Importing|Starting|Running|Pending|Processing)\b", "#e0b050"),
    (r"\b(Off)\b", "#8a93a3"),
    (r"\b(refused)\b", "#e06c60"),
    (r"(https://\S+|\b\d+\.\d+\.\d+\.\d+:\d+)", "#6fa8dc"),
]


def chosen(lines):
    """The lines of the picture."""
    blocks = "\n".join(line.rstrip() for line in lines).split("\n\n")
    end = next((n for n, block in enumerate(blocks) if block.startswith("one is off")), None)
    if end is None:
        sys.exit("no Instance gets off in the input: is it what `make demo DETACH=1` prints?")
    tables = [n for n, block in enumerate(blocks) if block.startswith("KIND")]
    begin = next(n for n, block in enumerate(blocks) if block.startswith("stopping"))
    before = [n for n in tables if n < begin]
    after = [n for n in tables if begin < n < end]
    left_out = {*before[1:-1], *after[:-1]}
    text = "\n\n".join(blocks[n] for n in range(before[0], end + 1) if n not in left_out)
    return ["$ make demo", "…"] + text.rstrip().split("\n")


def shortened(line):
    return line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…"


def coloured(line):
    """The line as SVG, with the words of states in their colours."""
    if line.startswith(("KIND", "$")):
        return f'<tspan font-weight="bold">{escape(line)}</tspan>'
    line = escape(line)
    for pattern, colour in COLOURS:
        line = re.sub(pattern, rf'<tspan fill="{colour}">\1</tspan>', line)
    return line


def main():
    lines = [shortened(line) for line in chosen(sys.stdin.read().split("\n"))]
    width, height = COLUMNS * WIDTH_OF_LETTER + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">',
        "<title>What make demo prints: seven Instances become ready, one is stopped and one deleted</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" fill="{TEXT}" xml:space="preserve">',
    ]
    for n, line in enumerate(lines):
        parts.append(f'<text x="{MARGIN}" y="{MARGIN + (n + 1) * LINE - 5}">{coloured(line)}</text>')
    PICTURE.write_text("\n".join([*parts, "</g>", "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
