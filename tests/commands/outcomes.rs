//! The results to check after blocks that contain certain commands.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::documents::{Block, project};
use crate::lab::{PATIENCE, wait_until};
use crate::people;
use crate::site::{BASTION, NAMESPACE, RELEASE, Site, helm};
use cluster::keycloak::{KeycloakServer, OPERATOR, ROLES_CLIENT};

/// A block that has run.
pub struct After<'a> {
    /// The block.
    pub block: &'a Block,
    /// The output of the block.
    pub log: &'a str,
    /// The cluster.
    pub site: Option<&'a Site>,
    /// The Keycloak server.
    pub keycloak: Option<&'a KeycloakServer>,
    /// The objects of users before the block: see [`users_objects`].
    pub before: BTreeMap<String, Value>,
}

/// The text of a block, the expected result, and the function that checks it.
type Outcome = (&'static str, &'static str, fn(&After<'_>));

const OUTCOMES: [Outcome; 32] = [
    ("crownlabs plan -f manifests/samples", "as many objects as the text says", planned),
    ("crownlabs config from-values", "the steps that must be done", |after| {
        says(after, &["\nMust be done before the file can be used:\n  "]);
    }),
    ("helm install", "the Deployment", installed),
    ("kubectl apply -f manifests/samples", "samples that are ready", samples),
    ("kubectl apply -f manifests/ ", "a daemon that is ready", ready),
    ("kubectl get crownlabs", "the samples in a list", listed),
    ("kubectl apply -f manifests/bastion", "keys that the bastion has made", bastion),
    ("--from-file=webssh-bastion-master.pub", "a key", web_key),
    ("kubectl delete secret -n crownlabs-bastion", "new keys", bastion),
    ("helm uninstall", "no daemon", uninstalled),
    ("kubectl delete crd", "nothing of users", removed),
    ("kubectl patch tenant", "no Tenant", left),
    ("pod-security.kubernetes.io/enforce=restricted", "the label", labelled),
    ("--replicas=0", "no pods of the operators", |after| operators(after, 0)),
    ("--replicas=1", "a pod of each operator", |after| operators(after, 1)),
    ("--take-ownership", "everybody's rights", rights),
    ("helm -n labs rollback", "everybody's rights, and the webhooks", gone_back),
    ("delete secret -l owner=helm", "everybody's rights, and no release", retired),
    ("secret generic crownlabs-keycloak", "the secret of the client", |after| {
        client_secret(after, OPERATOR, "crownlabs-keycloak");
    }),
    ("oidc-audience-mapper", "the settings of the client, and what its tokens have", dashboard_client),
    ("secret generic crownlabs-dashboard", "the secret of the client", |after| {
        client_secret(after, "dashboard", "crownlabs-dashboard");
    }),
    ("kubectl label instance", "the label", exam),
    ("make demo METRICS=1", "the numbers, and their end", measured),
    ("make demo DASHBOARD=1", "a machine that is started on a page, and one that is refused", shown),
    ("crownlabs status  ", "the leader", |after| says(after, &["eader", "instance"])),
    ("crownlabs why $namespace", "the Instance and its Tenant", |after| {
        says(after, &["Instance tenant-ada-rossi/server-1 of Tenant ada.rossi, "]);
    }),
    ("crownlabs status $workspace", "the machines of the course", |after| {
        says(after, &["server-1", " cores\n"]);
    }),
    ("kubectl describe resourcequota", "the limit of Instances", |after| {
        says(after, &["count/instances.crownlabs.polito.it"]);
    }),
    ("kubectl auth whoami --user=student", "the user of the token", |after| {
        says(after, &["system:serviceaccount:tenant-ada-rossi:default"]);
    }),
    ("kubectl describe template", "both conditions", |after| says(after, &[" Valid\n", " Ready\n"])),
    ("kubectl auth can-i create instances", "that the Tenant may", |after| says(after, &["\nyes\n"])),
    ("check configuration.yaml --connect", "a line for the API server", |after| {
        says(after, &["\nok      API server: "]);
    }),
];

/// Asserts the expected results. Returns their names.
pub fn assert_all(after: &After<'_>) -> Vec<&'static str> {
    let commands = after.block.commands();
    let mut seen = vec!["it ended well"];
    for (part, what, look) in OUTCOMES {
        if commands.contains(part) {
            look(after);
            seen.push(what);
        }
    }
    seen
}

impl After<'_> {
    fn site(&self) -> &Site {
        self.site.unwrap_or_else(|| panic!("{}: it needs a scene with a cluster", self.block.place()))
    }

    fn get(&self, kind: &str, namespace: &str, name: &str) -> Value {
        let object = self.site().lab.get(kind, namespace, name);
        object.unwrap_or_else(|| panic!("{}: {kind} {namespace}/{name} is not there", self.block.place()))
    }
}

/// The uids of the Workspaces, Tenants and Instances; empty if their CRDs are not installed.
pub fn users_objects(site: Option<&Site>) -> BTreeMap<String, Value> {
    let Some(site) = site else { return BTreeMap::new() };
    let kinds = ["workspaces", "tenants", "instances"];
    let lists = kinds.into_iter().filter(|kind| {
        let crd = format!("{kind}.crownlabs.polito.it");
        matches!(site.lab.cluster.get("customresourcedefinitions", "", &crd), Ok(Some(_)))
    });
    let objects = lists.flat_map(|kind| site.lab.cluster.list(kind, "").unwrap_or_default());
    let named = |object: Value| {
        let metadata = &object["metadata"];
        (format!("{} {}", object["kind"], metadata["name"]), metadata["uid"].clone())
    };
    objects.map(named).collect()
}

fn says(after: &After<'_>, texts: &[&str]) {
    for text in texts {
        assert!(after.log.contains(text), "{text} is not in {}", after.log);
    }
}

fn measured(after: &After<'_>) {
    let series = "\ncrownlabs_instance_cpu_percent{namespace=\"tenant-ada-rossi\",";
    says(after, &[series, "\n  NOT_FOUND: "]);
}

fn shown(after: &After<'_>) {
    let texts = ["\n  The machine is starting.\n", " Ready Notebook in Network laboratory ", "\n  Start "];
    says(after, &texts);
    says(
        after,
        &["\n  notebook-1 In a cluster, this address shows the web application of the Template Notebook"],
    );
}

fn planned(after: &After<'_>) {
    let document = std::fs::read_to_string(project().join(&after.block.document)).expect("the document");
    let mut words = document.split_whitespace().skip_while(|word| *word != "prints");
    let said = words.find_map(|word| word.parse::<usize>().ok());
    let printed = after.log.lines().filter(|line| line.starts_with("apiVersion:")).count();
    assert_eq!(
        Some(printed),
        said,
        "objects, and what {} says: `prints the … objects`",
        after.block.document
    );
}

fn installed(after: &After<'_>) {
    let deployment = after.get("deployments", NAMESPACE, RELEASE);
    assert_eq!(deployment["metadata"]["annotations"]["meta.helm.sh/release-name"], RELEASE);
}

/// Waits until the samples are ready.
pub fn await_samples(site: &Site) {
    for name in ["desktop-1", "server-1", "wireshark-1", "notebook-1", "pair-1"] {
        site.lab.await_phase("tenant-ada-rossi", name, "Ready");
    }
}

fn samples(after: &After<'_>) {
    after.site().await_daemon();
    await_samples(after.site());
}

fn ready(after: &After<'_>) {
    after.site().await_daemon();
}

fn listed(after: &After<'_>) {
    for object in ["instance.crownlabs.polito.it/server-1", "tenant.crownlabs.polito.it/ada.rossi"] {
        assert!(after.log.contains(object), "{object} is not in\n{}", after.log);
    }
}

fn bastion(after: &After<'_>) {
    after.get("deployments", BASTION, BASTION);
    let lab = &after.site().lab;
    for name in ["crownlabs-bastion-operator-ssh-keys", "crownlabs-bastion-operator-web-master-key"] {
        wait_until(PATIENCE, || {
            lab.get("secrets", BASTION, name).ok_or_else(|| format!("the Secret {name}"))
        });
    }
}

fn web_key(after: &After<'_>) {
    let (kind, name, member) = if after.block.text.contains("create configmap") {
        ("configmaps", "webssh-public-key", "webssh-bastion-master.pub")
    } else {
        ("secrets", "crownlabs-bastion-operator-web-master-key", "webssh-bastion-master")
    };
    let data = after.get(kind, NAMESPACE, name)["data"][member].clone();
    let text = data.as_str().unwrap_or_default();
    // The beginning of a public key, and of a private one in base64.
    assert!(text.starts_with("ssh-ed25519 ") || text.starts_with("LS0tLS1CRUdJTi"), "{data}");
}

fn uninstalled(after: &After<'_>) {
    let lab = &after.site().lab;
    assert_eq!(lab.get("deployments", NAMESPACE, RELEASE), None, "the release is gone");
    let is_whole = after.block.text.contains("kubectl delete");
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let is_there = lab.get(kind, "", "crownlabs-webhook").is_some();
        assert_eq!(is_there, !is_whole, "{kind}: without them, a student can become a manager");
    }
    if !is_whole {
        assert!(!after.before.is_empty(), "there was something that could have gone");
        assert_eq!(users_objects(after.site), after.before, "CRDs and all objects of users stay");
    }
    if lab.get("namespaces", "", "labs").is_some() {
        rights(after);
    }
}

fn removed(after: &After<'_>) {
    assert_eq!(users_objects(after.site), BTreeMap::new());
    let lab = &after.site().lab;
    for namespace in ["tenant-ada-rossi", "workspace-netlab"] {
        assert!(!after.before.is_empty(), "there was something");
        lab.await_gone("namespaces", "", namespace);
    }
}

fn left(after: &After<'_>) {
    after.site().lab.await_gone("tenants", "", "ada.rossi");
}

fn labelled(after: &After<'_>) {
    let namespace = after.get("namespaces", "", NAMESPACE);
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
}

fn operators(after: &After<'_>, replicas: u32) {
    for name in crate::parts::OPERATORS {
        assert_eq!(after.get("deployments", "labs", name)["spec"]["replicas"], replicas, "{name}");
    }
}

fn rights(after: &After<'_>) {
    people::assert_rights(&after.site().lab);
}

fn gone_back(after: &After<'_>) {
    rights(after);
    for kind in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
        after.get(kind, "", "crownlabs-operator");
        assert_eq!(
            after.site().lab.get(kind, "", "crownlabs-webhook"),
            None,
            "it would refuse the operators"
        );
    }
}

