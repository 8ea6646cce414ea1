#!/usr/bin/env python3
"""Prints a bill of materials in the format of CycloneDX:

    sbom.py binary TARGET [OPTION]...            the binary that cargo builds for TARGET with these options
    sbom.py image NAME VERSION FOLDER [BINARY]   an image that `buildah push NAME dir:FOLDER` has written

A binary contains crates, as `cargo tree` resolves them for its target and its features; the standard library; and, in the daemon, the
npm packages of the dashboard. An image contains Debian packages, or, without any, files; BINARY is the bill of materials of its
binary. The same sources give the same file; SOURCE_DATE_EPOCH is its time stamp."""

import base64
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
STATUS = "var/lib/dpkg/status"
RELEASE = "usr/lib/os-release"


def component(name, version, purl, licence=None, digest=None):
    """A library of a bill. `digest` is an algorithm and its hexadecimal value."""
    found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if licence:
        found["licenses"] = [{"expression": licence}]
    if digest:
        found["hashes"] = [{"alg": digest[0], "content": digest[1]}]
    return found


def bill(root, components, depends=None):
    """The whole document. `depends` maps references to the references of their dependencies."""
    metadata = {"component": root}
    if "SOURCE_DATE_EPOCH" in os.environ:
        time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
        metadata = {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), **metadata}
    made = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": metadata}
    made["components"] = sorted(components, key=lambda one: one["bom-ref"])
    if depends:
        made["dependencies"] = [{"ref": ref, "dependsOn": sorted(depends[ref])} for ref in sorted(depends)]
    return made


def crates(tree, lock):
    """The components and dependencies of the output of `cargo tree --prefix depth --format '{p}\\t{l}'`; its first line is the binary."""
    digests = {(one["name"], one["version"]): one.get("checksum") for one in tomllib.loads(lock)["package"]}
    found, depends, path = {}, {}, []
    for line in tree.splitlines():
        depth, name, version, licence = re.fullmatch(r"(\d+)(\S+) v(\S+)(?: \(.*\))?\t(.*?)(?: \(\*\))?", line).groups()
        purl = f"pkg:cargo/{name}@{quote(version)}"
        ref = "crownlabs" if not path else purl
        path[int(depth) :] = [ref]
        depends.setdefault(ref, set())
        if len(path) > 1:
            depends[path[-2]].add(ref)
            digest = digests[(name, version)]
            found[ref] = component(name, version, purl, re.sub(r" */ *", " OR ", licence), digest and ("SHA-256", digest))
    return list(found.values()), depends


def scripts(lock):
    """The npm packages of a package-lock.json, without the tools that only make the scripts."""
    for path, one in json.loads(lock)["packages"].items():
        if path and not one.get("dev"):
            name = path.removeprefix("node_modules/")
            digest = base64.b64decode(one["integrity"].removeprefix("sha512-")).hex()
            licence = {"BSD-0-Clause": "0BSD"}.get(one["license"], one["license"])
            yield component(name, one["version"], f"pkg:npm/{quote(name)}@{one['version']}", licence, ("SHA-512", digest))


def binary(target, options):
    command = ["cargo", "tree", "--locked", "--package", "crownlabs", "--edges", "normal,no-proc-macro", "--target", target]
    command += ["--prefix", "depth", "--format", "{p}\t{l}", *options]
    tree = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    components, depends = crates(tree, (ROOT / "Cargo.lock").read_text())
    rust = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    found = [component("rust-std", rust, f"pkg:generic/rust-std@{rust}", "MIT OR Apache-2.0")]
    # The dashboard is in the daemon only.
    if "--no-default-features" not in options:
        found += scripts((ROOT / "assets/package-lock.json").read_text())
    depends["crownlabs"] |= {one["bom-ref"] for one in found}
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]
    root = {"type": "application", "bom-ref": "crownlabs", "name": "crownlabs", "version": manifest["version"]}
    root["licenses"] = [{"expression": manifest["license"]}]
    root["properties"] = [{"name": "crownlabs:target", "value": target}, {"name": "crownlabs:build", "value": " ".join(options)}]
    return bill(root, components + found, depends)


def members(folder):
    """The regular files of an image in the order of its layers, and each one's path."""
    for layer in json.loads(Path(folder, "manifest.json").read_text())["layers"]:
        with tarfile.open(Path(folder, layer["digest"].split(":")[1])) as archive:
            for member in archive:
                if member.isfile():
                    yield member.name.removeprefix("./").lstrip("/"), archive, member


def unpacked(folder):
    """The contents of the files of an image by path: those of dpkg, or all if it has no packages. Later layers win."""
    names = {path for path, _, _ in members(folder)}
    wanted = {STATUS, RELEASE} if STATUS in names else names
    return {path: archive.extractfile(member).read() for path, archive, member in members(folder) if path in wanted}


def packages(status, release):
    """The installed Debian packages of dpkg's status file."""
    distribution = re.search(r'^VERSION_ID="?([^"\n]*)', release, re.M)[1]
    for paragraph in status.strip().split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][A-Za-z-]*): (.*)$", paragraph, re.M))
        if fields["Status"].endswith(" installed"):
            name, version, arch = fields["Package"], fields["Version"], fields["Architecture"]
            purl = f"pkg:deb/debian/{quote(name)}@{quote(version, safe='')}?arch={arch}&distro=debian-{distribution}"
            yield component(name, version, purl)


def image(name, version, folder, of_binary=None):
    files = unpacked(folder)
    if STATUS in files:
        found = list(packages(files[STATUS].decode(), files[RELEASE].decode()))
    else:
        digests = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
        found = [
            {"type": "file", "bom-ref": f"/{path}", "name": f"/{path}", "hashes": [{"alg": "SHA-256", "content": digest}]}
            for path, digest in digests.items()
        ]
    if of_binary:
        found += json.loads(Path(of_binary).read_text())["components"]
    return bill({"type": "container", "bom-ref": name, "name": name, "version": version}, found)


def main():
    match sys.argv[1:]:
        case ["binary", target, *options]:
            made = binary(target, options)
        case ["image", name, version, folder, *of_binary] if len(of_binary) < 2:
            made = image(name, version, folder, *of_binary)
        case _:
            sys.exit(__doc__)
    json.dump(made, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
