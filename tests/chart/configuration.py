"""The checks of the configuration that the chart renders, and of alerts and dashboard."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

from render import CHART, NAMESPACE, ROOT, by_key, configuration, effective, key, pods, rendered, template, text

EVERYTHING = CHART / "ci/everything.yaml"
BASTION = {"bastion": {"enabled": True}}
KEYCLOAK = {
    "config": {"integrations": {"keycloak": {"enabled": True, "url": "https://auth.example.com:8443/kc", "realm": "labs", "clientId": "operator"}}},
    "secrets": {"keycloak": {"name": "keycloak"}},
}
SILENT = {"enabled": True, "notifications": False}
MAIN = f"ConfigMap {NAMESPACE}/crownlabs"
METRICS = {"instanceMetrics": {"enabled": True}}
OF_METRICS = "ConfigMap crownlabs-instance-metrics/crownlabs-instance-metrics"
OF_BASTION = "ConfigMap crownlabs-bastion/crownlabs-bastion"


def run(*args, **options):
    return subprocess.run([*map(str, args)], capture_output=True, text=True, cwd=ROOT, **options)


def crownlabs(*args, **options):
    """Runs the daemon's program: from the variable CROWNLABS, or from this checkout."""
    program = [os.environ["CROWNLABS"]] if "CROWNLABS" in os.environ else ["cargo", "run", "--quiet", "--locked", "--"]
    return run(*program, *args, **options)


