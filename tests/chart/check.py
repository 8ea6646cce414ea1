#!/usr/bin/env python3
"""The checks of `tests/chart.sh`."""

import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

import yaml

import configuration
import render
import table
from configuration import KEYCLOAK
from render import CHART, NAMESPACE, ROOT, by_key, cleaned, comparable, documents, helm, rendered, rights, template, text

CI = CHART / "ci"
SETS = {"default": [], "plain": [CI / "plain.yaml"], "everything": [CI / "everything.yaml"], "nothing": [CI / "nothing.yaml"],
        "one deployment": [CI / "one-deployment.yaml"]}
BASTION = {"bastion": {"enabled": True}}
PODS = {"podNetworks": {"enabled": True}}
EXAMS = {"config": {"controllers": {"examAgent": {"enabled": True, "namespace": "crownlabs-exam"}}}}
ROLE = "ClusterRole /crownlabs-controller-manager"
POLICY = {"resource": "securitypolicies", "template": {
    "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy",
    "spec": {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "${route}"}]}}}
SELECTOR = {"crownlabs.polito.it/selector": "crownlabs.polito.it/operator-selector=production"}
BASE = ROOT / "manifests/kustomize/base"


HEAD = "# Rendered from manifests/chart by `make chart`; do not edit.\n"
# Plain files that contain only the objects that the chart adds with these values, each in its
# folder.
ADDED = {
    "instance-metrics": {"instanceMetrics": {"enabled": True}},
    "pod-networks": PODS,
}


class Dumper(yaml.SafeDumper):
    """Writes multi-line texts as blocks."""


def string(dumper, value):
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


Dumper.add_representer(str, string)


def dumped(found):
    """Objects as the chart renders them, without the labels that Helm uses to find its objects."""
    return yaml.dump_all([cleaned(document) for document in found], Dumper=Dumper, sort_keys=False, width=120)


def made():
    """The files generated from the chart, with their text."""
    plain = by_key(rendered(*SETS["plain"]))
    files = {BASE / "crownlabs.yaml": HEAD + dumped(plain[key] for key in sorted(plain))}
    for folder, values in ADDED.items():
        found = by_key(rendered(*SETS["plain"], values))
        added = [found[key] for key in sorted(found, key=lambda key: (not key.startswith("Namespace"), key)) if key not in plain]
        files[ROOT / f"manifests/{folder}/{folder}.yaml"] = HEAD + dumped(added)
    readme = CHART / "README.md"
    files[readme] = table.written(readme.read_text(), (CHART / "values.yaml").read_text())
    return files


# The loops that run unless a configuration turns them off.
ON = [name for name, loop in yaml.safe_load((ROOT / "config/crownlabs.yaml").read_text())["controllers"].items() if loop["enabled"]]


def off(*loops):
    return {"config": {"controllers": {loop: {"enabled": False} for loop in loops}}}


