"""Helm 4 treats the chart as Helm 3 does."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import render
from render import CHART, by_key, documents, helm, template

HELM4 = os.environ.get("HELM4", "")
VALUES = [[], *([file] for file in sorted((CHART / "ci").glob("*.yaml")))]


@unittest.skipUnless(HELM4, "HELM4 is not set: tests/chart.sh sets it")
class Helm4(unittest.TestCase):
    def both(self, run):
        """The results with Helm 3 and with Helm 4."""
        with mock.patch.object(render, "HELM", HELM4):
            newer = run()
        return run(), newer

    def test_the_program_is_helm_4(self):
        older, newer = self.both(lambda: helm("version", "--short").stdout)
        self.assertRegex(older, r"^v3\.")
        self.assertRegex(newer, r"^v4\.")

    def test_the_objects_are_the_same(self):
        for values in VALUES:
            with self.subTest(values):
                older, newer = self.both(lambda: template(*values, hooks=True))
                self.assertEqual(newer.returncode, 0, newer.stderr)
                self.assertEqual(by_key(documents(newer.stdout)), by_key(documents(older.stdout)))

    def test_the_chart_is_linted_and_packaged(self):
        with mock.patch.object(render, "HELM", HELM4), tempfile.TemporaryDirectory() as folder:
            options = ["--strict", "--kube-version", render.KUBERNETES, "-f", render.values_file(render.NETWORK)]
            done = helm("lint", CHART, *options)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            done = helm("package", CHART, "-d", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            [package] = Path(folder).iterdir()
            self.assertEqual(template(chart=package).returncode, 0)

    def test_both_refuse_the_same_values(self):
        wrong = {"config": {"controllers": {"instance": {"concurrency": "many"}}}}
        for done in self.both(lambda: template(wrong)):
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("concurrency", done.stderr)