def differences(one, other, path=""):
    """The paths of keys that differ."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return [] if one == other else [path]
    names = sorted({*one, *other})
    return [found for name in names for found in differences(one.get(name), other.get(name), f"{path}.{name}".lstrip("."))]


class Configuration(unittest.TestCase):
    def refusal(self, values):
        done = template(values)
        self.assertNotEqual(done.returncode, 0, "it is accepted")
        return done.stderr

    def test_the_schema_equals_the_schema_of_the_configuration(self):
        schema = crownlabs("config", "schema", check=True).stdout
        made = run("python3", "tests/chart/schema.py", input=schema, check=True).stdout
        self.assertEqual((CHART / "values.schema.json").read_text(), made, "run `make chart`")

    def test_every_key_of_the_values_is_in_the_schema(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        config = schema["$defs"]["config"]

        def missing(values, schema, path):
            schema = config if "$ref" in schema else schema
            for name, value in values.items():
                if name not in schema.get("properties", {}):
                    if "properties" in schema:
                        yield f"{path}{name}"
                elif isinstance(value, dict):
                    yield from missing(value, schema["properties"][name], f"{path}{name}.")

        values = yaml.safe_load((CHART / "values.yaml").read_text())
        self.assertEqual(list(missing(values, schema, "")), [])
        unused = set(schema["properties"]) - set(values) - {"global"}
        self.assertEqual(unused, set())

    def test_invalid_values_are_rejected_with_their_key(self):
        for values, expected in [
            ({"config": {"controllers": {"instance": {"concurency": 3}}}}, "'concurency' not allowed"),
            ({"config": {"resync": {"min": "soon"}}}, "/config/resync/min"),
            ({"config": {"resync": {"min": ""}}}, "/config/resync/min"),
            ({"config": {"resync": {"min": "1m1h"}}}, "/config/resync/min"),
            ({"bastion": {"config": {"resync": {"max": "5"}}}}, "/bastion/config/resync/max"),
            ({"config": {"selector": {}}}, "/config/selector"),
            ({"replica": 3}, "'replica' not allowed"),
            ({"podAntiAffinity": "always"}, "/podAntiAffinity"),
            ({"image": {"digest": "latest"}}, "/image/digest"),
            ({"replicas": 2, "config": {"leaderElection": {"enabled": False}}}, "set replicas: 1"),
            ({"config": {"leaderElection": {"namespace": "other"}}}, "leave this key out"),
            ({"config": {"controllers": {"sshTracker": {"enabled": True}}}}, "set bastion.enabled"),
            ({"bastion": {"enabled": True, "config": {"controllers": {"tenant": {"enabled": True}}}}}, "set it below config"),
            ({"config": {"controllers": {"examAgent": {"enabled": True}}}}, "/config/controllers/examAgent': missing property 'namespace'"),
            ({"config": {"controllers": {"instance": {"websiteBaseUrl": "https://labs.example.com"}}}}, "/config/controllers/instance/websiteBaseUrl"),
            ({"config": {"controllers": {"instance": {"websiteBaseUrl": "labs.example.com/x"}}}}, "/config/controllers/instance/websiteBaseUrl"),
            ({"config": {"server": {"metrics": "0.0.0.0:80800"}}}, "/config/server/metrics"),
            ({"config": {"integrations": {"mail": {"host": "192.0.2.1:25"}}}}, "/config/integrations/mail/host"),
            ({"config": {"controllers": {"termination": {"allowCidrs": ["10.0.0.0/33"]}}}}, "/config/controllers/termination/allowCidrs/0"),
            ({"config": {"controllers": {"instance": {"ephemeralStorage": "0"}}}}, "/config/controllers/instance/ephemeralStorage"),
            ({"networkPolicy": {"egress": ["10.0.0.0/33"]}}, "/networkPolicy/egress/0"),
            ({"fullnameOverride": "Labs"}, "/fullnameOverride"),
            ({"examAgent": {"ingress": {"host": "https://exams.example.com"}}}, "/examAgent/ingress/host"),
            ({"dashboard": {"enabled": True, "host": "a.example.com", "secret": {"name": "s"}, "config": {"controllers": {"dashboard": {
                "enabled": False, "issuerUrl": "https://a", "clientId": "c"}}}}}, "set dashboard.enabled: false"),
            ({"config": {"controllers": {"instance": {"concurrency": 257}}}}, "/config/controllers/instance/concurrency"),
            ({"config": {"controllers": {"termination": {"statusCheckTimeout": "0s"}}}}, "/config/controllers/termination/statusCheckTimeout"),
            ({"config": {"controllers": {"inactivity": SILENT}}}, "/config': missing property 'integrations'"),
            ({"config": {"controllers": {"inactivity": SILENT}, "integrations": {"prometheus": {"url": ""}}}}, "/config/integrations/prometheus/url"),
            ({"config": {"controllers": {"expiration": {"enabled": True}}}}, "/config': missing property 'integrations'"),
            ({"config": {"controllers": {"expiration": {"enabled": True}}, "integrations": {"mail": {"transport": "none"}}}}, "/config/integrations/mail/transport"),
            ({"config": {"integrations": {"mail": {"transport": "smtp", "from": "a@example.com"}}}}, "/config/integrations/mail': missing property 'host'"),
            ({"config": {"integrations": {"mail": {"username": "u"}}}}, "/config/integrations/mail': missing property 'passwordFile'"),
            ({"config": {"integrations": {"keycloak": {"enabled": True, "url": "https://a", "realm": "r", "clientId": "c"}}}}, "missing property 'clientSecretFile'"),
            ({"config": {"controllers": {"imageList": {"enabled": True, "registries": [{"imageListName": "a", "type": "harbor", "url": "https://a", "registryName": "a"}]}}}}, "missing property 'project'"),
            ({"dashboard": {"enabled": True, "host": "a.example.com", "secret": {"name": "s"}}}, "/dashboard/config': missing property 'controllers'"),
            ({"config": {"controllers": {"examAgent": {"allowedIps": [1]}}}}, "/config/controllers/examAgent/allowedIps/0"),
            ({"config": {"controllers": {"instanceMetrics": {"enabled": True}}}}, "set instanceMetrics.enabled"),
            ({"instanceMetrics": {"enabled": True, "config": {"controllers": {"tenant": {"enabled": True}}}}}, "set it below config"),
            ({"instanceMetrics": {"enabled": True, "config": {"leaderElection": {"enabled": True}}}}, "never lead"),
            ({"instanceMetrics": {"enabled": True, "config": {"controllers": {"instanceMetrics": {"enabled": False}}}}}, "set instanceMetrics.enabled: false"),
            ({"instanceMetrics": {"config": {"controllers": {"instanceMetrics": {"updatePeriod": "soon"}}}}}, "/instanceMetrics/config/controllers"),
            ({"config": {"controllers": {"podConfigNode": {"enabled": True}}}}, "set podNetworks.enabled"),
            ({"podNetworks": {"enabled": True, "config": {"controllers": {"tenant": {"enabled": True}}}}}, "set it below config"),
            ({"podNetworks": {"enabled": True, "config": {"controllers": {"podConfigNode": {"enabled": False}}}}}, "set podNetworks.enabled: false"),
            ({"instanceMetrics": {"runtimeSocket": "run/containerd.sock"}}, "/instanceMetrics/runtimeSocket"),
            ({"webhook": {"certManager": {"enabled": True}}, "config": {"server": {"webhook": {"enabled": False}}}}, "no webhooks"),
            ({"secrets": {"webhookCertificate": {"name": "tls"}}}, "set webhook.caBundle"),
            ({"podMonitor": {"enabled": True}, "config": {"server": {"metrics": ""}}}, "there are no metrics"),
        ]:
            with self.subTest(values):
                self.assertIn(expected, self.refusal(values))

    def test_secrets_fulfil_the_conditions_of_the_configuration(self):
        mail = {"transport": "smtp", "host": "mail.example.com", "from": "a@example.com", "username": "u"}
        for secret, integrations in (
            ("keycloak", {"keycloak": {"enabled": True, "url": "https://a", "realm": "r", "clientId": "c"}}),
            ("mailPassword", {"mail": mail}),
            ("mailConfig", {"mail": {"transport": "smtp"}}),
        ):
            values = {"config": {"integrations": integrations}}
            with self.subTest(secret):
                self.assertNotEqual(template(values).returncode, 0, "it is accepted without the Secret")
                template(values, {"secrets": {secret: {"name": "s"}}}).check_returncode()

    def test_a_file_is_named_once(self):
        def values(secret, *path, file):
            config = file
            for key in reversed(path):
                config = {key: config}
            return {"secrets": {secret: {"name": "s"}}, "config": config}

        path = ("integrations", "keycloak", "clientSecretFile")
        mounted = "/etc/crownlabs-files/keycloak/client-secret"
        template(values("keycloak", *path, file=mounted)).check_returncode()
        for secret, path, mounted in [
            ("keycloak", path, mounted),
            ("mailConfig", ("integrations", "mail", "configDir"), "/etc/crownlabs-files/mail-config"),
            ("webSshMasterKey", ("controllers", "instance", "websshMasterKeyFile"), "/etc/crownlabs-files/web-ssh-key/webssh-bastion-master.pub"),
        ]:
            with self.subTest(secret):
                said = self.refusal(values(secret, *path, file="/elsewhere"))
                self.assertIn(f"config.{'.'.join(path)}: it is /elsewhere, and", said)
                self.assertIn(f"mounted at {mounted}: leave this key out", said)

    def test_values_of_the_go_operators_are_converted_to_values_of_this_chart(self):
        for file in sorted((ROOT / "tests/recorded/operators-values").iterdir()):
            with self.subTest(file.name), tempfile.TemporaryDirectory() as folder:
                made = crownlabs("config", "from-values", file, "--namespace", "labs")
                # Secrets must be created and copied first.
                self.assertEqual(made.returncode, 5, made.stderr)
                values = Path(folder, "values.yaml")
                values.write_text(made.stdout)
                found = by_key(rendered(values))
                for name in (MAIN, OF_BASTION):
                    Path(folder, "configuration.yaml").write_text(found[name]["data"]["crownlabs.yaml"])
                    done = crownlabs("config", "check", Path(folder, "configuration.yaml"))
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                # The same as the configuration alone, except for the files, which the chart mounts
                # elsewhere.
                alone = crownlabs("config", "from-values", file, "--namespace", "labs", "--configuration")
                self.assertEqual(alone.returncode, 5, alone.stderr)
                main, alone = effective(configuration(found[MAIN])), effective(yaml.safe_load(alone.stdout))
                files = re.compile("(File|Dir)$")
                differing = [path for path in differences(main, alone) if not files.search(path)]
                elsewhere = ("controllers.bastion.", "controllers.sshTracker.", "controllers.webSsh.", "controllers.instanceMetrics.")
                self.assertEqual([path for path in differing if not path.startswith((*elsewhere, "server.webhook.", "log.", "leaderElection."))], [])

    def test_durations_are_accepted(self):
        for duration in ["1d", "1h30m", "90s", "1500ms", "1d2h3m4s5ms"]:
            with self.subTest(duration):
                values = {"config": {"server": {}, "controllers": {"termination": {"statusCheckInterval": duration}}}}
                found = configuration(by_key(rendered(values))[MAIN])
                self.assertEqual(found["controllers"]["termination"]["statusCheckInterval"], duration)

    def test_the_daemon_accepts_the_rendered_configuration(self):
        with tempfile.TemporaryDirectory() as folder:
            for values in ([], [BASTION], [METRICS], [EVERYTHING], [CHART / "ci/nothing.yaml"], [CHART / "ci/one-deployment.yaml"]):
                for document in rendered(*values):
                    if "crownlabs.yaml" not in document.get("data", {}):
                        continue
                    with self.subTest(values, document=key(document)):
                        file = Path(folder, "configuration.yaml")
                        file.write_text(document["data"]["crownlabs.yaml"])
                        done = crownlabs("config", "check", file)
                        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_selector_is_written_once(self):
        values = {"config": {"selector": {"example.com/side": "staging"}}}
        source = text(values, BASTION, {"crds": {"install": False}})
        self.assertNotIn("operator-selector", source)
        found = by_key(rendered(values, BASTION))
        for config in (MAIN, OF_BASTION):
            self.assertEqual(configuration(found[config])["selector"], {"example.com/side": "staging"})
        for kind in ("Mutating", "Validating"):
            annotations = found[f"{kind}WebhookConfiguration /crownlabs-webhook"]["metadata"]["annotations"]
            self.assertEqual(annotations["crownlabs.polito.it/selector"], "example.com/side=staging")

    def test_only_a_change_of_the_configuration_rolls_the_pods(self):
        def checksums(*values):
            found = pods(rendered(BASTION, *values))
            both = (f"Deployment {NAMESPACE}/crownlabs", "Deployment crownlabs-bastion/crownlabs-bastion")
            return [found[name][1]["metadata"]["annotations"]["checksum/config"] for name in both]

        [main, bastion] = checksums()
        self.assertEqual(checksums({"replicas": 3, "podMonitor": {"enabled": True}}), [main, bastion])
        other = checksums({"config": {"controllers": {"tenant": {"keepAlive": "2d"}}}})
        self.assertEqual((other[0] == main, other[1] == bastion), (False, True))
        other = checksums({"bastion": {"config": {"controllers": {"sshTracker": {"snaplen": 200}}}}})
        self.assertEqual((other[0] == main, other[1] == bastion), (True, False))
        other = checksums({"config": {"selector": {"a": "b"}}})
        self.assertEqual((other[0] == main, other[1] == bastion), (False, False))

    def test_every_secret_is_mounted_where_the_configuration_names_it(self):
        found = by_key(rendered(EVERYTHING))
        config = json.dumps(configuration(found[MAIN]))
        pod = found[f"Deployment {NAMESPACE}/crownlabs"]["spec"]["template"]["spec"]
        mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        given = yaml.safe_load(EVERYTHING.read_text())
        defaults = yaml.safe_load((CHART / "values.yaml").read_text())
        not_given = set(defaults["secrets"]) - set(given["secrets"])
        self.assertEqual(not_given, {"mailConfig", "webhookCertificate"}, "they exclude others")
        files = [volume for volume in pod["volumes"] if volume["name"] != "configuration"]
        self.assertEqual(len(files), len(given["secrets"]) + 2, "the templates of mails, the certificate of cert-manager")
        for volume in files:
            [item] = volume.get("secret", {}).get("items", [None])
            path = mounts[volume["name"]] + (f"/{item['path']}" if item else "")
            # For the folder of a registry, the configuration names the files in it.
            self.assertIn(f'"{path}/' if "/registries/" in path else f'"{path}"', config)
        folders = {"secrets": {"mailConfig": {"name": "crownmail-configs"}, "webhookCertificate": {"name": "tls"}}}
        found = by_key(rendered(folders, {"webhook": {"caBundle": "QUJD"}}))
        made = configuration(found[MAIN])
        webhooks = found["ValidatingWebhookConfiguration /crownlabs-webhook"]["webhooks"]
        self.assertEqual({webhook["clientConfig"]["caBundle"] for webhook in webhooks}, {"QUJD"})
        self.assertEqual(made["integrations"]["mail"]["configDir"], "/etc/crownlabs-files/mail-config")
        self.assertEqual(made["server"]["webhook"]["certificateDir"], "/etc/crownlabs-files/webhook")

    def test_cert_manager_signs_for_the_service_and_writes_the_authority(self):
        found = by_key(rendered({"webhook": {"certManager": {"enabled": True}}}))
        certificate = found[f"Certificate {NAMESPACE}/crownlabs-webhook"]["spec"]
        self.assertIn(f"crownlabs-webhook.{NAMESPACE}.svc", certificate["dnsNames"])
        self.assertIn(f"Issuer {NAMESPACE}/{certificate['issuerRef']['name']}", found)
        for kind in ("Mutating", "Validating"):
            annotations = found[f"{kind}WebhookConfiguration /crownlabs-webhook"]["metadata"]["annotations"]
            self.assertEqual(annotations, {
                "cert-manager.io/inject-ca-from": f"{NAMESPACE}/crownlabs-webhook", "helm.sh/resource-policy": "keep",
                "crownlabs.polito.it/selector": "crownlabs.polito.it/operator-selector=production",
            })
        [volume] = [
            volume["secret"]["secretName"]
            for volume in found[f"Deployment {NAMESPACE}/crownlabs"]["spec"]["template"]["spec"]["volumes"]
            if volume["name"] == "webhook"
        ]
        self.assertEqual(volume, certificate["secretName"])

    def test_a_disabled_server_has_no_port_service_or_rule(self):
        off = {"config": {"server": {"keycloakEvents": {"listen": ""}, "webhook": {"enabled": False}}}}
        found = by_key(rendered(KEYCLOAK, off))
        self.assertNotIn(f"Service {NAMESPACE}/crownlabs-keycloak-wh", found)
        self.assertNotIn(f"Service {NAMESPACE}/crownlabs-webhook", found)
        [rule] = found[f"NetworkPolicy {NAMESPACE}/crownlabs"]["spec"]["ingress"]
        self.assertEqual([port["port"] for port in rule["ports"]], ["health", "metrics"])

    def test_the_bastion_runs_none_of_the_loops_of_the_other_pods(self):
        found = by_key(rendered(BASTION))
        main = effective(configuration(found[MAIN]))["controllers"]
        bastion = effective(configuration(found[OF_BASTION]))["controllers"]
        on = lambda loops: {name for name, loop in loops.items() if loop["enabled"]}
        self.assertEqual(on(bastion), {"bastion", "sshTracker", "webSsh"})
        self.assertEqual(on(main) & on(bastion), set())

    def test_the_pods_on_nodes_have_one_loop_and_no_election(self):
        made = configuration(by_key(rendered(METRICS))[OF_METRICS])
        loops = effective(made)["controllers"]
        self.assertEqual({name for name, loop in loops.items() if loop["enabled"]}, {"instanceMetrics"})
        self.assertIs(made["leaderElection"]["enabled"], False)


class Monitoring(unittest.TestCase):
    def metrics(self):
        """The metrics of the reference, which is generated from the code, with the series of histograms."""
        page = (ROOT / "docs/reference/metrics.md").read_text()
        found = set()
        for name, kind in re.findall(r"^\| `([a-z_]+)` \| (counter|gauge|histogram) \|", page, re.MULTILINE):
            found |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
        self.assertGreater(len(found), 50)
        return found

    def rules(self):
        [rule] = [document for document in rendered(EVERYTHING) if document["kind"] == "PrometheusRule"]
        return rule["spec"]

    def test_alerts_and_dashboard_use_metrics_of_the_code(self):
        dashboard = json.loads((CHART / "files/dashboard.json").read_text())
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        alerts = [rule["expr"] for group in self.rules()["groups"] for rule in group["rules"]]
        self.assertGreater(min(len(expressions), len(alerts)), 10)
        for expression in expressions + alerts:
            used = re.findall(r"([a-zA-Z_]+)\{", expression)
            with self.subTest(expression):
                self.assertTrue(used)
                self.assertLessEqual(set(used), self.metrics())

    def test_an_alert_exists_if_its_loop_is_enabled(self):
        def names(*values):
            found = [document for document in rendered({"prometheusRule": {"enabled": True}}, *values)]
            [rule] = [document for document in found if document["kind"] == "PrometheusRule"]
            return {alert["alert"] for group in rule["spec"]["groups"] for alert in group["rules"]}

        optional = {
            "CrownlabsKeycloakDown", "CrownlabsMailsWaiting", "CrownlabsDeadlineMissed", "CrownlabsSshTrackerStopped",
            "CrownlabsSshTrackerDrops", "CrownlabsImageListStale", "CrownlabsExamAgentErrors", "CrownlabsPodNetworkFailures",
            "CrownlabsMailUndeliverable",
        }
        everything = {alert["alert"] for group in self.rules()["groups"] for alert in group["rules"]}
        self.assertEqual(everything - names(), optional)
        without = names({"config": {"server": {"webhook": {"enabled": False}}}})
        self.assertEqual(names() - without, {"CrownlabsWebhookCertificateExpiring", "CrownlabsWebhookErrors"})

        # A pod without work for a leader takes no lease.
        page = (ROOT / "docs/reference/configuration.md").read_text()
        loops = set(re.findall(r"^## controllers\.(\w+)$", page, re.MULTILINE))
        self.assertGreater(len(loops), 15)
        of_replicas = {"bastion", "sshTracker", "webSsh", "dashboard", "login", "examAgent", "podConfigNode", "instanceMetrics"}
        self.assertLessEqual(of_replicas, loops)
        off = {"controllers": {loop: {"enabled": False} for loop in loops}, "server": {"webhook": {"enabled": False}}}
        self.assertNotIn("CrownlabsNoLeader", names({"config": off}))
        registry = {"imageListName": "vms", "url": "https://registry.example.com", "registryName": "registry.example.com"}
        for loop, keys in {"instance": {}, "imageList": {"registries": [registry]}}.items():
            with self.subTest(loop):
                on = {**off, "controllers": {**off["controllers"], loop: {"enabled": True, **keys}}}
                self.assertIn("CrownlabsNoLeader", names({"config": on}))

    def test_the_alerts_fire_when_they_should(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "rules.yaml").write_text(json.dumps(self.rules()))
            Path(folder, "alerts.yaml").write_text((ROOT / "tests/chart/alerts.yaml").read_text())
            done = run("promtool", "check", "rules", f"{folder}/rules.yaml")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            done = run("promtool", "test", "rules", f"{folder}/alerts.yaml")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_grafana_dashboard_is_rendered_unchanged(self):
        found = by_key(rendered(EVERYTHING))[f"ConfigMap {NAMESPACE}/crownlabs-grafana-dashboard"]
        self.assertEqual(json.loads(found["data"]["crownlabs.json"]), json.loads((CHART / "files/dashboard.json").read_text()))