class Rendering(unittest.TestCase):
    def test_every_set_of_values_is_linted(self):
        for name, values in SETS.items():
            with self.subTest(name):
                options = [option for one in (render.NETWORK, *values) for option in ("-f", render.values_file(one))]
                done = helm("lint", "--strict", "--kube-version", render.KUBERNETES, CHART, *options)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_document_is_an_object_in_its_place(self):
        for name, values in SETS.items():
            for key, document in by_key(rendered(*values)).items():
                with self.subTest(name, object=key):
                    self.assertRegex(document["apiVersion"], r"^([a-z0-9.-]+/)?v1(beta1|alpha[12])?$")
                    namespaced = document["kind"] not in render.CLUSTER_SCOPED
                    self.assertEqual("namespace" in document["metadata"], namespaced)

    def test_the_names_of_a_long_release_are_valid(self):
        def labels(node):
            if isinstance(node, dict):
                for name, value in node.items():
                    if name in ("labels", "matchLabels"):
                        yield from value.values()
                    else:
                        yield from labels(value)
            elif isinstance(node, list):
                for item in node:
                    yield from labels(item)

        services = {"podMonitor": {"enabled": False}, "serviceMonitor": {"enabled": True}}
        long = {"nameOverride": "n" * 63}
        for values in ([], [services], [long], [services, long]):
            found = rendered(*SETS["everything"], *values, release="r" * 53, hooks=True)
            for document in found:
                name = document["metadata"]["name"]
                with self.subTest(values, object=render.key(document)):
                    self.assertLessEqual(len(name), 63 if document["kind"] in ("Service", "Job", "Pod") else 253)
                    self.assertLessEqual(max((len(value) for value in labels(document)), default=0), 63)
            self.assertEqual(len({render.key(document) for document in found}), len(found), "shortened names differ")

    def test_selectors_and_ports_match_the_pods(self):
        for name, values in SETS.items():
            found = rendered(*values)
            pods = render.pods(found)
            for document in found:
                spec, kind = document.get("spec", {}), document["kind"]
                if kind == "Service":
                    labels, ports = spec["selector"], [port["targetPort"] for port in spec["ports"]]
                elif kind == "NetworkPolicy":
                    labels = spec["podSelector"]["matchLabels"]
                    ports = [port["port"] for rule in spec.get("ingress", []) for port in rule["ports"]]
                elif kind == "PodMonitor":
                    labels, ports = spec["selector"]["matchLabels"], [end["port"] for end in spec["podMetricsEndpoints"]]
                elif kind == "ServiceMonitor":
                    labels = {k: v for k, v in spec["selector"]["matchLabels"].items() if k != "app.kubernetes.io/component"}
                    ports = [end["port"] for end in spec["endpoints"]]
                elif kind in ("PodDisruptionBudget", "Deployment", "DaemonSet"):
                    labels, ports = spec["selector"]["matchLabels"], []
                else:
                    continue
                with self.subTest(name, object=render.key(document)):
                    selected = [
                        pod for namespace, pod in pods.values()
                        if namespace == document["metadata"]["namespace"] and labels.items() <= pod["metadata"]["labels"].items()
                    ]
                    self.assertEqual(len(selected), 1)
                    open_ports = {port["name"] for c in selected[0]["spec"]["containers"] for port in c.get("ports") or []}
                    self.assertLessEqual(set(ports), open_ports)

    def test_the_package_renders_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            done = helm("package", CHART, "-d", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            [package] = Path(folder).iterdir()
            self.assertEqual(text(*SETS["everything"], chart=package), text(*SETS["everything"]))

    def test_the_version_equals_the_version_of_the_daemon(self):
        version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]), (version, version))

    def test_the_pod_is_restricted_and_the_bastion_adds_one_capability(self):
        pods = render.pods(rendered(*SETS["everything"]))
        manager = pods[f"Deployment {NAMESPACE}/crownlabs"][1]["spec"]
        [container] = manager["containers"]
        context = {**manager["securityContext"], **container["securityContext"]}
        self.assertTrue(context["runAsNonRoot"])
        self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertIs(context["allowPrivilegeEscalation"], False)
        self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
        self.assertLessEqual({name for volume in manager["volumes"] for name in volume}, {"name", "configMap", "secret"})
        bastion = pods["Deployment crownlabs-bastion/crownlabs-bastion"][1]["spec"]
        added = {c["name"]: c["securityContext"]["capabilities"].get("add", []) for c in bastion["containers"]}
        self.assertEqual(added, {"crownlabs": ["NET_RAW"], "sshd": []})
        quiet = {"bastion": {"enabled": True, "config": {"controllers": {"sshTracker": {"enabled": False}}}}}
        [daemon, _] = render.pods(rendered(quiet))["Deployment crownlabs-bastion/crownlabs-bastion"][1]["spec"]["containers"]
        self.assertEqual(daemon["securityContext"]["capabilities"], {"drop": ["ALL"]})
        self.assertTrue(daemon["securityContext"]["runAsNonRoot"])

    def test_the_pods_on_nodes_mount_only_one_folder_of_the_node(self):
        found = by_key(rendered(*SETS["everything"]))
        pod = found["DaemonSet crownlabs-instance-metrics/crownlabs-instance-metrics"]["spec"]["template"]["spec"]
        [container] = pod["containers"]
        self.assertIs(pod["automountServiceAccountToken"], False)
        self.assertEqual(container["securityContext"], {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsUser": 0, "runAsGroup": 0,
            "capabilities": {"drop": ["ALL"]},
        })
        self.assertEqual(pod["securityContext"], {"seccompProfile": {"type": "RuntimeDefault"}})
        self.assertLessEqual({name for volume in pod["volumes"] for name in volume}, {"name", "configMap", "hostPath"})
        [folder] = [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume]
        [mount] = [mount for mount in container["volumeMounts"] if mount["mountPath"] == folder]
        self.assertIs(mount["readOnly"], True)
        config = yaml.safe_load(found["ConfigMap crownlabs-instance-metrics/crownlabs-instance-metrics"]["data"]["crownlabs.yaml"])
        self.assertEqual(config["controllers"]["instanceMetrics"]["runtimeEndpoint"], f"unix://{folder}/crio.sock")
        self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & set(pod))
        bound = [document for key, document in found.items() if "Binding" in key and "instance-metrics" in json.dumps(document)]
        self.assertEqual(bound, [], "its account has no rights")
        self.assertEqual(found["Service crownlabs-instance-metrics/crownlabs-instance-metrics"]["spec"]["internalTrafficPolicy"], "Local")
        labels = found["Namespace /crownlabs-instance-metrics"]["metadata"]["labels"]
        self.assertEqual(labels["pod-security.kubernetes.io/enforce"], "privileged")
        policy = found["NetworkPolicy crownlabs-instance-metrics/crownlabs-instance-metrics"]["spec"]
        self.assertEqual((policy["policyTypes"], policy.get("egress")), (["Ingress", "Egress"], None))

    def test_the_pods_that_create_links_have_three_capabilities_and_a_separate_account(self):
        found = by_key(rendered(*SETS["everything"]))
        pod = found["DaemonSet crownlabs-pod-networks/crownlabs-pod-networks"]["spec"]["template"]["spec"]
        [container] = pod["containers"]
        self.assertEqual(container["securityContext"], {
            # The API server requires it with SYS_ADMIN.
            "allowPrivilegeEscalation": True, "readOnlyRootFilesystem": True, "runAsUser": 0, "runAsGroup": 0,
            "appArmorProfile": {"type": "Unconfined"},
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "SYS_ADMIN", "SYS_PTRACE"]},
        })
        self.assertEqual((pod["hostPID"], {"hostNetwork", "hostIPC"} & set(pod)), (True, set()))
        self.assertEqual([v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v], ["/run/crio"])
        [name] = container["env"]
        self.assertEqual((name["name"], name["valueFrom"]["fieldRef"]["fieldPath"]), ("NODE_NAME", "spec.nodeName"))
        config = yaml.safe_load(found["ConfigMap crownlabs-pod-networks/crownlabs-pod-networks"]["data"]["crownlabs.yaml"])
        self.assertEqual(config["controllers"]["podConfigNode"]["runtimeEndpoint"], "unix:///run/crio/crio.sock")
        self.assertEqual(config["leaderElection"], {"enabled": False, "namespace": NAMESPACE})
        # The records are in the namespace of the daemon, which watches them too.
        main = yaml.safe_load(found[f"ConfigMap {NAMESPACE}/crownlabs"]["data"]["crownlabs.yaml"])
        self.assertIs(main["controllers"]["podConfig"]["enabled"], True)
        account = {"kind": "ServiceAccount", "name": "crownlabs-pod-networks", "namespace": "crownlabs-pod-networks"}
        roles = {d["roleRef"]["name"]: d["kind"] for d in found.values() if account in d.get("subjects", [])}
        self.assertEqual(roles, {"crownlabs-pod-networks": "ClusterRoleBinding", "crownlabs-pod-networks-nodes": "RoleBinding"})
        self.assertEqual(rights(found["ClusterRole /crownlabs-pod-networks"]), {("", "nodes", "", "get")})
        verbs = {right[3] for right in rights(found[f"Role {NAMESPACE}/crownlabs-pod-networks-nodes"])}
        self.assertEqual(verbs, {"list", "watch", "create", "patch"})
        self.assertNotIn("DaemonSet crownlabs-pod-networks/crownlabs-pod-networks", by_key(rendered()))

    def test_the_policy_of_nodes_matches_the_security_model(self):
        page = (ROOT / "docs/security-model.md").read_text()
        blocks = [documents(block) for block in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
        account = "system:serviceaccount:crownlabs-pod-networks:crownlabs-pod-networks"
        [documented] = [block for block in blocks if account in json.dumps(block)]
        policies = lambda *values, **options: {
            key: cleaned(document)
            for key, document in by_key(rendered(*values, **options)).items()
            if document["kind"].startswith("ValidatingAdmissionPolicy")
        }
        found = policies(PODS)
        for document in found.values():
            labels = document["metadata"].pop("labels")
            self.assertEqual(labels["app.kubernetes.io/name"], "crownlabs-pod-networks")
        self.assertEqual(found, by_key(documented))
        off = {"podNetworks": {"admissionPolicy": {"enabled": False}}}
        self.assertEqual((policies(PODS, off), policies()), ({}, {}))
        # Another release has another account.
        other = {"podNetworks": {"namespace": "nodes"}}
        policy = policies(PODS, other, release="staging")["ValidatingAdmissionPolicy /staging-crownlabs-pod-networks"]
        [condition] = policy["spec"]["matchConditions"]
        self.assertIn('"system:serviceaccount:nodes:staging-crownlabs-pod-networks"', condition["expression"])

    def test_the_policy_of_nodes_needs_an_api_server_with_node_names_in_tokens(self):
        for version in ("1.31.9", "v1.30.0-eks-1234"):
            with self.subTest(version):
                done = template(PODS, kubernetes=version)
                self.assertNotEqual(done.returncode, 0, "it is accepted")
                self.assertIn("podNetworks.admissionPolicy.enabled: it needs Kubernetes 1.32", done.stderr)
                self.assertIn("upgrade the cluster, or set it to false", done.stderr)
                text(PODS, {"podNetworks": {"admissionPolicy": {"enabled": False}}}, kubernetes=version)
                text(kubernetes=version)
        for version in ("1.32.0", "v1.32.1-gke.1"):
            with self.subTest(version):
                text(PODS, kubernetes=version)

    def test_only_prometheus_reaches_the_metrics(self):
        everything = [*SETS["everything"], {"networkPolicy": {"prometheusNamespace": "watching"}}]
        found = rendered(*everything)
        pods = render.pods(found)
        policies = [document for document in found if document["kind"] == "NetworkPolicy"]
        for key, (namespace, pod) in pods.items():
            ports = {port["name"] for c in pod["spec"]["containers"] for port in c.get("ports") or []}
            self.assertIn("metrics", ports, key)
            of_pod = [
                policy["spec"] for policy in policies
                if policy["metadata"]["namespace"] == namespace and "Ingress" in policy["spec"]["policyTypes"]
                and policy["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
            ]
            rules = [rule for spec in of_pod for rule in spec.get("ingress", [])]
            with self.subTest(key):
                self.assertTrue(of_pod)
                [rule] = [rule for rule in rules if {"port": "metrics"} in rule["ports"]]
                self.assertEqual(rule, {
                    "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "watching"}}}],
                    "ports": [{"port": "metrics"}],
                })
                # No rule of a pod covers all of its ports, and all other ports are as open as
                # before.
                self.assertTrue(all(rule.get("ports") for rule in rules))
                self.assertLessEqual(ports, {port["port"] for rule in rules for port in rule["ports"]})
        # Unless the values say where Prometheus is, any pod may connect, and the notes say so.
        open_to_all = {"networkPolicy": {"prometheusNamespace": ""}}
        for policy in rendered(*SETS["everything"], open_to_all):
            if policy["kind"] == "NetworkPolicy" and "metrics" in json.dumps(policy["spec"].get("ingress")):
                [rule] = [rule for rule in policy["spec"]["ingress"] if {"port": "metrics"} in rule["ports"]]
                self.assertNotIn("from", rule)
        sentence = "every pod of the cluster can read them"
        self.assertIn(sentence, render.notes(render.NETWORK))
        self.assertNotIn(sentence, render.notes(render.NETWORK, {"networkPolicy": {"prometheusNamespace": "watching"}}))

    def test_the_daemon_connects_only_to_ports_that_the_configuration_names(self):
        policy = lambda *values: by_key(rendered(*values))[f"NetworkPolicy {NAMESPACE}/crownlabs"]["spec"]
        ports = lambda *values: [port["port"] for port in policy(*values)["egress"][1]["ports"]]
        of = lambda **integrations: {"config": {"integrations": integrations}}
        self.assertEqual(policy()["policyTypes"], ["Ingress", "Egress"])
        [dns, _] = policy()["egress"]
        self.assertEqual(dns, {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]})
        shift = policy({"openshift": {"enabled": True}})["egress"][0]["ports"]
        self.assertEqual({port["port"] for port in shift}, {53, 5353})
        mail = {"transport": "smtp", "host": "mail.example.com", "from": "labs@example.com"}
        registry = {"imageListName": "a", "url": "http://registry:5000", "registryName": "a", "tokenUrl": "https://auth:9443/token"}
        lists = lambda enabled: {"config": {"controllers": {"imageList": {"enabled": enabled, "registries": [registry]}}}}
        off = {"config": {"integrations": {"keycloak": {"enabled": False}}}}
        for values, expected in (
            ([], []),
            ([KEYCLOAK], [8443]),
            ([KEYCLOAK, off], []),
            ([of(prometheus={"url": "http://prometheus.monitoring"})], [80]),
            ([of(prometheus={"url": "http://[fd00::1]:9090/x"})], [9090]),
            ([of(mail=mail)], [465]),
            ([of(mail=mail | {"tls": "starttls"})], [587]),
            ([of(mail=mail | {"port": 2525})], [2525]),
            ([of(mail={"transport": "smtp"}), {"secrets": {"mailConfig": {"name": "mail"}}}], [25, 465, 587]),
            ([lists(True)], [5000, 9443]),
            ([lists(False)], []),
            ([{"config": {"controllers": {"termination": {"enabled": True}}}}], [80]),
            ([{"networkPolicy": {"egressPorts": [8080]}}], [8080]),
        ):
            with self.subTest(values):
                self.assertEqual(ports(*values), sorted([443, 6443, *expected]))
        self.assertEqual(ports({"networkPolicy": {"apiServerPorts": [16443]}}), [16443])
        # The policy of the bastion, which these pods have too, allows only machines on port 22.
        one = lambda **policy: {"bastion": {"enabled": True, "inDaemon": True, "networkPolicy": policy}}
        self.assertEqual(ports(one(enabled=True)), [443, 6443])
        self.assertEqual(ports(one(enabled=False)), [22, 443, 6443])

    def test_the_connections_of_the_daemon_can_be_narrowed_to_ranges(self):
        egress = lambda **policy: by_key(rendered({"networkPolicy": policy}))[f"NetworkPolicy {NAMESPACE}/crownlabs"]["spec"]["egress"]
        [_, servers] = egress()
        self.assertNotIn("to", servers)
        [dns, servers] = egress(egress=["10.0.0.0/8"], apiServers=["192.0.2.1/32"])
        self.assertNotIn("to", dns)
        self.assertEqual(servers["to"], [{"ipBlock": {"cidr": "10.0.0.0/8"}}, {"ipBlock": {"cidr": "192.0.2.1/32"}}])

    def test_without_keycloak_there_is_no_service_and_no_port_for_its_events(self):
        for values, exists in (([], False), ([KEYCLOAK], True)):
            found = by_key(rendered(*values))
            with self.subTest(values):
                self.assertEqual(f"Service {NAMESPACE}/crownlabs-keycloak-wh" in found, exists)
                self.assertEqual("keycloak-events" in json.dumps([*found.values()]), exists)

    def test_the_notes_name_the_exposure_for_new_sites_and_routes_without_login(self):
        routes = {"enabled": True, "parentRefs": [{"name": "labs", "namespace": "gateways"}]}
        of = lambda **keys: {"config": {"controllers": {"instance": {"gatewayApi": routes | keys}}}}
        guarded = of(policy=POLICY)
        new_site, open_to_all = "A new site should use the Gateway API", "any client of the Gateway can open every machine"
        for values, wanted in (({}, [new_site]), (of(), [open_to_all]), (of(authenticated=True), []), (guarded, []), (off("instance"), [])):
            with self.subTest(values):
                found = render.notes(render.NETWORK, values)
                self.assertEqual([sentence for sentence in (new_site, open_to_all) if sentence in found], wanted)

    def test_the_notes_name_the_label_for_the_bastion_and_the_effects_without_it(self):
        one = {"bastion": {"enabled": True, "inDaemon": True}}
        uncounted, label = "SSH connections are not counted", "allow-instance-access=true pod-security.kubernetes.io/enforce=privileged"
        prometheus = {"prometheus": {"url": "http://prometheus:9090"}}
        stops = {"config": {"controllers": {"inactivity": {"enabled": True, "notifications": False}}, "integrations": prometheus}}
        for values, wanted in (([], []), ([stops], [uncounted]), ([stops, BASTION], []), ([stops, one], [label])):
            with self.subTest(values):
                found = render.notes(render.NETWORK, *values)
                self.assertEqual([sentence for sentence in (uncounted, label) if sentence in found], wanted)

    def test_the_values_must_restrict_the_callers_of_the_webhooks(self):
        webhook = lambda *values: [
            rule for rule in by_key(rendered(*values, network={}))[f"NetworkPolicy {NAMESPACE}/crownlabs"]["spec"]["ingress"]
            if {"port": "webhook"} in rule["ports"]
        ]
        done = template(network={})
        self.assertNotEqual(done.returncode, 0, "it is accepted")
        for part in ("networkPolicy.podNetworks", "networkPolicy.apiServers", "secrets.webhookClientCa"):
            self.assertIn(part, done.stderr)
        policy = lambda **keys: {"networkPolicy": keys}
        servers, networks = policy(apiServers=["192.0.2.1/32"]), policy(podNetworks=["10.0.0.0/16", "fd00::/56"])
        self.assertEqual(webhook(servers)[0]["from"], [{"ipBlock": {"cidr": "192.0.2.1/32"}}])
        self.assertEqual(webhook(networks)[0]["from"], [
            {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/16"]}}, {"ipBlock": {"cidr": "::/0", "except": ["fd00::/56"]}},
        ])
        # The API server presents a certificate, or nothing calls the webhooks, or the administrator
        # has other policies.
        certificate = {"secrets": {"webhookClientCa": {"name": "client-ca"}}}
        self.assertEqual(webhook(certificate), [{"ports": [{"port": "webhook"}]}])
        self.assertEqual(webhook({"config": {"server": {"webhook": {"enabled": False}}}}), [])
        text(policy(enabled=False), network={})
        for values, expected in [
            (servers, "open to 192.0.2.1/32."),
            (networks, "open to all addresses outside 10.0.0.0/16, fd00::/56"),
            (certificate, "open to every pod and host, but clients without a certificate"),
            (policy(enabled=False), "the webhooks answer every pod"),
        ]:
            with self.subTest(values):
                self.assertIn(expected, render.notes(values))

    def test_users_are_rejected_without_a_daemon_but_administrators_are_not(self):
        of_kinds = lambda *values, **options: [
            document for document in rendered(*values, **options) if document["kind"].endswith("WebhookConfiguration")
        ]
        groups = {"config": {"server": {"webhook": {"bypassGroups": ["site:admins", 'a"b']}}}}
        for document in of_kinds(groups, {"serviceAccount": {"name": "robot"}}):
            self.assertEqual(document["metadata"]["annotations"], SELECTOR | {"helm.sh/resource-policy": "keep"})
            found = {webhook["name"]: webhook for webhook in document["webhooks"]}
            users = {name for name in found if not name.startswith("bypass.")}
            self.assertEqual(set(found), users | {f"bypass.{name}" for name in users})
            for name in users:
                [user, bypass] = found[name], found[f"bypass.{name}"]
                # Students may delete without a running daemon. The defaults of Templates are for edits
                # on the official page, which would lose fields without an answer, whoever edits.
                is_of_page = name.startswith("mutate.template.")
                differing = {key for key in user if user[key] != bypass[key]}
                self.assertEqual(differing | {"failurePolicy"}, {"name", "failurePolicy", "matchConditions"})
                policies = ("Fail", "Fail" if is_of_page else "Ignore")
                self.assertEqual((user["failurePolicy"], bypass["failurePolicy"]), policies)
                is_of_managers = name.startswith("validate.managers.")
                others = ["UPDATE", "DELETE"] if is_of_managers else ["CREATE", "UPDATE"]
                written = ["UPDATE"] if is_of_page else others
                self.assertEqual(is_of_managers, user["matchConditions"][0]["name"] == "of-managers")
                self.assertEqual([rule["operations"] for rule in user["rules"]], [written])
                self.assertEqual(user["matchConditions"][:-1], bypass["matchConditions"][:-1])
                unless, only = user["matchConditions"][-1], bypass["matchConditions"][-1]
                self.assertEqual(unless["expression"], f"!({only['expression']})", "each request matches one of them")
                for who in (f'"system:serviceaccount:{NAMESPACE}:robot"', '["site:admins","a\\"b","system:serviceaccounts:kube-system"]'):
                    self.assertIn(who, only["expression"])
        by_cluster = {"config": {"controllers": {"tenant": {"managers": "cluster"}}}}
        names = [webhook["name"] for document in of_kinds(by_cluster) for webhook in document["webhooks"]]
        self.assertEqual([name for name in names if "validate.managers" in name], [])
        for document in of_kinds({"webhook": {"failurePolicy": "Ignore"}}):
            self.assertEqual(document["metadata"]["annotations"], SELECTOR, "a kept one would refuse nothing")
            self.assertEqual({webhook["failurePolicy"] for webhook in document["webhooks"]}, {"Ignore"})
        command = "kubectl delete validatingwebhookconfiguration,mutatingwebhookconfiguration crownlabs-webhook"
        for values, expected, is_kept in [
            ({}, "keeps the webhook configurations", True),
            ({"webhook": {"failurePolicy": "Ignore"}}, "while no replica answers", False),
            ({"config": {"server": {"webhook": {"enabled": False}}}}, "a manager can edit every Tenant", False),
        ]:
            with self.subTest(values):
                said = render.notes(render.NETWORK, values)
                self.assertIn(expected, said)
                self.assertEqual(command in said, is_kept)

    def test_the_webhooks_check_all_namespaces_except_those_of_other_releases(self):
        def selectors(*values):
            found = [document for document in rendered(*values) if document["kind"].endswith("WebhookConfiguration")]
            webhooks = [webhook for document in found for webhook in document["webhooks"]]
            scoped = lambda scope: [webhook.get("namespaceSelector") for webhook in webhooks if webhook["rules"][0]["scope"] == scope]
            self.assertEqual(scoped("Cluster"), [None] * 4, "Tenants have no namespace")
            return scoped("Namespaced")

        mistake = {"config": {"selector": {"crownlabs.polito.it/operator-selektor": "prodution"}}}
        for values in ([], [mistake]):
            self.assertEqual(selectors(*values), [None] * 10)
        others = {"webhook": {"otherSelectors": [{"crownlabs.polito.it/operator-selector": "staging"}, {"example.com/side": "1"}]}}
        expected = {"matchExpressions": [
            {"key": "crownlabs.polito.it/operator-selector", "operator": "NotIn", "values": ["staging"]},
            {"key": "example.com/side", "operator": "NotIn", "values": ["1"]},
        ]}
        self.assertEqual(selectors(others), [expected] * 10)
        own = {"webhook": {"otherSelectors": [{"crownlabs.polito.it/operator-selector": "production"}]}}
        self.assertIn("would not check the objects of this release", template(own).stderr)

    def test_the_webhooks_of_another_release_with_the_same_selector_are_a_conflict(self):
        key, production = "crownlabs.polito.it/selector", SELECTOR["crownlabs.polito.it/selector"]
        release = {"meta.helm.sh/release-name": "labs", "meta.helm.sh/release-namespace": "campus"}

        def conflict(name, annotations, path, *values):
            webhooks = [{"clientConfig": {"service": {"path": "/validator-texts"}}}, {"clientConfig": {"service": {"path": path}}}]
            found = json.dumps([{"metadata": {"name": name, "annotations": annotations}, "webhooks": webhooks}])
            try:
                body = f'{{{{ include "crownlabs.webhooks.conflict" (list . (fromJsonArray `{found}`)) }}}}'
                return render.evaluated(body, render.NETWORK, *values)
            except AssertionError as error:
                return str(error)

        tenants = "/validator-v1alpha2-tenant"
        said = conflict("labs-webhook", {key: production} | release, tenants)
        for part in ("labs-webhook (release labs in namespace campus)", production, "webhook.otherConfigurations", "docs/operating.md"):
            self.assertIn(part, said)
        for name, annotations, path, values in [
            ("labs-webhook", {key: "crownlabs.polito.it/operator-selector=staging"}, tenants, {}),
            ("labs-webhook", {key: production}, "/validator-v1alpha2-instance", {}),
            ("labs-webhook", {key: production}, tenants, {"webhook": {"otherConfigurations": ["labs-webhook"]}}),
            ("labs-webhook", {key: production}, tenants, {"config": {"selector": {"example.com/side": "staging"}}}),
            ("crownlabs-webhook", {key: production}, tenants, {}),
            ("crownlabs-operator", {}, tenants, {}),
        ]:
            with self.subTest(name, annotations=annotations, path=path, values=values):
                self.assertEqual(conflict(name, annotations, path, values), "")

    def test_hard_anti_affinity_leaves_room_for_a_rolling_update(self):
        found = by_key(rendered({"podAntiAffinity": "hard"}))[f"Deployment {NAMESPACE}/crownlabs"]["spec"]
        [term] = found["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        self.assertLessEqual(term["labelSelector"]["matchLabels"].items(), found["template"]["metadata"]["labels"].items())
        self.assertEqual(found["strategy"]["rollingUpdate"], {"maxSurge": 0, "maxUnavailable": 1})

    def test_the_storage_class_of_mirrors_has_the_configured_name_and_provisioner(self):
        values = {
            "mirrorStorageClass": {"create": True},
            "config": {"storage": {"mirrorClass": "copies"}, "controllers": {"pvcMirror": {"provisioner": "p.example.com"}}},
        }
        found = by_key(rendered(values))
        [one] = [document for document in found.values() if document["kind"] == "StorageClass"]
        self.assertEqual((one["metadata"]["name"], one["provisioner"]), ("copies", "p.example.com"))
        self.assertEqual((one["reclaimPolicy"], one["allowVolumeExpansion"]), ("Delete", False))
        kinds = {document["kind"] for document in by_key(rendered({})).values()}
        self.assertNotIn("StorageClass", kinds)

    def test_two_releases_have_no_object_in_common(self):
        alone = {"crds": {"install": False}, "clusterRoles": {"create": False}, "myDriveNamespace": {"create": False}}
        one, other = by_key(rendered(alone)), by_key(rendered(alone, release="staging"))
        self.assertEqual(set(one) & set(other), set())


class Plain(unittest.TestCase):
    maxDiff = None

    def compare(self, files, values):
        """Fails if the chart and the files differ, except for labels that only describe an object."""
        plain = by_key(document for file in files for document in documents(file.read_text()))
        chart = by_key(rendered(*values))
        chart = {key: document for key, document in chart.items() if document["kind"] != "CustomResourceDefinition"}
        self.assertEqual(sorted(plain), sorted(chart))
        for key, document in plain.items():
            ours, theirs = comparable(chart[key]), comparable(document)
            labels = ours["metadata"].get("labels", {})
            for label in ("app.kubernetes.io/name", "app.kubernetes.io/part-of"):
                if label not in theirs["metadata"].get("labels", {}):
                    labels.pop(label, None)
            if not labels:
                ours["metadata"].pop("labels", None)
            with self.subTest(key):
                self.assertEqual(ours, theirs)

    def test_the_plain_manifests_equal_the_rendered_chart(self):
        files = sorted((ROOT / "manifests").glob("*.yaml"))
        self.assertGreater(len(files), 7)
        self.compare(files, SETS["plain"])

    def test_the_plain_bastion_equals_the_rendered_chart(self):
        files = [*sorted((ROOT / "manifests").glob("*.yaml")), ROOT / "manifests/bastion/bastion.yaml"]
        self.compare(files, [*SETS["plain"], BASTION])

    def test_the_plain_exam_agent_equals_the_rendered_chart(self):
        without = by_key(rendered(*SETS["plain"]))
        added = {key: document for key, document in by_key(rendered(*SETS["plain"], EXAMS)).items() if key not in without}
        plain = by_key(documents((ROOT / "manifests/exam-agent/exam-agent.yaml").read_text()))
        self.assertEqual(sorted(plain), sorted(added))
        for key, document in plain.items():
            ours, theirs = comparable(added[key]), comparable(document)
            if "labels" not in theirs["metadata"]:
                ours["metadata"].pop("labels")
            with self.subTest(key):
                self.assertEqual(ours, theirs)

    def test_the_plain_service_for_events_equals_the_rendered_chart(self):
        added = set(by_key(rendered(*SETS["plain"], KEYCLOAK))) - set(by_key(rendered(*SETS["plain"])))
        self.assertEqual(added, {f"Service {NAMESPACE}/crownlabs-keycloak-wh"})
        files = [*sorted((ROOT / "manifests").glob("*.yaml")), ROOT / "manifests/keycloak/keycloak-events.yaml"]
        plain = by_key(document for file in files for document in documents(file.read_text()))
        [key] = added
        chart = comparable(by_key(rendered(*SETS["plain"], KEYCLOAK))[key])
        self.assertEqual(chart, comparable(plain[key]))

    def test_the_defaults_differ_only_by_the_rights_of_disabled_loops(self):
        watched = {"networkPolicy": {"prometheusNamespace": "monitoring"}}
        default, plain = by_key(rendered(watched)), by_key(rendered(*SETS["plain"]))
        default = {key: document for key, document in default.items() if document["kind"] != "CustomResourceDefinition"}
        records = {f"{kind} {NAMESPACE}/crownlabs-pod-networks" for kind in ("Role", "RoleBinding")}
        self.assertEqual(set(plain) - set(default), {f"Namespace /{NAMESPACE}", *records})
        self.assertEqual(set(default) - set(plain), set())
        different = {key for key in default if comparable(default[key]) != comparable(plain[key])}
        self.assertEqual(different, {ROLE})
        missing = rights(plain[ROLE]) - rights(default[ROLE])
        lists = {("crownlabs.polito.it", "imagelists", "", verb) for verb in ("list", "watch", "create", "patch")}
        lists.add(("crownlabs.polito.it", "imagelists/status", "", "patch"))
        pod_networks = {right for right in missing if right[0] == "podconfig.opdev.io" or right[1] == "nodes" or right[2] == "podconfigs.podconfig.opdev.io"}
        mirrors = {("", "persistentvolumes", "", verb) for verb in ("create", "delete")} | {("", "namespaces", "", "get")}
        self.assertEqual(missing - pod_networks, lists | mirrors | {("crownlabs.polito.it", "instances", "", "delete")})

    def test_the_crds_match_the_code(self):
        crds = by_key(document for file in (ROOT / "manifests/crds").iterdir() for document in documents(file.read_text()))
        integer = by_key(documents(configuration.crownlabs("crd", "--quota-cpu", "integer").stdout))
        self.assertNotEqual(integer, crds)
        for values, expected in (({}, integer), ({"quotaCpu": "integer"}, integer), ({"quotaCpu": "intOrString"}, crds)):
            kept = {key: document for key, document in by_key(rendered({"crds": values})).items() if key in crds}
            for document in kept.values():
                self.assertEqual(document["metadata"].pop("annotations"), {"helm.sh/resource-policy": "keep"})
            self.assertEqual(kept, expected)
            lost = by_key(rendered({"crds": {"keep": False, **values}}))
            self.assertEqual({key: document for key, document in lost.items() if key in crds}, expected)

    def test_files_generated_from_the_chart_are_up_to_date(self):
        for file, wanted in made().items():
            with self.subTest(file.name):
                self.assertEqual(file.read_text(), wanted, "run `make chart`")
        listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
        self.assertEqual(listed, ["crownlabs.yaml"])


class Rights(unittest.TestCase):
    def of(self, *values):
        return rights(by_key(rendered(*values))[ROLE])

    def writes(self, found, group, resource):
        return {verb for g, r, _, verb in found if (g, r) == (group, resource)} - {"get", "list", "watch"}

    def test_a_disabled_loop_has_no_rights(self):
        ours, all_on = "crownlabs.polito.it", self.of(*SETS["plain"])
        alone = [
            ("snapshot", ours, "instancesnapshots"), ("snapshot", ours, "instancesnapshots/status"),
            ("sharedVolume", ours, "sharedvolumes"), ("sharedVolume", ours, "sharedvolumes/status"),
            ("instance", "kubevirt.io", "virtualmachines"), ("instance", "apps", "deployments"),
            ("instance", "networking.k8s.io", "ingresses"), ("instance", "gateway.networking.k8s.io", "httproutes"),
            ("tenant", ours, "tenants/status"), ("tenant", "rbac.authorization.k8s.io", "clusterroles"),
            ("tenant", "", "resourcequotas"), ("tenant", "", "limitranges"),
            ("workspace", ours, "workspaces"), ("workspace", ours, "workspaces/status"),
        ]
        for loop, group, resource in alone:
            with self.subTest(loop, resource=resource):
                self.assertTrue(self.writes(all_on, group, resource))
                found = {right for right in self.of(off(loop)) if right[3] != "bind"}
                self.assertFalse(self.writes(found, group, resource))

    def test_only_the_kind_of_the_policies_of_routes_is_granted_while_there_are_routes(self):
        of = lambda enabled: {"config": {"controllers": {"instance": {"gatewayApi": {
            "enabled": enabled, "parentRefs": [{"name": "labs", "namespace": "gateways"}], "policy": POLICY}}}}}
        kind = ("gateway.envoyproxy.io", "securitypolicies", "")
        granted = {(*kind, verb) for verb in ("get", "list", "watch", "create", "patch", "delete")}
        self.assertEqual(self.of(of(True)) - self.of(), granted)
        self.assertEqual(self.of(of(False)), self.of())
        self.assertEqual(self.of(of(True), off("instance")), self.of(off("instance")))

    def test_shared_rights_are_absent_if_all_their_loops_are_off(self):
        for resource, loops in {
            ("", "services"): ("instance", "publicExposure"),
            ("networking.k8s.io", "networkpolicies"): ("instance", "tenant", "publicExposure"),
            ("batch", "jobs"): ("tenant", "sharedVolume", "snapshot"),
            ("", "namespaces"): ("tenant", "workspace"),
            ("", "secrets"): ("instance", "tenant"),
        }.items():
            with self.subTest(resource):
                self.assertFalse(self.writes(self.of(off(*loops)), *resource))
                for loop in loops:
                    others = [other for other in loops if other != loop]
                    self.assertTrue(self.writes(self.of(off(*others)), *resource), f"{loop} needs it")

    def test_each_loop_has_its_rights_somewhere(self):
        loops = set(yaml.safe_load((CHART / "files/rights.yaml").read_text())) - {"common", "webhook"}
        # The loops of the bastion have separate rights.
        every = yaml.safe_load((ROOT / "config/crownlabs.yaml").read_text())["controllers"]
        # The rules of the exam agent are for one namespace, and so are the rules of pod networks on a node. The usage of
        # containers needs no rights. The dashboard and the login of machines have separate accounts.
        elsewhere = {"bastion", "sshTracker", "webSsh", "dashboard", "login", "examAgent", "instanceMetrics", "podConfigNode"}
        self.assertEqual(loops | elsewhere, set(every))

    def test_a_daemon_that_does_nothing_runs_no_loop(self):
        given = yaml.safe_load((CI / "nothing.yaml").read_text())["config"]["controllers"]
        self.assertEqual(given, off(*ON)["config"]["controllers"])

    def test_the_exam_agent_has_rights_only_in_its_namespace(self):
        alone = off(*ON)
        found = by_key(rendered(alone, EXAMS))
        ours = "crownlabs.polito.it"
        self.assertFalse(self.writes(rights(found[ROLE]), ours, "instances"))
        role = rights(found["Role crownlabs-exam/crownlabs-exam-agent"])
        self.assertEqual(self.writes(role, ours, "instances"), {"create", "patch", "delete"})
        self.assertEqual(self.writes(role, ours, "templates"), set())
        self.assertNotIn("Role crownlabs-exam/crownlabs-exam-agent", by_key(rendered(EXAMS, {"rbac": {"create": False}})))
        self.assertEqual([key for key in by_key(rendered()) if "exam-agent" in key], [])

    def test_the_exam_agent_is_behind_the_ingress_controller(self):
        policy, ingress = f"NetworkPolicy {NAMESPACE}/crownlabs-exam-agent", f"Ingress {NAMESPACE}/crownlabs-exam-agent"
        found = by_key(rendered(EXAMS))
        self.assertNotIn(ingress, found)
        [rule] = found[policy]["spec"]["ingress"]
        self.assertEqual(rule["from"][0]["namespaceSelector"]["matchLabels"], {"kubernetes.io/metadata.name": "ingress-nginx"})
        [container] = found[f"Deployment {NAMESPACE}/crownlabs"]["spec"]["template"]["spec"]["containers"]
        self.assertIn({"name": "exam-agent", "containerPort": 8888}, container["ports"])
        path = {"config": {"controllers": {"examAgent": {"basePath": "/exams"}}}, "examAgent": {"ingress": {"enabled": True}}}
        spec = by_key(rendered(EXAMS, path))[ingress]["spec"]
        [route] = spec["rules"][0]["http"]["paths"]
        self.assertEqual((route["path"], route["pathType"]), ("/exams", "Prefix"))
        self.assertEqual(spec["tls"][0]["secretName"], "crownlabs-exam-agent-ingress-cert")
        annotations = by_key(rendered(EXAMS, path))[ingress]["metadata"]["annotations"]
        self.assertEqual(annotations, {"nginx.ingress.kubernetes.io/custom-http-errors": "418"})
        own = by_key(rendered(EXAMS, path, {"secrets": {"examAgentCertificate": {"name": "tls"}}}))[ingress]["metadata"]["annotations"]
        self.assertEqual(own["nginx.ingress.kubernetes.io/backend-protocol"], "HTTPS")

    def test_bindable_roles_depend_on_the_loops(self):
        bound = lambda *values: {right[2] for right in self.of(*values) if right[3] == "bind"}
        role = {"config": {"controllers": {"tenant": {"sandboxClusterRole": "own"}}}}
        self.assertEqual(bound() - bound(role), {"crownlabs-sandbox"})
        self.assertEqual(bound(role) - bound(), {"own"})
        former = {"config": {"controllers": {"tenant": {"instancesClusterRole": "crownlabs-manage-instances"}}}}
        self.assertEqual(bound() - bound(former), {"crownlabs-own-instances"})
        self.assertEqual(bound(former) - bound(), set())
        self.assertNotIn("crownlabs-manage-instances", bound(off("workspace")))
        self.assertNotIn("crownlabs-manage-tenants", bound(off("workspace")))
        self.assertEqual(bound(off("workspace", "tenant")), set())

    def test_only_the_role_of_personal_namespaces_has_the_screens(self):
        found = by_key(rendered())
        roles = {key: rights(found[key]) for key in found if key.startswith("ClusterRole /")}
        screen = ("subresources.kubevirt.io", "virtualmachineinstances/vnc", "", "get")
        self.assertEqual([key for key, allowed in roles.items() if screen in allowed], ["ClusterRole /crownlabs-own-instances"])
        own, former = roles["ClusterRole /crownlabs-own-instances"], roles["ClusterRole /crownlabs-manage-instances"]
        self.assertEqual(own - former, {screen})
        self.assertEqual(former - own, set())

    def test_tenants_cannot_allow_what_the_egress_policy_denies(self):
        egress = {"config": {"controllers": {"tenant": {"egress": {"enabled": True}}}}}
        for group, plural in [("networking.k8s.io", "networkpolicies"), ("", "endpoints")]:
            writes = lambda *values: self.writes(rights(by_key(rendered(*values))["ClusterRole /crownlabs-sandbox"]), group, plural)
            self.assertIn("create", writes(), plural)
            self.assertEqual(writes(egress), set(), plural)

    def test_the_webhooks_add_their_rights(self):
        registers = lambda values: any(right[0] == "admissionregistration.k8s.io" for right in self.of(*values))
        self.assertTrue(registers([]))
        self.assertFalse(registers([{"config": {"server": {"webhook": {"enabled": False}}}}]))
        self.assertFalse(registers([{"webhook": {"certManager": {"enabled": True}}}]))
        # Without the loops whose rules include it, the Secret of the certificate has a Role.
        few = by_key(rendered(off("instance", "tenant")))
        role = rights(few[f"Role {NAMESPACE}/crownlabs-webhook"])
        self.assertEqual(self.writes(role, "", "secrets"), {"create", "patch"})
        self.assertNotIn(f"Role {NAMESPACE}/crownlabs-webhook", by_key(rendered()))

    def test_only_namespaced_resources_are_aggregated_to_view_and_edit(self):
        prefix, found = "rbac.authorization.k8s.io/aggregate-to-", {"view": set(), "edit": set()}
        for document in rendered():
            for label in document["metadata"].get("labels", {}):
                if label.startswith(prefix):
                    found[label.removeprefix(prefix)] |= rights(document)
        self.assertEqual({right[3] for right in found["view"]}, {"get", "list", "watch"})
        for allowed in found.values():
            resources = {right[1].split("/")[0] for right in allowed}
            self.assertEqual(resources, {"instances", "instancesnapshots", "templates", "sharedvolumes", "announcements"})
        plain = [d for d in rendered({"clusterRoles": {"aggregate": False}}) if prefix in json.dumps(d)]
        self.assertEqual(plain, [])


if __name__ == "__main__":
    if sys.argv[1:] == ["render"]:
        for file, content in made().items():
            file.parent.mkdir(exist_ok=True)
            file.write_text(content)
    else:
        from configuration import Configuration, Monitoring  # noqa: F401
        from table import Table  # noqa: F401
        from dashboard import Dashboard  # noqa: F401
        from login import Login  # noqa: F401
        from helm4 import Helm4  # noqa: F401
        from keys import Keys  # noqa: F401
        from options import Images, OneDeployment, Pods, Watching  # noqa: F401
        from values import Hook, Values  # noqa: F401

        unittest.main()
