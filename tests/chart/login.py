"""The login of machines in separate pods."""

import unittest

import yaml

from dashboard import ON
from render import NAMESPACE, by_key, rendered, template

NAME = f"{NAMESPACE}/crownlabs-login"
KEYS = {"session": "/etc/crownlabs-files/session/session-key", "host": "/etc/crownlabs-files/machine-hosts/key"}


BASTION = {"bastion": {"enabled": True}}


def access(**keys):
    return {"config": {"controllers": {"instance": {"access": keys}}}}


class Login(unittest.TestCase):
    def found(self, *more):
        return by_key(rendered(ON, *more))

    def test_it_exists_if_machines_have_the_login_of_the_daemon(self):
        path = {"config": {"controllers": {"instance": {"urls": "path"}}}}
        for values, is_on in (
            ([], True),
            ([access(mode="none")], True),
            ([access(exams="none")], True),
            ([access(mode="none", exams="none")], False),
            ([path], False),
        ):
            with self.subTest(values):
                self.assertEqual(f"Deployment {NAME}" in self.found(*values), is_on)
        self.assertNotIn(f"Deployment {NAME}", by_key(rendered()))

    def test_machines_of_the_exam_agent_have_a_token_instead(self):
        agent = {"config": {"controllers": {"examAgent": {"enabled": True, "namespace": "exams"}}}}
        found = yaml.safe_load(self.found(agent)[f"ConfigMap {NAMESPACE}/crownlabs"]["data"]["crownlabs.yaml"])
        self.assertEqual(found["controllers"]["instance"]["access"]["exams"], "none")
        self.assertIs(found["controllers"]["examAgent"]["requireToken"], True)

    def test_its_account_may_watch_objects_and_change_one_config_map(self):
        found = self.found()
        kinds = ["instances", "templates", "tenants"]
        watch = {"apiGroups": ["crownlabs.polito.it"], "resources": kinds, "verbs": ["list", "watch"]}
        services = {"apiGroups": [""], "resources": ["services"], "verbs": ["list", "watch"]}
        self.assertEqual(found["ClusterRole /crownlabs-login"]["rules"], [watch, services])
        codes = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["crownlabs-login-codes"], "verbs": ["get", "patch"]}
        self.assertEqual(found[f"Role {NAME}"]["rules"], [codes])
        # An upgrade keeps the entries, because the chart has none.
        self.assertNotIn("data", found[f"ConfigMap {NAMESPACE}/crownlabs-login-codes"])

    def test_the_hosts_of_peers_lead_to_its_pods(self):
        found = self.found()
        [rule] = found[f"Ingress {NAME}-peers"]["spec"]["rules"]
        self.assertEqual(rule["host"], "*.crownlabs.example.com")
        [path] = rule["http"]["paths"]
        self.assertEqual(path["backend"]["service"], {"name": "crownlabs-login", "port": {"name": "peers"}})
        self.assertEqual(found[f"Ingress {NAME}-peers"]["spec"]["tls"], [{"hosts": ["*.crownlabs.example.com"]}])
        [container] = found[f"Deployment {NAME}"]["spec"]["template"]["spec"]["containers"]
        self.assertIn({"name": "peers", "containerPort": 8090}, container["ports"])
        [rule, *_] = found[f"NetworkPolicy {NAME}"]["spec"]["ingress"]
        self.assertEqual(rule["ports"], [{"port": "login"}, {"port": "peers"}])
        parents = [{"name": "labs", "namespace": "gateways"}]
        gateway = {"config": {"controllers": {"instance": {"gatewayApi": {"enabled": True, "parentRefs": parents}}}}}
        found = self.found(gateway)
        self.assertNotIn(f"Ingress {NAME}-peers", found)
        route = found[f"HTTPRoute {NAME}-peers"]["spec"]
        self.assertEqual((route["hostnames"], route["parentRefs"]), (["*.crownlabs.example.com"], parents))
        self.assertEqual(route["rules"][0]["backendRefs"], [{"name": "crownlabs-login", "port": 8080}])
        label = "crownlabs.polito.it/allow-instance-access"
        namespace = self.found({"namespace": {"create": True}})[f"Namespace /{NAMESPACE}"]
        self.assertEqual(namespace["metadata"]["labels"][label], "true")

    def test_without_hosts_of_peers_it_has_no_right_on_addresses(self):
        off = {"login": {"config": {"controllers": {"login": {"peersListen": ""}}}}}
        found = self.found(off)
        self.assertNotIn(f"Ingress {NAME}-peers", found)
        [rule] = found["ClusterRole /crownlabs-login"]["rules"]
        self.assertEqual(rule["resources"], ["instances", "templates", "tenants"])
        self.assertEqual(len(found[f"Service {NAME}"]["spec"]["ports"]), 1)

    def test_connections_are_recorded_by_the_login_and_by_web_ssh(self):
        record = f"ConfigMap {NAMESPACE}/crownlabs-peers"
        self.assertNotIn(record, by_key(rendered()))
        patch = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["crownlabs-peers"], "verbs": ["patch"]}
        login = {"kind": "ServiceAccount", "name": "crownlabs-login", "namespace": NAMESPACE}
        bastion = {"kind": "ServiceAccount", "name": "crownlabs-bastion", "namespace": "crownlabs-bastion"}
        off = access(mode="none", exams="none")
        for values, subjects in (([], [login]), ([BASTION], [login, bastion]), ([BASTION, off], [bastion])):
            with self.subTest(values):
                found = self.found(*values)
                self.assertNotIn("data", found[record])
                self.assertEqual(found[f"Role {NAMESPACE}/crownlabs-peers"]["rules"], [patch])
                self.assertEqual(found[f"RoleBinding {NAMESPACE}/crownlabs-peers"]["subjects"], subjects)

    def test_its_pods_have_the_session_key_and_not_the_secret_of_the_client(self):
        found = self.found()
        own = yaml.safe_load(found[f"ConfigMap {NAME}"]["data"]["crownlabs.yaml"])["controllers"]
        self.assertEqual([loop for loop, keys in own.items() if keys.get("enabled", True)], ["login"])
        files = {"sessionKeyFile": KEYS["session"], "hostKeyFile": KEYS["host"]}
        self.assertEqual(own["login"], {"enabled": True, "peersListen": "0.0.0.0:8090", **files})
        self.assertEqual(own["instance"]["access"]["daemon"]["signInUrl"], "https://labs.example.com/login/machine")
        pod = found[f"Deployment {NAME}"]["spec"]["template"]["spec"]
        secrets = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
        session = {"secretName": "dashboard", "items": [{"key": "session-key", "path": "session-key"}]}
        self.assertEqual(secrets, [session, {"secretName": "crownlabs-machine-hosts", "optional": True}])
        self.assertEqual(found[f"Deployment {NAME}"]["spec"]["replicas"], 2)
        ports = found[f"Service {NAME}"]["spec"]["ports"]
        # The first is the port of the URL in the annotations of Ingresses.
        peers = {"name": "peers", "port": 8080, "targetPort": "peers"}
        self.assertEqual(ports, [{"name": "http", "port": 80, "targetPort": "login"}, peers])
        [rule, *_] = found[f"NetworkPolicy {NAME}"]["spec"]["ingress"]
        self.assertEqual(rule["from"][0]["namespaceSelector"]["matchLabels"], {"kubernetes.io/metadata.name": "ingress-nginx"})

    def test_values_that_cannot_work_are_refused(self):
        for values, why in (
            ([access(mode="daemon")], "need the dashboard"),
            ([ON, {"config": {"controllers": {"login": {"enabled": True}}}}], "this key below login.config"),
            ([ON, {"login": {"config": {"controllers": {"login": {"enabled": False}}}}}], "these pods have no other loop"),
        ):
            with self.subTest(why):
                done = template(*values, validated=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(why, done.stderr)
