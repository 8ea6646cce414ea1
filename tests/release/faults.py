#!/usr/bin/env python3
"""Shows that every check of `check.py` can fail, and tests images/sbom.py and images/pin.sh, on small repositories."""

import importlib.util
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

import check
from check import ROOT

DIGEST, COMMIT = "0" * 64, "0" * 40
WORKFLOW = f"""
      - uses: actions/checkout@{COMMIT} # v7.0.1, 2026-01-02
      - run: rustup target add x86_64-unknown-linux-musl
"""
GOOD = {
    ".github/CODEOWNERS": "* @o/team\n",
    ".github/dependabot.yml": json.dumps({"updates": [
        {"package-ecosystem": "github-actions", "directory": "/"},
        {"package-ecosystem": "cargo", "directories": ["/", "/fuzz"]},
        {"package-ecosystem": "docker", "directory": "/"},
        {"package-ecosystem": "gomod", "directories": ["/tests/cluster/go/*"]},
    ]}),
    ".github/workflows/release.yml": WORKFLOW,
    "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-11-30\n\n- a change\n\n## 0.1.0 - 2025-01-01\n",
    "Cargo.toml": '[workspace]\nmembers = ["tests/cluster"]\n',
    "Dockerfile": f"FROM node:1@sha256:{DIGEST} AS a\nFROM scratch AS b\nFROM b\n"
    "LABEL org.opencontainers.image.title=a org.opencontainers.image.description=b org.opencontainers.image.source=c\n",
    "Makefile": "",
    "deny.toml": '[graph]\ntargets = ["x86_64-unknown-linux-musl"]\n',
    "docs/installing.md": "| Kubernetes | | 1.30.14 and 1.31.2 |\n| Helm | | 3.22.0 and 4.3.1 |\n"
    "| 1.30 | 2025-07-15 | 1.30.14: some |\n| 1.31 | 2025-11-11 | 1.31.2: all |\n",
    "docs/operating.md": "| 0.2.0 | nothing |\n| 0.1.0 | nothing |\n",
    "fuzz/Cargo.toml": "",
    "tests/cluster/Cargo.toml": "",
    "tests/cluster/go/helm/go.mod": "\thelm.sh/helm/v3 v3.22.0 // indirect\n",
    "tests/cluster/go/helm4/go.mod": "\thelm.sh/helm/v4 v4.3.1 // indirect\n",
    "tests/cluster/go/kubernetes/go.mod": "\tk8s.io/kubernetes v1.31.2\n",
    "tests/cluster/go/kubernetes-oldest/go.mod": "\tk8s.io/kubernetes v1.30.14\n",
}


class Faults(unittest.TestCase):
    def test_a_good_repository_has_no_faults(self):
        for one in check.CHECKS:
            self.assertEqual(one(GOOD), [], one.__name__)

    def test_each_check_can_fail(self):
        changelog, page = GOOD["CHANGELOG.md"], GOOD["docs/installing.md"]
        for one, name, text, expected in [
            (check.pins, ".github/workflows/release.yml", "- uses: actions/checkout@v7\n", "release.yml:1: expected NAME@DIGEST"),
            (check.pins, ".github/workflows/release.yml", WORKFLOW.replace("2026-01-02", "2025-11-29"), "more than a year older"),
            (check.pins, ".github/workflows/release.yml", WORKFLOW.replace(", 2026-01-02", ""), "expected NAME@DIGEST"),
            (check.pins, ".github/workflows/release.yml", "", "no action is used"),
            (check.dockerfiles, "Dockerfile", GOOD["Dockerfile"].replace(f"@sha256:{DIGEST}", ""), "expected FROM NAME:TAG@DIGEST: node:1"),
            (check.dockerfiles, "Dockerfile", GOOD["Dockerfile"].replace(".source", ""), "image.source is missing"),
            (check.changelog, "CHANGELOG.md", changelog.replace(" - 2026-11-30", ""), "expected `## VERSION - DATE`: ## 0.2.0"),
            (check.changelog, "CHANGELOG.md", changelog + "\n- more" * 100, "0.1.0 - 2025-01-01 has 102 lines"),
            (check.changelog, "docs/operating.md", "| 0.1.0 | nothing |\n", "the table of upgrades lacks 0.2.0"),
            (check.dependabot, "assets/package.json", "{}", "npm lacks the directory /assets"),
            (check.dependabot, "images/a/Dockerfile", GOOD["Dockerfile"], "docker lacks the directory /images/a"),
            (check.dependabot, "tests/cluster/go/a/b/go.mod", "", "gomod lacks the directory /tests/cluster/go/a/b"),
            (check.owners, ".github/CODEOWNERS", "# * @o/team\n", "no rule for all files"),
            (check.targets, "Makefile", "cli: aarch64-apple-darwin", "the target aarch64-apple-darwin is missing"),
            (check.versions, "docs/installing.md", page.replace("| 1.30.14 and", "| 1.30.13 and"), "the row Kubernetes must end with"),
            (check.versions, "docs/installing.md", page.replace("4.3.1", "4.3.0"), "the row Helm must end with"),
            (check.versions, "docs/installing.md", page.replace("| 1.31.2: all", "| 1.31.1: all"), "must name the tested version 1.31.2"),
            (check.versions, "docs/installing.md", page.replace("| 1.31 | 2025-11-11 |", "| 1.31 | |"), "lacks 1.31 with its end"),
        ]:
            with self.subTest(expected):
                found = one({**GOOD, name: text})
                self.assertIn(expected, found[0] if found else "")


