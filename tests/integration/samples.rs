//! The samples of the project, and its manifests that no other test applies.

use serde_json::Value;

use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::Lab;
use crate::webhook;
use cluster::Options as ClusterOptions;

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests");
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/samples");

#[test]
fn all_samples_are_applied_by_one_command_to_an_empty_cluster() {
    let lab = Lab::start(ClusterOptions::default());
    let kubeconfig = lab.service_account();
    let port = reserved_port();
    let config = format!("webhook: {{enabled: true, listen: \"127.0.0.1:{port}\"}}\n");
    let selector = "production";
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector, config: &config });
    webhook::grant_everybody(&lab);
    webhook::install(&lab, selector, port);
    lab.kubectl(&["apply", "-f", SAMPLES]);
    for name in ["desktop-1", "server-1", "wireshark-1", "notebook-1", "pair-1"] {
        lab.await_phase("tenant-ada-rossi", name, "Ready");
    }
    lab.await_value("sharedvolumes", "workspace-netlab", "materials", "/status/phase", "Ready");
    lab.await_ready("workspaces", "netlab");
    lab.await_ready("tenants", "ada.rossi");
    lab.await_ready("tenants", "carlo.verdi");
    // The namespaces of the samples belong to the Workspace and the Tenant.
    for (namespace, owner) in [("workspace-netlab", "netlab"), ("tenant-ada-rossi", "ada.rossi")] {
        let namespace = lab.get("namespaces", "", namespace).expect("there");
        assert_eq!(namespace["metadata"]["ownerReferences"][0]["name"], Value::from(owner));
    }
    let again = lab.kubectl(&["apply", "-f", SAMPLES]);
    // The API server has added defaults to the environments of a Template, which kubectl cannot tell from a change.
    let mut others = again.lines().filter(|line| !line.starts_with("template.crownlabs.polito.it/"));
    assert!(others.all(|line| line.ends_with(" unchanged")), "{again}");
    my_files(&lab);
}

/// The Template of *My files* makes a machine that serves MyDrive below its own path.
fn my_files(lab: &Lab) {
    const NAMESPACE: &str = "tenant-ada-rossi";
    lab.kubectl(&["apply", "-f", &format!("{SAMPLES}/optional/my-files.yaml")]);
    lab.await_ready("workspaces", "utilities");
    let roles = r#"[{"name": "netlab", "role": "user"}, {"name": "utilities", "role": "user"}]"#;
    lab.patch("tenants", "", "ada.rossi", &format!("{{\"spec\": {{\"workspaces\": {roles}}}}}"));
    // It leaves its place to the next machine.
    lab.delete("instances", NAMESPACE, &["pair-1"]);
    lab.apply(
        "apiVersion: crownlabs.polito.it/v1alpha2\nkind: Instance\nmetadata: {name: files-1, namespace: tenant-ada-rossi}\n\
         spec:\n  template.crownlabs.polito.it/TemplateRef: {name: my-files, namespace: workspace-utilities}\n  \
         tenant.crownlabs.polito.it/TenantRef: {name: ada.rossi}\n",
    );
    lab.await_phase(NAMESPACE, "files-1", "Ready");
    let deployment = lab.get("deployments", NAMESPACE, "files-1").expect("there");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let all = |list: &str, member: &str| -> Vec<String> {
        let of = |item: &Value| item[member].as_str().expect("a text").to_owned();
        container[list].as_array().expect("a list").iter().map(of).collect()
    };
    assert_eq!(all("volumeMounts", "mountPath"), ["/config", "/media/mydrive"]);
    let known = all("env", "name");
    let arguments = container["args"].as_array().expect("arguments").iter().filter_map(Value::as_str);
    let names = arguments.filter_map(|argument| argument.strip_prefix("$(")?.strip_suffix(')'));
    let names: Vec<&str> = names.collect();
    assert_eq!(names, ["CROWNLABS_LISTEN_PORT", "CROWNLABS_BASE_PATH"]);
    assert!(names.iter().all(|name| known.iter().any(|known| known == name)), "{known:?}");
}

#[test]
fn the_network_policy_selects_the_pods_of_the_deployment_and_their_ports() {
    let lab = Lab::shared();
    let read = |name: &str| -> Value {
        let file = format!("{MANIFESTS}/{name}");
        // The API server accepts it, and knows all its fields.
        lab.kubectl(&["apply", "--dry-run=server", "--validate=strict", "-f", &file]);
        serde_saphyr::from_str(&std::fs::read_to_string(file).expect("the manifest")).expect("YAML")
    };
    let (policy, deployment) = (read("60-network-policy.yaml"), read("30-deployment.yaml"));
    assert_eq!(policy["metadata"]["namespace"], deployment["metadata"]["namespace"]);
    let template = &deployment["spec"]["template"];
    let selected = policy["spec"]["podSelector"]["matchLabels"].as_object().expect("labels");
    assert!(!selected.is_empty());
    for (label, value) in selected {
        assert_eq!(&template["metadata"]["labels"][label], value, "{label}");
    }
    let names = |ports: &Value, member: &str| -> Vec<String> {
        let name = |port: &Value| port[member].as_str().expect("a name").to_owned();
        ports.as_array().into_iter().flatten().map(name).collect()
    };
    let offered = names(&template["spec"]["containers"][0]["ports"], "name");
    let rules = policy["spec"]["ingress"].as_array().expect("rules");
    let mut admitted: Vec<String> = rules.iter().flat_map(|rule| names(&rule["ports"], "port")).collect();
    admitted.sort();
    assert_eq!(
        admitted,
        {
            let mut offered = offered;
            offered.sort();
            offered
        },
        "every port once"
    );
    // No rule lets pods reach the webhooks.
    let of_webhook =
        rules.iter().filter(|rule| names(&rule["ports"], "port").contains(&"webhook".to_owned()));
    for rule in of_webhook {
        let from = rule["from"].as_array().expect("not from anywhere");
        assert!(from.iter().all(|peer| peer["ipBlock"]["except"].is_array()), "{rule}");
    }
}