fn retired(after: &After<'_>) {
    rights(after);
    let releases = after.site().run(helm(), &["list", "-n", "labs", "--all", "--short"]).expect("it lists");
    assert_eq!(releases, "");
    assert!(after.site().lab.list("deployments", "labs").is_empty());
}

fn client_secret(after: &After<'_>, client_id: &str, secret_name: &str) {
    let server = after.keycloak.expect("a scene with Keycloak");
    let client = server.find("/crownlabs/clients", "clientId", client_id).expect("the client");
    let path = format!("/crownlabs/clients/{}/client-secret", client["id"].as_str().expect("an identifier"));
    let secret = server.admin(&Method::GET, &path, &Value::Null).expect("its secret")["value"].clone();
    let secret = secret.as_str().expect("a text");
    let kubectl = [
        "get",
        "secret",
        "-n",
        NAMESPACE,
        secret_name,
        "-o",
        "go-template={{index .data \"client-secret\" | base64decode}}",
    ];
    assert_eq!(after.site().lab.kubectl(&kubectl).trim_end(), secret);
}

/// A user of a course gets an ID token with the role of the course, for the API server, too.
fn dashboard_client(after: &After<'_>) {
    let server = after.keycloak.expect("a scene with Keycloak");
    let ask = |method: Method, path: &str, body: &Value| {
        server.admin(&method, &format!("/crownlabs{path}"), body).unwrap_or_else(|error| panic!("{error:#}"))
    };
    let find = |path: &str, key: &str, value: &str| {
        server.find(&format!("/crownlabs{path}"), key, value).unwrap_or_else(|error| panic!("{error:#}"))
    };
    let id = |object: &Value| object["id"].as_str().expect("an identifier").to_owned();
    let client = find("/clients", "clientId", "dashboard");
    assert_eq!(client["publicClient"], false);
    assert_eq!(client["redirectUris"], json!(["https://labs.example.com/callback"]));
    assert_eq!(client["attributes"]["pkce.code.challenge.method"], "S256");
    assert_eq!(ask(Method::GET, "", &Value::Null)["revokeRefreshToken"], false);
    let roles = format!("/clients/{}/roles", id(&find("/clients", "clientId", ROLES_CLIENT)));
    ask(Method::POST, &roles, &json!({"name": "workspace-tea:user"}));
    ask(Method::POST, "/users", &json!({"username": "ada.rossi", "enabled": true}));
    let user = id(&find("/users", "username", "ada.rossi"));
    let role = json!([find(&roles, "name", "workspace-tea:user")]);
    let mapping =
        roles.replace("/roles", "").replace("/clients/", &format!("/users/{user}/role-mappings/clients/"));
    ask(Method::POST, &mapping, &role);
    let example = format!(
        "/clients/{}/evaluate-scopes/generate-example-id-token?scope=openid&userId={user}",
        id(&client)
    );
    let token = ask(Method::GET, &example, &Value::Null);
    assert_eq!(token["preferred_username"], "ada.rossi", "{token}");
    assert_eq!(token["groups"], json!(["workspace-tea:user"]), "{token}");
    assert_eq!(
        (&token["aud"], &token["azp"]),
        (&json!(["dashboard", ROLES_CLIENT]), &json!("dashboard")),
        "{token}"
    );
}

fn exam(after: &After<'_>) {
    let instance = after.get("instances", "crownlabs-exam", "exam-1-s123456");
    let labels = instance["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    let label = after.block.text.split_whitespace().find_map(|word| word.split_once('=')).expect("a label");
    assert_eq!(labels.get(label.0), Some(&label.1.into()));
}