def sbom():
    """The module images/sbom.py."""
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "images/sbom.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Bills(unittest.TestCase):
    def test_a_tree_of_crates_gives_components_and_dependencies(self):
        tree = "0crownlabs v1.0.0 (/a)\tApache-2.0\n1a v1.0.0+x\tMIT/Apache-2.0\n2b v2.0.0\tMIT\n1b v2.0.0\tMIT (*)\n"
        package = '[[package]]\nname = "{}"\nversion = "{}"\nchecksum = "{}"\n'
        lock = "".join(package.format(*one) for one in [("a", "1.0.0+x", "aa"), ("b", "2.0.0", "bb")])
        components, depends = sbom().crates(tree, lock)
        a, b = "pkg:cargo/a@1.0.0%2Bx", "pkg:cargo/b@2.0.0"
        self.assertEqual(depends, {"crownlabs": {a, b}, a: {b}, b: set()})
        self.assertEqual(components[0], {
            "type": "library", "bom-ref": a, "name": "a", "version": "1.0.0+x", "purl": a,
            "licenses": [{"expression": "MIT OR Apache-2.0"}], "hashes": [{"alg": "SHA-256", "content": "aa"}],
        })

    def test_the_scripts_of_the_dashboard_have_their_digests(self):
        found = list(sbom().scripts((ROOT / "assets/package-lock.json").read_text()))
        self.assertEqual({one["name"] for one in found}, {"@novnc/novnc", "@xterm/addon-fit", "@xterm/addon-web-links", "@xterm/xterm", "htmx.org"})
        self.assertEqual({(one["hashes"][0]["alg"], len(one["hashes"][0]["content"])) for one in found}, {("SHA-512", 128)})

    def image(self, *layers):
        """The references in the bill of an image with these layers, each a mapping of paths to texts."""
        with tempfile.TemporaryDirectory() as folder:
            named = []
            for number, files in enumerate(layers):
                with tarfile.open(Path(folder, str(number)), "w:gz") as archive:
                    for path, text in files.items():
                        entry = tarfile.TarInfo(path)
                        entry.size = len(text)
                        archive.addfile(entry, io.BytesIO(text.encode()))
                named.append({"digest": f"sha256:{number}"})
            Path(folder, "manifest.json").write_text(json.dumps({"layers": named}))
            return [one["bom-ref"] for one in sbom().image("a", "1", folder)["components"]]

    def test_an_image_has_the_packages_of_its_last_layer(self):
        status = "Package: a\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2+b\n\nPackage: c\n" \
            "Status: deinstall ok config-files\nArchitecture: amd64\nVersion: 3\n"
        release = 'ID=debian\nVERSION_ID="13"\n'
        first = {"var/lib/dpkg/status": "", "usr/lib/os-release": release, "start.sh": ""}
        self.assertEqual(self.image(first, {"./var/lib/dpkg/status": status}), ["pkg:deb/debian/a@1%3A2%2Bb?arch=amd64&distro=debian-13"])

    def test_an_image_without_packages_has_its_files(self):
        self.assertEqual(self.image({"crownlabs": "x"}, {"etc/ca.crt": "y"}), ["/crownlabs", "/etc/ca.crt"])


class Names(unittest.TestCase):
    def test_the_account_and_the_version_are_written_everywhere(self):
        command = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
        places = (".github/", "CONTRIBUTING", "Cargo.", "Dockerfile", "README", "SECURITY", "config/", "docs/", "images/", "manifests/")
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                if name.startswith(places) and (ROOT / name).is_file():
                    copy = Path(folder, name)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / name, copy)
            cargo = Path(folder, "Cargo.toml")
            version = check.tomllib.loads(cargo.read_text())["package"]["version"]
            cargo.write_text(cargo.read_text().replace(f'version = "{version}"', 'version = "9.8.7"', 1))

            def pinned(owner):
                environment = {**os.environ, "OWNER": owner}
                done = subprocess.run([Path(folder, "images/pin.sh"), "names"], env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                text = lambda path: path.read_bytes().decode(errors="replace")
                return {str(path.relative_to(folder)): text(path) for path in Path(folder).rglob("*") if path.is_file()}

            found = pinned("Some-One")
            self.assertEqual(pinned("Some-One"), found, "a second run changes nothing")
            for name, text in found.items():
                if name.startswith((".github/CODEOWNERS", "Cargo", "Dockerfile", "README", "docs", "manifests")):
                    self.assertNotIn("OWNER/", text, name)
            chart = check.yaml.safe_load(found["manifests/chart/Chart.yaml"])
            self.assertEqual(chart["home"], "https://github.com/Some-One/crownlabs")
            self.assertEqual((chart["version"], chart["appVersion"]), ("9.8.7", "9.8.7"))
            self.assertIn("/Some-One/crownlabs/v9.8.7/", chart["icon"])
            # `make generate` and the builds of a release do not change the lock file (`--locked`).
            locked = {package["name"]: package["version"] for package in check.tomllib.loads(found["Cargo.lock"])["package"]}
            self.assertEqual(locked["crownlabs"], "9.8.7")
            self.assertIn('image.source="https://github.com/Some-One/crownlabs"', found["images/ssh-bastion/Dockerfile"])
            self.assertIn("crownlabs/crownlabs:9.8.7", found["manifests/30-deployment.yaml"])
            # Names of images have small letters.
            self.assertIn("ghcr.io/some-one/crownlabs/crownlabs:9.8.7", found["docs/installing.md"])
            self.assertIn("Some-One/crownlabs", found[".github/CODEOWNERS"])
            for name, text in pinned("other").items():
                self.assertNotIn("some-one/", text.lower(), name)

    def test_an_invalid_account_is_refused(self):
        done = subprocess.run([ROOT / "images/pin.sh", "names"], env={**os.environ, "OWNER": "a/b"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("OWNER is 'a/b': expected the name of an account", done.stderr)


if __name__ == "__main__":
    unittest.main()
