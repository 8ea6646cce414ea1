"""The dashboard in separate pods."""

import unittest

import yaml

from render import CHART, NAMESPACE, by_key, rendered, template

HOST = "labs.example.com"
ISSUER = {"issuerUrl": "https://auth.example.com/realms/crownlabs", "clientId": "dashboard"}
ON = {"dashboard": {"enabled": True, "host": HOST, "secret": {"name": "dashboard"}, "config": {"controllers": {"dashboard": ISSUER}}}}
NAME = f"{NAMESPACE}/crownlabs-dashboard"


class Dashboard(unittest.TestCase):
    def found(self, *more):
        return by_key(rendered(ON, *more))

    def test_its_account_may_only_watch_objects(self):
        found = self.found()
        rules = found["ClusterRole /crownlabs-dashboard"]["rules"]
        kinds = ["instances", "sharedvolumes", "templates", "tenants", "workspaces"]
        watched = [("crownlabs.polito.it", kinds), ("lab.crownlabs.polito.it", ["announcements"])]
        self.assertEqual(rules, [{"apiGroups": [group], "resources": kinds, "verbs": ["list", "watch"]} for group, kinds in watched])
        account = found[f"Deployment {NAME}"]["spec"]["template"]["spec"]["serviceAccountName"]
        bound = [
            key
            for key, each in found.items()
            if each["kind"].endswith("RoleBinding") and any(subject.get("name") == account for subject in each["subjects"])
        ]
        self.assertEqual(sorted(bound), ["ClusterRoleBinding /crownlabs-dashboard", f"RoleBinding {NAME}"])
        # The only content that it reads with its own account, and the only object that it writes.
        record = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["crownlabs-peers"], "verbs": ["list", "watch", "patch"]}
        self.assertEqual(found[f"Role {NAME}"]["rules"], [record])
        self.assertIn(f"ConfigMap {NAMESPACE}/crownlabs-peers", found)
        impersonates = {"dashboard": {"config": {"controllers": {"dashboard": {"identity": "impersonate"}}}}}
        [watch, announcements, *more] = self.found(impersonates)["ClusterRole /crownlabs-dashboard"]["rules"]
        self.assertEqual([watch, announcements], rules)
        self.assertEqual(more, yaml.safe_load((CHART / "files/impersonation.yaml").read_text())["rules"])
        # Without a constraint, the verb would give the dashboard everything that its users may do.
        verbs = {verb for rule in more for verb in rule["verbs"]}
        self.assertEqual({verb for verb in verbs if not verb.startswith("impersonate-on:user-info:")}, {"impersonate:user-info"})

    def test_its_pods_run_only_the_dashboard_and_the_others_do_not(self):
        configuration = lambda name: yaml.safe_load(self.found()[f"ConfigMap {name}"]["data"]["crownlabs.yaml"])
        own = configuration(NAME)
        self.assertEqual([loop for loop, keys in own["controllers"].items() if keys.get("enabled", True)], ["dashboard"])
        self.assertEqual(own["leaderElection"], {"enabled": False, "namespace": NAMESPACE})
        keys = own["controllers"]["dashboard"]
        self.assertEqual(keys["publicUrl"], f"https://{HOST}")
        self.assertEqual(keys["sessionKeyFile"], "/etc/crownlabs-files/dashboard/session-key")
        # Mails of the other loops link to the dashboard.
        others = configuration(f"{NAMESPACE}/crownlabs")["controllers"]
        self.assertEqual(others["dashboard"], {"publicUrl": f"https://{HOST}"})
        self.assertNotIn(f"Deployment {NAME}", by_key(rendered()))

    def test_machines_with_hosts_of_their_own_have_its_login(self):
        def access(*values):
            found = by_key(rendered(*values))[f"ConfigMap {NAMESPACE}/crownlabs"]
            return yaml.safe_load(found["data"]["crownlabs.yaml"])["controllers"]["instance"].get("access")

        def instance(**keys):
            return {"config": {"controllers": {"instance": keys}}}

        login = {"authUrl": f"http://crownlabs-login.{NAMESPACE}.svc.cluster.local/auth", "signInUrl": f"https://{HOST}/login/machine"}
        self.assertEqual(access(ON), {"mode": "daemon", "exams": "daemon", "daemon": login})
        self.assertEqual(access(ON, instance(access={"exams": "none"})), {"mode": "daemon", "exams": "none", "daemon": login})
        self.assertIsNone(access(ON, instance(urls="path")))
        self.assertIsNone(access())

    def test_peers_have_desktops_if_the_login_of_the_daemon_guards_them(self):
        def desktops(*values):
            return yaml.safe_load(self.found(*values)[f"ConfigMap {NAME}"]["data"]["crownlabs.yaml"])["controllers"]["dashboard"].get("peerDesktops")

        self.assertIs(desktops(), True)
        self.assertIsNone(desktops({"config": {"controllers": {"instance": {"urls": "path"}}}}))

    def test_it_shows_names_if_the_bastion_is_in_the_cluster(self):
        def by_name(*values):
            return yaml.safe_load(self.found(*values)[f"ConfigMap {NAME}"]["data"]["crownlabs.yaml"])["controllers"]["dashboard"].get("sshByName")

        bastion = {"bastion": {"enabled": True}}
        other = {"dashboard": {"config": {"controllers": {"dashboard": {"sshByName": False}}}}}
        self.assertIsNone(by_name())
        self.assertIs(by_name(bastion), True)
        self.assertIs(by_name(bastion, other), False)
        pods = [each["spec"]["template"]["spec"] for key, each in self.found(bastion).items() if key == "Deployment crownlabs-bastion/crownlabs-bastion"]
        self.assertEqual([(pod.get("dnsPolicy"), pod.get("hostNetwork")) for pod in pods], [(None, None)])

    def test_it_has_the_terminals_of_the_bastion(self):
        def url(*values):
            return yaml.safe_load(self.found(*values)[f"ConfigMap {NAME}"]["data"]["crownlabs.yaml"])["controllers"]["dashboard"].get("webSshUrl")

        def bastion(**loops):
            return {"bastion": {"enabled": True, "config": {"controllers": loops}}}

        self.assertIsNone(url())
        self.assertEqual(url(bastion()), "ws://crownlabs-web-ssh.crownlabs-bastion:8085/webssh")
        self.assertEqual(url(bastion(webSsh={"listen": "0.0.0.0:9000"})), "ws://crownlabs-web-ssh.crownlabs-bastion:9000/webssh")
        self.assertIsNone(url(bastion(webSsh={"enabled": False})))
        service = self.found(bastion())["Service crownlabs-bastion/crownlabs-web-ssh"]
        self.assertEqual([port["port"] for port in service["spec"]["ports"]], [8085])
        own = "wss://ssh.example.org/webssh"
        self.assertEqual(url(bastion(), {"dashboard": {"config": {"controllers": {"dashboard": {"webSshUrl": own}}}}}), own)

    def test_missing_settings_are_reported(self):
        for values, message in (
            ({"dashboard": {"host": ""}}, "dashboard.host"),
            ({"dashboard": {"secret": {"name": ""}}}, "dashboard.secret.name"),
            ({"dashboard": {"config": {"controllers": {"tenant": {"enabled": True}}}}}, "set it below config"),
            ({"config": {"controllers": {"dashboard": {"enabled": True}}}}, "set dashboard.enabled"),
            ({"dashboard": {"httpRoute": {"enabled": True}}}, "dashboard.httpRoute.parentRefs"),
        ):
            done = template(ON, values)
            self.assertNotEqual(done.returncode, 0, values)
            self.assertIn(message, done.stderr)

    def test_only_an_ingress_or_a_gateway_reaches_it(self):
        self.assertEqual([key for key in self.found() if key.startswith(("Ingress", "HTTPRoute")) and key.endswith(NAME)], [])
        gateway = {"enabled": True, "parentRefs": [{"name": "gateway", "namespace": "infra"}]}
        found = self.found({"dashboard": {"ingress": {"enabled": True}, "httpRoute": gateway}})
        ingress, route = found[f"Ingress {NAME}"]["spec"], found[f"HTTPRoute {NAME}"]["spec"]
        self.assertEqual((ingress["rules"][0]["host"], route["hostnames"]), (HOST, [HOST]))
        self.assertEqual(ingress["tls"], [{"hosts": [HOST], "secretName": "crownlabs-dashboard-ingress-cert"}])
        [rule, *_] = found[f"NetworkPolicy {NAME}"]["spec"]["ingress"]
        self.assertEqual(rule["ports"], [{"port": "dashboard"}])
        self.assertEqual(rule["from"][0]["namespaceSelector"]["matchLabels"], {"kubernetes.io/metadata.name": "ingress-nginx"})
