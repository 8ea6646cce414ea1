"""Follows the links of the chart, of its alerts and of all documents that lead to this repository at its host.

The account is that of the chart's home, OWNER until `images/pin.sh names` writes one, and the version is that of the chart. Messages
and templates that name a page (`docs/operating.md#upgrade`) are followed, too."""

import re
from urllib.parse import unquote

import pages

CHART = "manifests/chart/Chart.yaml"
URL = re.compile(r"https://(?:www\.)?(github\.com|raw\.githubusercontent\.com)/([^\s<>\"'`)\]},]+)")
PAGE = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.md(?:#[\w-]+)?")
# Pages of a repository at its host that are no files.
OTHER = {"", "discussions", "issues", "pulls", "releases", "security"}
READ = re.compile(r"manifests/.*\.(json|md|tpl|txt|yaml)|src/.*\.rs|.*\.md|Cargo\.toml|(images/.*/)?Dockerfile")


def names(chart):
    """The account and the version in a Chart.yaml."""
    return re.search(r"^home: https://github\.com/([^/\s]+)/crownlabs$", chart, re.M)[1], re.search(r"^version: (\S+)$", chart, re.M)[1]


def missing(path, fragment, files, read):
    """The error in a path of the repository and an anchor; None if both exist."""
    path = path.strip("/")
    if path not in files and not pages.is_folder(path, files):
        return f"the repository has no {path}"
    if fragment and (not path.endswith(".md") or fragment not in pages.anchors(read(path))):
        return f"{path} has no heading with that anchor"
    return None


def fault(url, named, files, read):
    """The error in a link; None if it is correct, or leads elsewhere."""
    account, version = named
    host, rest = URL.fullmatch(url).groups()
    rest, _, fragment = unquote(rest).partition("#")
    owner, _, rest = rest.partition("/")
    repository, *parts = rest.split("/")
    if repository.lower() != "crownlabs":
        return None
    if (owner, repository) != (account, "crownlabs"):
        return f"leads to another repository: expected {account}/crownlabs, as in the chart's home (images/pin.sh names)"
    if host == "github.com":
        if not parts or parts[0] in OTHER:
            return None
        if parts[0] == ".github":
            # The identity of a workflow in a signature: PATH@REF.
            path, _, ref = "/".join(parts).partition("@refs/tags/")
            parts = ["blob", ref or "HEAD", path]
        if parts[0] not in ("blob", "tree"):
            return f"{parts[0]} is no page of a repository"
        parts = parts[1:]
    if parts[0] not in ("HEAD", f"v{version}"):
        return f"{parts[0]} is neither HEAD nor the tag v{version} (images/pin.sh names)"
    return missing("/".join(parts[1:]), fragment, files, read)


def sources(files, read):
    """The errors in the files of a repository. `read` returns the text of a file."""
    if CHART not in files:
        return [f"{CHART} is missing: its home has the account of links"]
    faults, named = [], names(read(CHART))
    for name in sorted(files):
        if not READ.fullmatch(name):
            continue
        text = read(name)
        for match in URL.finditer(text):
            url = match.group().rstrip(".;:")
            error = fault(url, named, files, read)
            faults += [f"{name}:{pages.line(text, match.start())}: {url}: {error}"] if error else []
        for match in PAGE.finditer(text) if name.startswith(("manifests/", "src/")) else ():
            path, _, fragment = match.group().partition("#")
            error = missing(path, fragment, files, read)
            faults += [f"{name}:{pages.line(text, match.start())}: {match.group()}: {error}"] if error else []
    return faults
