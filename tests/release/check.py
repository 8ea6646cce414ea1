#!/usr/bin/env python3
"""The checks of the files of a release, run by `tests/workflows.sh`. Each error is a line with its place, the problem, and the fix.

Each check is a function of the repository's files: a mapping of names to texts."""

import datetime
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
LINES = 100
# The ecosystem of Dependabot that updates a file of this name.
ECOSYSTEMS = {
    "Cargo.toml": "cargo", "Dockerfile": "docker", "go.mod": "gomod", "package.json": "npm", "pom.xml": "maven",
    "requirements.txt": "pip", "rust-toolchain.toml": "rust-toolchain",
}
TARGET = re.compile(r"\b(?:x86_64|aarch64)-(?:unknown|apple|pc)-[a-z]+(?:-[a-z]+)?\b")


def releases(changelog):
    """The versions of a changelog with their dates, the newest first."""
    return re.findall(r"^## (\S+) - (\d{4}-\d\d-\d\d)$", changelog, re.M)


def pins(files):
    """Actions that are not pinned, or were more than a year old at the newest release."""
    newest = releases(files["CHANGELOG.md"])[0][1]
    oldest = datetime.date.fromisoformat(newest) - datetime.timedelta(days=365)
    faults, found = [], 0
    for name in sorted(files):
        if not name.startswith(".github/workflows/"):
            continue
        for number, line in enumerate(files[name].splitlines(), 1):
            if not (use := re.search(r"uses: (.*)", line)):
                continue
            found += 1
            pin = re.fullmatch(r"\S+@[0-9a-f]{40} # v[0-9.]+, (\d{4}-\d\d-\d\d)", use[1])
            if not pin:
                faults.append(f"{name}:{number}: expected NAME@DIGEST # VERSION, DATE: {use[1]}")
            elif datetime.date.fromisoformat(pin[1]) < oldest:
                faults.append(f"{name}:{number}: more than a year older than the newest release ({newest}): {use[1]}")
    return faults if found else [".github/workflows: no action is used"]


def dockerfiles(files):
    """Base images without a tag and a digest, and images without labels."""
    faults = []
    for name in sorted(files):
        if not name.endswith("Dockerfile"):
            continue
        text, stages = files[name], {"scratch"}
        for base, stage in re.findall(r"^FROM (\S+)(?: AS (\S+))?$", text, re.M):
            if base not in stages and not re.fullmatch(r"[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}", base):
                faults.append(f"{name}: expected FROM NAME:TAG@DIGEST: {base}")
            stages.add(stage)
        for label in ("title", "description", "source"):
            if f"org.opencontainers.image.{label}=" not in text:
                faults.append(f"{name}: the label org.opencontainers.image.{label} is missing")
    return faults


def changelog(files):
    """Versions of the changelog without a date, longer than `LINES`, or without notes for the upgrade."""
    text, page = files["CHANGELOG.md"], "docs/operating.md"
    faults = [
        f"CHANGELOG.md: expected `## VERSION - DATE`: {line}"
        for line in re.findall(r"^## .*$", text, re.M)
        if not releases(line) and line != "## Unreleased"
    ]
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        length = len(section.rstrip().splitlines())
        if length > LINES:
            faults.append(f"CHANGELOG.md: {section.splitlines()[0]} has {length} lines: at most {LINES} are expected")
    for version, _ in releases(text):
        if not re.search(rf"^\| {re.escape(version)} \|", files[page], re.M):
            faults.append(f"{page}: the table of upgrades lacks {version}")
    return faults


def dependabot(files):
    """Files with dependencies that Dependabot does not read."""
    members = tomllib.loads(files["Cargo.toml"])["workspace"]["members"]
    covered = []
    for entry in yaml.safe_load(files[".github/dependabot.yml"])["updates"]:
        for folder in entry.get("directories", [entry.get("directory")]):
            covered.append((entry["package-ecosystem"], re.escape(folder).replace(r"\*", "[^/]*")))
    wanted = {("github-actions", "/")}
    for name in files:
        folder, _, file = f"/{name}".rpartition("/")
        if file in ECOSYSTEMS and folder.removeprefix("/") not in members:
            wanted.add((ECOSYSTEMS[file], folder or "/"))
    return [
        f".github/dependabot.yml: {ecosystem} lacks the directory {folder}"
        for ecosystem, folder in sorted(wanted)
        if not any(one == ecosystem and re.fullmatch(pattern, folder) for one, pattern in covered)
    ]


def owners(files):
    rules = [line.split() for line in files.get(".github/CODEOWNERS", "").splitlines() if line and not line.startswith("#")]
    if not any(rule[0] == "*" and len(rule) > 1 for rule in rules):
        return [".github/CODEOWNERS: no rule for all files (`* @OWNER/TEAM`)"]
    return []


def targets(files):
    """Targets of a release that `cargo deny` does not check."""
    checked = set(tomllib.loads(files["deny.toml"])["graph"]["targets"])
    shipped = set(TARGET.findall(files[".github/workflows/release.yml"]) + TARGET.findall(files["Makefile"]))
    return [f"deny.toml: the target {target} is missing in graph.targets" for target in sorted(shipped - checked)]


def versions(files):
    """Differences between the versions of docs/installing.md and those of the tests."""
    page, folder = files["docs/installing.md"], "tests/cluster/go"

    def tested(module, name):
        return re.search(rf"^\s*(?:require )?{re.escape(name)} v(\S+)", files[f"{folder}/{module}/go.mod"], re.M)[1]

    faults = []
    oldest, newest = (tested(module, "k8s.io/kubernetes") for module in ("kubernetes-oldest", "kubernetes"))
    helms = [tested("helm", "helm.sh/helm/v3"), tested("helm4", "helm.sh/helm/v4")]
    for component, found in (("Kubernetes", [oldest, newest]), ("Helm", helms)):
        row = next((line for line in page.splitlines() if line.startswith(f"| {component} |")), "")
        if not row.endswith(f"| {' and '.join(found)} |"):
            faults.append(f"docs/installing.md: the row {component} must end with the tested versions {' and '.join(found)}")
    rows = dict(re.findall(r"^\| (1\.\d+) \| \d{4}-\d\d-\d\d \|(.*) \|$", page, re.M))
    minor = lambda version: int(version.split(".")[1])
    for number in range(minor(oldest), minor(newest) + 1):
        if f"1.{number}" not in rows:
            faults.append(f"docs/installing.md: the table of versions lacks 1.{number} with its end of life")
    for version in (oldest, newest):
        if not rows.get(version.rpartition(".")[0], "").startswith(f" {version}: "):
            faults.append(f"docs/installing.md: the table of versions must name the tested version {version}")
    return faults


CHECKS = [pins, dockerfiles, changelog, dependabot, owners, targets, versions]


def repository(root=ROOT):
    """The files that the checks read."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    read = re.compile(r"\.github/.*|CHANGELOG\.md|Makefile|deny\.toml|docs/(installing|operating)\.md")
    wanted = [name for name in names if name and (root / name).is_file() and (read.fullmatch(name) or Path(name).name in ECOSYSTEMS)]
    return {name: (root / name).read_text() for name in wanted}


def main():
    files = repository()
    faults = [fault for check in CHECKS for fault in check(files)]
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
