"""Reads Markdown, and resolves its links."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})[ \t]*([^`\n]*)$")
CODE = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n[ \t]*\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*$", re.MULTILINE)
INLINE = r"\]\([ \t]*<?([^\s()<>]+(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+(?:\"[^\"]*\"|'[^']*'))?[ \t]*\)"
DEFINITION = r"^ {0,3}\[[^\]^][^\]]*\]:[ \t]*<?([^\s<>]+)>?"
HTML = r"<[a-zA-Z][^<>]*?\s(?:href|src)=[\"']([^\"']+)[\"']"
LINK = re.compile(f"{INLINE}|{DEFINITION}|{HTML}", re.MULTILINE)
ELSEWHERE = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*:|//)")


def blank(match):
    """Spaces in place of the text, so that the following text keeps its position."""
    return re.sub(r"[^\n]", " ", match.group(0))


def fences(text):
    """The blocks of code: number of the first line, the line after the last, language. An unclosed block ends the text."""
    found, opened = [], None
    lines = text.split("\n")
    for number, line in enumerate(lines):
        match = FENCE.match(line)
        if opened is None and match:
            opened = (number, match.group(1), match.group(2).strip())
        elif opened is not None and match and match.group(1).startswith(opened[1]) and not match.group(2).strip():
            found.append((opened[0], number + 1, opened[2]))
            opened = None
    if opened is not None:
        found.append((opened[0], len(lines), opened[2]))
    return found


def without_blocks(text):
    """The text with spaces in place of blocks of code and comments."""
    lines = text.split("\n")
    for first, end, _ in fences(text):
        for number in range(first, end):
            lines[number] = " " * len(lines[number])
    return COMMENT.sub(blank, "\n".join(lines))


def prose(text):
    """The text with spaces in place of all code and comments."""
    return CODE.sub(blank, without_blocks(text))


def links(text):
    """Each link as its first and last place in the text, and its target."""
    for match in LINK.finditer(prose(text)):
        group = next(number for number in (1, 2, 3) if match.group(number))
        yield match.start(group), match.end(group), match.group(group)


def line(text, place):
    return text.count("\n", 0, place) + 1


def slug(heading):
    """The anchor that hosts of repositories give a heading."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    heading = re.sub(r"[`*]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def anchors(text):
    found, known = set(), {}
    for match in HEADING.finditer(without_blocks(text)):
        base = slug(match.group(1))
        again = known.get(base, 0)
        known[base] = again + 1
        found.add(f"{base}-{again}" if again else base)
    return found


def tracked(root=ROOT):
    """The files of the repository, including uncommitted ones."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return {name for name in names if name and (root / name).exists()}


def target(page, link):
    """The path in the repository of a relative link on a page, and its fragment. None if it leads out of the repository."""
    path, _, fragment = link.partition("#")
    if not path:
        return page, fragment
    path = os.path.normpath(os.path.join(os.path.dirname(page), path.split("?")[0]))
    return (None if path.startswith("..") else path), fragment


def is_folder(path, files):
    return path == "." or any(name.startswith(f"{path}/") for name in files)


def place(path, files, root=ROOT):
    """The address of a file or folder of the repository: published, or local if the repository is not published."""
    base = os.environ.get("BOOK_REPOSITORY", "")
    if not base:
        return (root / path).as_uri()
    return f"{base}/{'tree' if is_folder(path, files) else 'blob'}/HEAD/{path}"
