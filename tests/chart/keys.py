"""The configuration of each Deployment and DaemonSet: all keys that its loops read, and no other."""

import json
import re
import unittest

import yaml

from render import CHART, NAMESPACE, ROOT, by_key, configuration, rendered

KEYS = yaml.safe_load((CHART / "files/keys.yaml").read_text())
DEFAULTS = yaml.safe_load((ROOT / "config/crownlabs.yaml").read_text())
# The ConfigMaps, each with the loops of its pods. The daemon has all other loops, and the webhooks.
SEPARATE = {
    "crownlabs-bastion/crownlabs-bastion": ["bastion", "sshTracker", "webSsh"],
    f"{NAMESPACE}/crownlabs-dashboard": ["dashboard"],
    f"{NAMESPACE}/crownlabs-login": ["login"],
    "crownlabs-instance-metrics/crownlabs-instance-metrics": ["instanceMetrics"],
    "crownlabs-pod-networks/crownlabs-pod-networks": ["podConfigNode"],
}
MAIN = f"{NAMESPACE}/crownlabs"
PARTS = {
    "config": {"controllers": {"instance": {"access": {"mode": "daemon"}}}},
    "bastion": {"enabled": True},
    "dashboard": {"enabled": True, "host": "labs.example.com", "secret": {"name": "dashboard"}, "ca": {"name": "ca"}},
    "instanceMetrics": {"enabled": True},
    "podNetworks": {"enabled": True},
    "networkPolicy": {"enabled": False},
}
# The keys of separate pods that the chart derives from other values, or that their section of values.yaml sets.
SET = {
    "controllers.bastion.hostKeys.namespace", "controllers.bastion.webSshKey.namespace", "controllers.webSsh.privateKeyFile",
    "controllers.dashboard.publicUrl", "controllers.dashboard.clientSecretFile", "controllers.dashboard.sessionKeyFile",
    "controllers.dashboard.caFile", "controllers.dashboard.sshByName", "controllers.dashboard.webSshUrl", "controllers.dashboard.peerDesktops", "controllers.login.sessionKeyFile", "controllers.login.hostKeyFile", "controllers.login.peersListen",
    "controllers.instanceMetrics.runtimeEndpoint",
    "controllers.instanceMetrics.connectionTimeout", "controllers.instanceMetrics.updatePeriod",
    "controllers.podConfigNode.runtimeEndpoint", "controllers.podConfigNode.allowedBridges", "controllers.podConfigNode.resync",
}
# The chart rejects other values of these keys, or renders no pods of the login with another access mode. With the exam
# agent, it adds a namespace to controllers.instanceMetrics.
FIXED = {"apiVersion", "kind", "leaderElection.enabled", "leaderElection.namespace", "controllers.examAgent.enabled"} | {
    "controllers.instance.access.mode",
} | {
    f"controllers.{loop}.enabled" for loops in SEPARATE.values() for loop in loops
}


def is_in(key, section):
    return key == section or key.startswith(f"{section}.")


def leaves(node, schema, path=()):
    """The keys of a configuration that are not sections, with their values."""
    if "properties" not in schema:
        return {".".join(path): node}
    return {key: value for name, inner in node.items() for key, value in leaves(inner, schema["properties"][name], (*path, name)).items()}


def tree(values):
    """The configuration with these keys."""
    root = {}
    for key, value in values.items():
        *sections, last = key.split(".")
        node = root
        for section in sections:
            node = node.setdefault(section, {})
        node[last] = value
    return root


def another(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [] if value else ["other"]
    if isinstance(value, dict):
        return {"example.com/other": "other"}
    listen = re.fullmatch(r"(.*:)(\d+)", value)
    return f"{listen[1]}{int(listen[2]) + 100}" if listen else "other"


class Keys(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.schema = json.loads((ROOT / "config/crownlabs.schema.json").read_text())
        self.defaults = leaves(DEFAULTS, self.schema)

    def configurations(self, *values):
        """The keys of each configuration of the release."""
        found = by_key(rendered(PARTS, *values, validated=False))
        maps = {key.removeprefix("ConfigMap "): document for key, document in found.items() if "crownlabs.yaml" in document.get("data", {})}
        return {name: leaves(configuration(document), self.schema) for name, document in maps.items()}

    def read(self):
        """The entries of keys.yaml for each ConfigMap."""
        of_main = set(KEYS) - {loop for loops in SEPARATE.values() for loop in loops}
        return {MAIN: of_main, **{name: {"common", *loops} for name, loops in SEPARATE.items()}}

    def test_every_key_that_a_loop_reads_arrives_and_nothing_else_does(self):
        given = {key: another(value) for key, value in self.defaults.items() if key not in FIXED}
        self.assertEqual([key for key, value in given.items() if value == self.defaults[key]], [])
        self.assertGreater(len(given), 150)
        found = self.configurations({"config": tree(given)})
        self.assertEqual(set(found), set(self.read()))
        off = {f"controllers.{loop}.enabled": False for loop, keys in DEFAULTS["controllers"].items() if keys["enabled"]}
        for name, entries in self.read().items():
            sections = [section for entry in entries for section in KEYS[entry]]
            is_read = lambda key: any(is_in(key, section) for section in sections)
            is_set = lambda key: name != MAIN and key in SET
            with self.subTest(name):
                wanted = {key: value for key, value in given.items() if is_read(key) and not is_set(key)}
                self.assertGreater(len(wanted), 3)
                self.assertEqual({key: found[name].get(key) for key in wanted}, wanted)
                others = {key: value for key, value in found[name].items() if not is_read(key)}
                # The other loops are off, and so is the election.
                self.assertEqual(others, {} if name == MAIN else {"leaderElection.enabled": False, **off})

    def test_every_loop_has_pods(self):
        entries = [entry for entries in self.read().values() for entry in entries if entry not in ("common", "process", "webhook")]
        self.assertEqual(sorted(entries), sorted(DEFAULTS["controllers"]))

    def test_a_key_of_the_section_takes_precedence_and_one_that_is_not_read_is_left_out(self):
        size, other = "controllers.tenant.myDrive.size", "controllers.tenant.myDrive.storageClassName"
        own = {size: "7Gi", "server.metrics": "127.0.0.1:9999", other: "fast", "controllers.dashboard.sshHost": "ssh.example.com"}
        main = {size: "5Gi", "server.metrics": ":7777", "controllers.dashboard.sshHost": "main.example.com"}
        name = f"{NAMESPACE}/crownlabs-dashboard"
        found = self.configurations({"config": tree(main), "dashboard": {"config": tree(own)}})
        expected = own | {other: None}
        self.assertEqual({key: found[name].get(key) for key in own}, expected)
        self.assertEqual({key: found[MAIN].get(key) for key in main}, main | {"controllers.dashboard.sshHost": None})
        # The addresses of one pod do not apply to another.
        [found] = [self.configurations({"config": tree(main)})[name]]
        self.assertEqual({key: found.get(key) for key in main}, main | {"server.metrics": None})
