//! Tests of whole files: the decoded values, and the reported faults.

mod access;
mod automation;
mod described;
mod faults;
mod image_list;
mod mail;
mod queries;
mod reference;
mod route_policy;

use std::collections::BTreeMap;

use super::*;

/// The two keys that every file contains, in lines 1 and 2.
const HEAD: &str = "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\n";

/// The faults of a text, one per line, as an administrator sees them.
fn faults(text: &str) -> Vec<String> {
    match Config::parse("f.yaml", text) {
        Ok(config) => panic!("accepted: {config:?}"),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

/// The faults of a text below the head; its first line is line 3.
fn faults_below(text: &str) -> Vec<String> {
    faults(&format!("{HEAD}{text}"))
}

fn parsed(text: &str) -> Config {
    Config::parse("f.yaml", &format!("{HEAD}{text}")).unwrap()
}

#[test]
fn the_default_file_reads_back() {
    assert_eq!(Config::parse("default", &default_document()).unwrap(), Config::default());
}

#[test]
fn the_file_in_the_repository_is_the_default() {
    let written = include_str!("../../../config/crownlabs.yaml");
    assert!(
        written == default_document(),
        "config/crownlabs.yaml is out of date: run `crownlabs config default > config/crownlabs.yaml`"
    );
}

#[test]
fn every_key_of_the_default_file_has_a_comment() {
    let document = default_document();
    let lines: Vec<&str> = document.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        assert!(line.chars().count() <= 100 || !line.trim_start().starts_with('#'), "too long: {line}");
        // Administrators choose their own labels.
        let is_key = !line.is_empty() && !line.trim_start().starts_with('#');
        let is_label = ["crownlabs.polito.it/", "kubernetes.io/"].iter().any(|domain| line.contains(domain));
        if is_key && !is_label || line.starts_with("apiVersion") {
            assert!(lines[index - 1].trim_start().starts_with("# "), "no comment above {line:?}");
        }
    }
}

#[test]
fn the_demonstration_differs_from_the_default_where_it_says() {
    let demo = Config::parse("demo.yaml", include_str!("../../../config/demo.yaml")).unwrap();
    let mut expected = Config::default();
    expected.server.metrics = ListenAddress(Some(([127, 0, 0, 1], 18080).into()));
    expected.server.health = ListenAddress(Some(([127, 0, 0, 1], 18081).into()));
    expected.leader_election.enabled = false;
    let snapshot = &mut expected.controllers.snapshot;
    snapshot.vm_registry = "registry.example.org".to_owned();
    snapshot.vm_registry_secret = "registry-credentials".to_owned();
    snapshot.pusher = Pusher::Buildah;
    snapshot.pusher_memory_request = "256Mi".parse().unwrap();
    snapshot.pusher_memory_limit = "1Gi".parse().unwrap();
    expected.controllers.instance.website_base_url = "labs.example.org".to_owned();
    expected.controllers.instance.instances_auth_url = "https://labs.example.org/auth".to_owned();
    expected.controllers.instance.local_vm.enabled = true;
    let exposure = &mut expected.controllers.public_exposure;
    exposure.ip_pool = vec!["172.18.0.240/28".to_owned()];
    exposure.common_annotations =
        BTreeMap::from([("metallb.io/allow-shared-ip".to_owned(), "pe".to_owned())]);
    assert_eq!(demo, expected);
}

#[test]
fn values_are_read() {
    let config = parsed(
        "selector: {b: x, a: \"\"}
resync: {min: 90m, max: 1d}
leaderElection: {enabled: false, leaseDuration: 1m, renewDeadline: 40s, retryPeriod: 500ms}
server: {metrics: \"[::1]:9\", health: ''}
log: {format: json, filter: 'warn,crownlabs=debug'}
controllers:
  instance:
    enabled: false
    concurrency: 256
    access:
      mode: perInstance
      oauth2Proxy:
        image: r.example.org/proxy:1
        issuerUrl: https://auth.example.com/realms/labs
        clientId: instances
        clientSecretFile: /secrets/instances
    vmLogin: {passwordHash: $6$salt$hash, sshPassword: true}
    gatewayApi:
      parentRefs:
      - {name: public.gateway, namespace: ingress}
    localVm: {enabled: true, namespaces: [images, other]}
integrations:
  keycloak:
    enabled: true
    url: https://auth.example.com/
    realm: people of the labs
    clientId: client-operator
    clientSecretFile: /secrets/keycloak
    timeout: 3s
",
    );
    assert_eq!(crate::api::labels::selector_string(&config.selector), "a=,b=x");
    assert_eq!(config.resync.min.get().as_secs(), 5_400);
    assert_eq!(config.resync.max.get().as_secs(), 86_400);
    assert!(!config.leader_election.enabled);
    assert_eq!(config.leader_election.retry_period.get().as_millis(), 500);
    assert_eq!(config.leader_election.namespace, "crownlabs-system");
    assert_eq!(config.server.metrics.address(), Some("[::1]:9".parse().unwrap()));
    assert_eq!(config.server.health.address(), None);
    assert_eq!((config.log.format, &*config.log.filter), (LogFormat::Json, "warn,crownlabs=debug"));
    let instance = config.controllers.instance;
    assert!(!instance.enabled);
    assert_eq!(instance.concurrency, 256);
    assert_eq!(instance.access.mode, AccessMode::PerInstance);
    assert_eq!(instance.access.oauth2_proxy.issuer_url, "https://auth.example.com/realms/labs");
    assert_eq!(instance.access.oauth2_proxy.image, "r.example.org/proxy:1");
    assert!(instance.vm_login.ssh_password);
    let gateway = ParentRef { name: "public.gateway".to_owned(), namespace: "ingress".to_owned() };
    assert_eq!(instance.gateway_api.parent_refs, [gateway]);
    assert_eq!(instance.local_vm.namespaces, ["images", "other"]);
    assert_eq!(instance.container_images, ContainerImages::default());
    let keycloak = config.integrations.keycloak;
    assert!(keycloak.enabled && !keycloak.compatibility_mode);
    assert_eq!(keycloak.url, "https://auth.example.com/");
    assert_eq!(keycloak.realm, "people of the labs");
    assert_eq!(keycloak.roles_client_id, "");
    assert_eq!(keycloak.timeout.get().as_secs(), 3);
}

#[test]
fn files_that_are_no_mapping() {
    let expected = "expected a mapping that begins with apiVersion and kind";
    for text in ["", "\n\n", "# only a comment\n", "---\n", "null\n"] {
        assert_eq!(faults(text), [format!("f.yaml: empty; {expected}")], "{text:?}");
    }
    assert_eq!(faults("- a\n- b\n"), [format!("f.yaml:1: a list; {expected}")]);
    assert_eq!(faults("hello\n"), [format!("f.yaml:1: \"hello\" is text; {expected}")]);
    assert_eq!(faults("{}\n").len(), 2, "apiVersion and kind are missing");
}

#[test]
fn yaml_that_cannot_be_read_is_reported_with_its_line() {
    let unclosed = faults_below("log: {format: text\nserver: 1\n");
    assert_eq!(unclosed.len(), 1);
    assert!(unclosed[0].starts_with("f.yaml:4: not valid YAML: "), "{unclosed:?}");
    let tab = faults_below("log:\n\tformat: text\n");
    assert!(tab[0].starts_with("f.yaml:4: not valid YAML: "), "{tab:?}");
    let anchor = faults_below("log: *nothing\n");
    assert!(anchor[0].starts_with("f.yaml:3: not valid YAML: "), "{anchor:?}");
    let tag = faults_below("log: !secret {format: text}\n");
    assert!(tag[0].starts_with("f.yaml:3: not valid YAML: "), "{tag:?}");
    let template = faults_below("log: {{ .Values.log }}\n");
    assert!(template[0].starts_with("f.yaml:3: not valid YAML: "), "{template:?}");
}

#[test]
fn depth_cannot_exhaust_the_stack() {
    // A test has 2 MiB of stack, like a thread of the runtime. The file is read again while the daemon runs.
    for depth in [10, 100, 1_000, 10_000, 100_000] {
        let list = faults_below(&format!("log: {}\n", "[".repeat(depth)));
        assert!(list[0].starts_with("f.yaml:"), "{list:?}");
        let closed = faults_below(&format!("log: {}1{}\n", "[".repeat(depth), "]".repeat(depth)));
        assert!(closed[0].starts_with("f.yaml:3: "), "{closed:?}");
        let mapping = faults_below(&format!("log: {}1{}\n", "{log: ".repeat(depth), "}".repeat(depth)));
        assert!(mapping[0].starts_with("f.yaml:3: "), "{mapping:?}");
    }
}

#[test]
fn a_second_document_is_refused() {
    let second = format!("{HEAD}---\n{HEAD}");
    let problem = "a second YAML document begins; expected one document in the file";
    assert_eq!(faults(&second), [format!("f.yaml:4: {problem}")]);
    // The markers of beginning and end do not begin a second document.
    assert!(Config::parse("f.yaml", &format!("---\n{HEAD}...\n")).is_ok());
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.yaml");
    let error = Config::load(&path).unwrap_err();
    let begin = format!("the configuration file {} cannot be read: ", path.display());
    assert_eq!(error.to_string(), format!("{begin}it does not exist; create it, or correct the path"));
    std::fs::write(&path, b"log: \xff\n").unwrap();
    let error = Config::load(&path).unwrap_err().to_string();
    assert_eq!(error, format!("{begin}line 1 is not encoded in UTF-8; save the file as UTF-8"));
    std::fs::write(&path, HEAD.replace('\n', "\r\n")).unwrap();
    assert_eq!(Config::load(&path).unwrap(), Config::default());
    std::fs::write(&path, "\u{feff}lgo: 1").unwrap();
    let error = Config::load(&path).unwrap_err().to_string();
    assert!(error.contains(&format!("{}:1: lgo: unknown key", path.display())), "{error}");
}
