"""The checks of the values for images, pods and monitoring."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import yaml

from configuration import BASTION, EVERYTHING, MAIN, OF_BASTION
from render import CHART, NAMESPACE, ROOT, by_key, configuration, helm, pods, rendered, template, text

sys.path.append(str(ROOT / "tests/book"))
import pages  # noqa: E402
import published  # noqa: E402

IN_DAEMON = {"bastion": {"enabled": True, "inDaemon": True}}
DAEMON = f"Deployment {NAMESPACE}/crownlabs"
DIGESTS = {name: f"sha256:{letter * 64}" for name, letter in (("crownlabs", "a"), ("ssh-bastion", "b"), ("img-exporter", "c"), ("uploader", "e"))}


def images(source):
    """The images of the pods, and the images of the Jobs for snapshots and submissions."""
    found = {c["image"] for _, pod in pods(source).values() for c in pod["spec"]["containers"]}
    loops = configuration(by_key(source)[MAIN])["controllers"]
    return found | {loops["snapshot"]["containerExportImg"], loops["submission"]["uploaderImage"]}


class Images(unittest.TestCase):
    def test_a_registry_applies_to_all_images(self):
        names = {f"mirror.example.com/x/crownlabs/{name}:0.1.0" for name in DIGESTS}
        self.assertEqual(images(rendered(BASTION, {"global": {"imageRegistry": "mirror.example.com/x"}})), names)
        self.assertEqual(images(rendered(BASTION)), {f"crownlabs/{name}:0.1.0" for name in DIGESTS})
        own = {"config": {"controllers": {"snapshot": {"containerExportImg": "own:1"}}}}
        self.assertEqual(configuration(by_key(rendered(own))[MAIN])["controllers"]["snapshot"]["containerExportImg"], "own:1")

    def test_the_chart_of_a_release_names_its_images_by_digest(self):
        with tempfile.TemporaryDirectory() as folder:
            chart = shutil.copytree(CHART, Path(folder, "chart"))
            pin = lambda lines: subprocess.run(
                [ROOT / "images/pin.sh", "digests", chart, "ghcr.io/owner/crownlabs"], input=lines, text=True, capture_output=True,
            )
            done = pin("".join(f"{name} {digest}\n" for name, digest in DIGESTS.items()))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(helm("package", chart, "-d", folder).returncode, 0)
            [package] = Path(folder).glob("*.tgz")
            found = rendered(BASTION, {"bastion": {"inDaemon": False}}, chart=package)
            pinned = {f"ghcr.io/owner/crownlabs/{name}@{digest}" for name, digest in DIGESTS.items()}
            self.assertEqual(images(found), pinned)
            listed = yaml.safe_load(yaml.safe_load(Path(chart, "Chart.yaml").read_text())["annotations"]["artifacthub.io/images"])
            self.assertEqual({image["image"] for image in listed}, pinned)
            # In a private registry they have the same digests.
            mirror = {"global": {"imageRegistry": "mirror.example.com"}}
            wanted = {f"mirror.example.com/crownlabs/{name}@{digest}" for name, digest in DIGESTS.items()}
            self.assertEqual(images(rendered(BASTION, mirror, chart=package)), wanted)
            self.assertIn("no place for the digest of other", pin(f"other sha256:{'d' * 64}\n").stderr)

    def test_every_pod_has_the_secrets_of_the_registry(self):
        for values in ([EVERYTHING], [CHART / "ci/one-deployment.yaml", {"imagePullSecrets": [{"name": "registry"}]}]):
            found = rendered(*values, hooks=True)
            specs = [pod["spec"] for _, pod in pods(found).values()] + [d["spec"] for d in found if d["kind"] == "Pod"]
            self.assertGreater(len(specs), 3)
            for spec in specs:
                self.assertEqual(spec["imagePullSecrets"], [{"name": "registry"}])


class Pods(unittest.TestCase):
    def test_the_pod_of_helm_test_is_restricted_and_belongs_to_no_service(self):
        self.assertNotIn("Pod", {document["kind"] for document in rendered()})
        found = rendered(hooks=True)
        [pod] = [document for document in found if document["kind"] == "Pod"]
        self.assertEqual(pod["metadata"]["annotations"]["helm.sh/hook"], "test")
        [container] = pod["spec"]["containers"]
        context = {**pod["spec"]["securityContext"], **container["securityContext"]}
        self.assertEqual((context["runAsNonRoot"], context["seccompProfile"]), (True, {"type": "RuntimeDefault"}))
        self.assertEqual((context["allowPrivilegeEscalation"], context["capabilities"]), (False, {"drop": ["ALL"]}))
        self.assertIs(pod["spec"]["automountServiceAccountToken"], False)
        for document in found:
            selector = document.get("spec", {}).get("selector", {}) if document["kind"] == "Service" else {}
            if selector:
                self.assertFalse(selector.items() <= pod["metadata"]["labels"].items(), document["metadata"]["name"])

    def test_probes_network_and_names_follow_the_values(self):
        pod = pods(rendered(EVERYTHING))[DAEMON][1]["spec"]
        [container] = pod["containers"]
        self.assertEqual(container["livenessProbe"], {"httpGet": {"path": "/healthz", "port": "health"}, "periodSeconds": 10, "timeoutSeconds": 5})
        self.assertEqual(container["readinessProbe"]["periodSeconds"], 2)
        self.assertEqual((pod["hostNetwork"], pod["dnsPolicy"]), (True, "ClusterFirstWithHostNet"))
        self.assertEqual(pod["dnsConfig"], {"options": [{"name": "ndots", "value": "1"}]})
        self.assertEqual(pod["hostAliases"][0]["hostnames"], ["auth.example.com"])
        found = by_key(rendered({"hostNetwork": True, "namespace": {"create": True}}))
        # In the network of a node its ports are taken: there is no room for a second pod during a
        # rolling update.
        self.assertEqual(found[DAEMON]["spec"]["strategy"]["rollingUpdate"], {"maxSurge": 0, "maxUnavailable": 1})
        labels = found[f"Namespace /{NAMESPACE}"]["metadata"]["labels"]
        self.assertEqual(labels["pod-security.kubernetes.io/enforce"], "privileged")
        plain = pods(rendered())[DAEMON][1]["spec"]
        self.assertFalse({"hostNetwork", "dnsPolicy", "dnsConfig", "hostAliases"} & set(plain))

    def test_extra_objects_are_rendered(self):
        self.assertIn(f"ConfigMap {NAMESPACE}/crownlabs-own", by_key(rendered(EVERYTHING)))

    def test_openshift_assigns_users_and_admits_privileged_pods(self):
        shift = {"openshift": {"enabled": True}}
        nodes = {"instanceMetrics": {"enabled": True}, "podNetworks": {"enabled": True}}
        found = by_key(rendered(shift, nodes, BASTION, hooks=True))
        pod = found[f"Deployment {NAMESPACE}/crownlabs"]["spec"]["template"]["spec"]
        for spec in (pod, found[f"Pod {NAMESPACE}/crownlabs-test"]["spec"]):
            users = json.dumps([spec["securityContext"], spec["containers"][0]["securityContext"]])
            self.assertNotRegex(users, "runAsUser|runAsGroup|fsGroup")
            self.assertIs(spec["securityContext"]["runAsNonRoot"], True)
        scc = lambda source: {
            (d["subjects"][0]["namespace"], d["subjects"][0]["name"]): d["roleRef"]["name"]
            for d in source.values() if d["metadata"]["name"].endswith("-scc")
        }
        privileged = "system:openshift:scc:privileged"
        parts = ("bastion", "instance-metrics", "pod-networks")
        self.assertEqual(scc(found), {(f"crownlabs-{part}", f"crownlabs-{part}"): privileged for part in parts})
        quiet = {"bastion": {"config": {"controllers": {"sshTracker": {"enabled": False}}}}}
        bastion = ("crownlabs-bastion", "crownlabs-bastion")
        self.assertEqual(scc(by_key(rendered(shift, BASTION, quiet))), {bastion: "system:openshift:scc:nonroot-v2"})
        daemon = (NAMESPACE, "crownlabs")
        self.assertEqual(scc(by_key(rendered(shift, IN_DAEMON))), {daemon: privileged})
        self.assertEqual(scc(by_key(rendered(shift, {"hostNetwork": True}))), {daemon: "system:openshift:scc:hostnetwork-v2"})
        self.assertEqual(scc(by_key(rendered(nodes, BASTION))), {})


class OneDeployment(unittest.TestCase):
    """The bastion in the pods of the daemon."""

    def test_there_is_one_deployment_with_all_loops(self):
        found = by_key(rendered(IN_DAEMON))
        self.assertEqual([key for key in found if key.startswith("Deployment")], [DAEMON])
        self.assertEqual([key for key in found if "crownlabs-bastion/" in key], [], "there is no other namespace")
        loops = configuration(found[MAIN])["controllers"]
        for loop in ("bastion", "sshTracker", "webSsh"):
            self.assertIs(loops[loop]["enabled"], True)
        # Machines accept the key that terminals log in with.
        key = loops["webSsh"]["privateKeyFile"]
        self.assertEqual(loops["instance"]["websshMasterKeyFile"], f"{key}.pub")
        separate = configuration(by_key(rendered(BASTION))[OF_BASTION])["controllers"]
        self.assertEqual(key, separate["webSsh"]["privateKeyFile"])
        own = configuration(by_key(rendered(IN_DAEMON, {"bastion": {"config": {"controllers": {"sshTracker": {"snaplen": 200}}}}}))[MAIN])
        self.assertEqual(own["controllers"]["sshTracker"], {"enabled": True, "snaplen": 200})

    def test_the_server_is_configured_as_in_separate_pods(self):
        spec = lambda values, name: pods(rendered(values))[name][1]["spec"]
        one, separate = spec(IN_DAEMON, DAEMON), spec(BASTION, "Deployment crownlabs-bastion/crownlabs-bastion")
        self.assertEqual(one["containers"][1], separate["containers"][1])
        volumes = lambda pod: [volume for volume in pod["volumes"] if volume["name"] != "configuration"]
        self.assertEqual(volumes(one), volumes(separate))
        mounts = lambda pod: pod["containers"][0]["volumeMounts"]
        self.assertEqual(mounts(one), mounts(separate))
        for field in ("automountServiceAccountToken", "terminationGracePeriodSeconds"):
            self.assertEqual(one[field], separate[field])

    def test_the_daemon_is_root_with_one_capability_if_it_captures_and_else_restricted(self):
        namespace = {"namespace": {"create": True}}
        found = by_key(rendered(IN_DAEMON, namespace))
        [daemon, server] = found[DAEMON]["spec"]["template"]["spec"]["containers"]
        context = daemon["securityContext"]
        self.assertEqual(context["capabilities"], {"drop": ["ALL"], "add": ["NET_RAW"]})
        self.assertEqual((context["runAsUser"], context["runAsNonRoot"]), (0, False))
        labels = found[f"Namespace /{NAMESPACE}"]["metadata"]["labels"]
        self.assertEqual(labels["pod-security.kubernetes.io/enforce"], "privileged")
        self.assertEqual(labels["crownlabs.polito.it/allow-instance-access"], "true")
        quiet = {"bastion": {"config": {"controllers": {"sshTracker": {"enabled": False}}}}}
        found = by_key(rendered(IN_DAEMON, quiet, namespace))
        pod = found[DAEMON]["spec"]["template"]["spec"]
        self.assertEqual(pod["securityContext"]["fsGroup"], 20000)
        self.assertEqual(pod["securityContext"]["runAsNonRoot"], True)
        for container in pod["containers"]:
            self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})
        labels = found[f"Namespace /{NAMESPACE}"]["metadata"]["labels"]
        self.assertEqual(labels["pod-security.kubernetes.io/enforce"], "restricted")

    def test_its_account_has_the_rights_of_the_loops(self):
        found = by_key(rendered(IN_DAEMON))
        account = {"kind": "ServiceAccount", "name": "crownlabs", "namespace": NAMESPACE}
        for binding in ("ClusterRoleBinding /crownlabs-bastion", f"RoleBinding {NAMESPACE}/crownlabs-bastion"):
            self.assertEqual(found[binding]["subjects"], [account])
        separate = by_key(rendered(BASTION))
        self.assertEqual(found["ClusterRole /crownlabs-bastion"]["rules"], separate["ClusterRole /crownlabs-bastion"]["rules"])
        role = found[f"Role {NAMESPACE}/crownlabs-bastion"]["rules"]
        self.assertEqual(role, separate["Role crownlabs-bastion/crownlabs-bastion"]["rules"])

    def test_port_22_reaches_only_machines_and_the_other_loops_reach_their_servers(self):
        found = by_key(rendered(IN_DAEMON))
        [machines] = found[f"NetworkPolicy {NAMESPACE}/crownlabs-bastion"]["spec"]["egress"]
        self.assertEqual(machines["ports"], [{"port": 22}])
        self.assertEqual(machines["to"][0]["podSelector"]["matchExpressions"][0]["key"], "crownlabs.polito.it/instance")
        [_, servers] = found[f"NetworkPolicy {NAMESPACE}/crownlabs"]["spec"]["egress"]
        self.assertEqual(servers["ports"], [{"port": 443}, {"port": 6443}])
        # If only the policy of the bastion exists, it must allow the connections of the other loops.
        alone = by_key(rendered(IN_DAEMON, {"networkPolicy": {"enabled": False}}))
        [_, others] = alone[f"NetworkPolicy {NAMESPACE}/crownlabs-bastion"]["spec"]["egress"]
        open_ports = {
            port for rule in others["ports"] if rule.get("protocol") != "UDP" for port in range(rule["port"], rule["endPort"] + 1)
        }
        self.assertEqual(set(range(1, 65536)) - open_ports, {22})
        ingress = found[f"NetworkPolicy {NAMESPACE}/crownlabs"]["spec"]["ingress"]
        [everybody] = [rule for rule in ingress if "from" not in rule]
        self.assertLessEqual({"ssh", "web-ssh"}, {port["port"] for port in everybody["ports"]})
        # There is only one ingress policy, so that no other policy blocks the webhooks.
        of_ingress = [d for d in found.values() if d["kind"] == "NetworkPolicy" and "Ingress" in d["spec"]["policyTypes"]]
        self.assertEqual(len(of_ingress), 1)

    def test_conflicting_values_are_rejected(self):
        for values, expected in (
            ({"hostNetwork": True}, "hostNetwork: with bastion.inDaemon"),
            ({"bastion": {"config": {"resync": {"min": "1h"}}}}, "set resync below config"),
            ({"bastion": {"config": {"controllers": {"tenant": {"enabled": False}}}}}, "set tenant below config"),
            ({"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}, "every metric would be there twice"),
        ):
            with self.subTest(values):
                done = template(IN_DAEMON, values)
                self.assertNotEqual(done.returncode, 0, "it is accepted")
                self.assertIn(expected, done.stderr)


class Watching(unittest.TestCase):
    def test_a_service_monitor_finds_the_metrics_of_each_pod(self):
        parts = {"instanceMetrics": {"enabled": True}, "podNetworks": {"enabled": True}, "serviceMonitor": {"enabled": True}}
        found = rendered(BASTION, parts)
        monitors = [document for document in found if document["kind"] == "ServiceMonitor"]
        self.assertEqual(len(monitors), 4)
        self.assertEqual([d for d in found if d["kind"] == "PodMonitor"], [])
        for monitor in monitors:
            with self.subTest(monitor["metadata"]["name"]):
                wanted = monitor["spec"]["selector"]["matchLabels"].items()
                namespace = monitor["metadata"]["namespace"]
                [service] = [
                    d for d in found
                    if d["kind"] == "Service" and d["metadata"]["namespace"] == namespace and wanted <= d["metadata"]["labels"].items()
                ]
                [endpoint], [port] = monitor["spec"]["endpoints"], service["spec"]["ports"]
                self.assertEqual((endpoint["port"], port["name"], port["targetPort"]), ("metrics", "metrics", "metrics"))
        quiet = template(parts, {"config": {"server": {"metrics": ""}}})
        self.assertIn("serviceMonitor.enabled: there are no metrics: config.server.metrics is empty", quiet.stderr)

    def test_each_alert_has_its_section_of_the_page(self):
        page = (ROOT / "docs/alerts.md").read_text()
        sections = {f"#{heading.lower()}" for heading in re.findall(r"^## (Crownlabs\w+)$", page, re.MULTILINE)}
        [rule] = [document for document in rendered(EVERYTHING) if document["kind"] == "PrometheusRule"]
        urls = [alert["annotations"]["runbook_url"] for group in rule["spec"]["groups"] for alert in group["rules"]]
        account, version = published.names((CHART / "Chart.yaml").read_text())
        base = f"https://github.com/{account}/crownlabs/blob/v{version}/docs/alerts.md"
        self.assertEqual(sorted(urls), sorted(f"{base}{section}" for section in sections))
        files = pages.tracked(ROOT)
        for url in urls:
            self.assertIsNone(published.fault(url, (account, version), files, lambda name: (ROOT / name).read_text()))

    def test_usage_is_read_only_from_the_bastion_of_this_release(self):
        def queries(*values):
            given = {"config": {"integrations": {"prometheus": {"url": "http://prometheus:9090"}}}}
            made = configuration(by_key(rendered(given, *values))[MAIN])
            return made["integrations"]["prometheus"]["queries"]

        bastion = {"bastionSshAvailable": "sum(bastion_ssh_tracker_running)", "webSshAvailable": "count(bastion_web_ssh_sessions)"}
        self.assertEqual(queries(), {"bastionSshData": "", "webSshData": ""})
        self.assertEqual(queries(BASTION), bastion)
        self.assertEqual(queries(IN_DAEMON), bastion)
        few = {"bastion": {"config": {"controllers": {"webSsh": {"enabled": False}}}}}
        self.assertEqual(queries(BASTION, few), {"bastionSshAvailable": bastion["bastionSshAvailable"], "webSshData": ""})
        # Queries that the values set are kept.
        own = {"config": {"integrations": {"prometheus": {"queries": {"bastionSshAvailable": "up"}}}}}
        self.assertEqual(queries(own), {"bastionSshAvailable": "up", "webSshData": ""})
        self.assertNotIn("queries", text({"crds": {"install": False}}))
        metrics = (ROOT / "docs/reference/metrics.md").read_text()
        for query in bastion.values():
            self.assertIn(f"`{re.search(r'[(](.*)[)]', query)[1]}`", metrics)
