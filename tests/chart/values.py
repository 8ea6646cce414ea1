"""Values of older charts, values without sections, and the hook that checks the configuration."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

from configuration import EVERYTHING, crownlabs
from render import CHART, NAMESPACE, ROOT, by_key, comparable, rendered, template

VALUES = "manifests/chart/values.yaml"
# Mappings whose keys are not fixed.
FREE = {"config", "resources", "podSecurityContext", "securityContext", "labels", "annotations"}


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def earlier():
    """The distinct values of the charts in the history, each with its commit."""
    if not (ROOT / ".git").exists():
        raise unittest.SkipTest("this is not a clone: the values of earlier charts are in the history")
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        missing = "the history is missing: run `git fetch --unshallow` (in a workflow: fetch-depth: 0)"
        raise AssertionError(missing) if os.environ.get("CI") else unittest.SkipTest(missing)
    found = {}
    for commit in git("log", "--format=%H", "--", VALUES).split():
        found[git("rev-parse", f"{commit}:{VALUES}")] = commit
    return [(commit[:8], git("show", f"{commit}:{VALUES}")) for commit in found.values()]


def sections(values):
    """The sections of values: mappings with fixed keys."""
    return {key: inner for key, inner in values.items() if isinstance(inner, dict) and inner and key not in FREE}


class Values(unittest.TestCase):
    maxDiff = None

    def same(self, one, other):
        one, other = by_key(one), by_key(other)
        self.assertEqual(set(one), set(other))
        for key in one:
            with self.subTest(key):
                self.assertEqual(comparable(one[key]), comparable(other[key]))

    def test_the_values_of_every_earlier_chart_are_rendered(self):
        """`helm upgrade --reuse-values` replaces the values of the chart by those of the installed chart."""
        charts = earlier()
        self.assertGreater(len(charts), 10)
        with tempfile.TemporaryDirectory() as folder:
            chart = Path(shutil.copytree(CHART, Path(folder, "chart")))
            for commit, values in charts:
                (chart / "values.yaml").write_text(values)
                with self.subTest(commit):
                    done = template(chart=chart)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"Deployment {NAMESPACE}/crownlabs", by_key(yaml.safe_load_all(done.stdout)))

    def test_a_section_that_is_null_has_its_defaults(self):
        defaults = sections(yaml.safe_load((CHART / "values.yaml").read_text()))
        client_ca = {"secrets": {"webhookClientCa": {"name": "client-ca"}}}
        null = {key: None for key in defaults if key != "secrets"}
        self.assertGreater(len(null), 20)
        self.same(rendered(client_ca, null, network={}), rendered(client_ca, network={}))
        # The sections of sections, where all of them are used.
        parts = {key: {"enabled": True} for key in ("bastion", "instanceMetrics", "podNetworks", "serviceMonitor")}
        inner = {key: {name: None for name in sections(of)} for key, of in defaults.items() if sections(of)}
        self.assertGreater(len(inner), 5)
        self.same(rendered(inner, parts), rendered(parts))
        self.same(rendered({"config": None}), rendered())
        rendered({"config": {"log": None, "controllers": None, "server": None}})

    def test_a_mapping_without_fixed_keys_is_taken_as_it_is(self):
        values = {"podSecurityContext": {"runAsUser": None, "runAsGroup": None}, "resources": {"limits": None}}
        pod = by_key(rendered(values))[f"Deployment {NAMESPACE}/crownlabs"]["spec"]["template"]["spec"]
        self.assertEqual(pod["securityContext"], {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})
        self.assertNotIn("limits", pod["containers"][0]["resources"])

    def test_every_file_completes_the_values_first(self):
        files = [*CHART.glob("templates/**/*.yaml"), CHART / "templates/NOTES.txt"]
        self.assertGreater(len(files), 15)
        for file in files:
            with self.subTest(file.name):
                self.assertTrue(file.read_text().startswith('{{- include "crownlabs.complete" . -}}\n'))


class Hook(unittest.TestCase):
    def hooks(self, *values):
        found = rendered(*values, hooks=True)
        named = [document for document in found if document["metadata"]["name"] == "crownlabs-check"]
        return {document["kind"]: document for document in named}

    def test_a_job_without_secrets_and_rights_runs_before_the_release_changes(self):
        found = self.hooks(EVERYTHING)
        annotations = {kind: document["metadata"]["annotations"] for kind, document in found.items()}
        for kind in ("ConfigMap", "Job"):
            self.assertEqual(annotations[kind]["helm.sh/hook"], "pre-install,pre-upgrade")
            self.assertEqual(annotations[kind]["helm.sh/hook-delete-policy"], "before-hook-creation,hook-succeeded")
        self.assertEqual(annotations["ConfigMap"]["helm.sh/hook-weight"], "-1", "it exists before the Job")
        self.assertEqual(annotations["Job"]["helm.sh/hook-output-log-policy"], "hook-failed")
        # Helm deletes neither a Job that fails nor one without a result.
        job = found["Job"]["spec"]
        self.assertTrue(0 < job["activeDeadlineSeconds"] and 0 < job["ttlSecondsAfterFinished"])
        pod = found["Job"]["spec"]["template"]
        spec = pod["spec"]
        self.assertIs(spec["automountServiceAccountToken"], False)
        self.assertNotIn("serviceAccountName", spec, "the account of the release does not exist yet")
        self.assertEqual(spec["volumes"], [{"name": "configuration", "configMap": {"name": "crownlabs-check"}}])
        for container in spec["containers"]:
            context = {**spec["securityContext"], **container["securityContext"]}
            self.assertEqual((context["runAsNonRoot"], context["seccompProfile"]), (True, {"type": "RuntimeDefault"}))
            self.assertEqual((context["allowPrivilegeEscalation"], context["capabilities"]), (False, {"drop": ["ALL"]}))
        for document in rendered(EVERYTHING):
            if document["kind"] in ("Service", "NetworkPolicy"):
                selector = document["spec"].get("selector") or document["spec"]["podSelector"]["matchLabels"]
                self.assertFalse(selector.items() <= pod["metadata"]["labels"].items(), document["metadata"]["name"])

    def test_it_checks_the_configuration_of_every_part(self):
        found = by_key(rendered(EVERYTHING))
        installed = {
            key.split("/")[1].removeprefix("crownlabs").removeprefix("-") or "config": document["data"]["crownlabs.yaml"]
            for key, document in found.items() if "crownlabs.yaml" in document.get("data", {})
        }
        hooks = self.hooks(EVERYTHING)
        data = hooks["ConfigMap"]["data"]
        self.assertEqual(data, {f"{part}.yaml": config for part, config in installed.items()})
        self.assertEqual(len(data), 6)
        checked = [container["args"] for container in hooks["Job"]["spec"]["template"]["spec"]["containers"]]
        self.assertEqual(sorted(checked), sorted(["config", "check", f"/etc/crownlabs/{file}"] for file in data))

    def test_it_rejects_what_the_schema_cannot_express(self):
        for config, expected in (
            ({"resync": {"min": "3h"}}, "resync.min is 3h and resync.max is 2h"),
            ({"controllers": {"publicExposure": {"ipPool": ["10.0.0.9-10.0.0.1"]}}}, "ipPool"),
        ):
            with self.subTest(config), tempfile.TemporaryDirectory() as folder:
                [text] = self.hooks({"config": config})["ConfigMap"]["data"].values()
                file = Path(folder, "config.yaml")
                file.write_text(text)
                done = crownlabs("config", "check", file)
                self.assertNotEqual(done.returncode, 0, "it is accepted")
                self.assertIn(expected, done.stdout + done.stderr)
