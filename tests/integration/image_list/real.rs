//! Real registries: their images are listed, and nothing is written when nothing changes.

use std::fs;

use serde_json::{Value, json};

use super::registry::{Access, TokenServer, registry};
use super::{KIND, await_images, await_queries, await_stale, existing, images, message, writes};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::registry::Registry;

/// The lists of this test.
const LISTS: [&str; 3] = ["real-open", "real-password", "real-tokens"];

/// The tags from 0 to `count`, and one that is never listed.
fn tags(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("v{number}")).chain(["latest".to_owned()]).collect()
}

/// The number of tags of an image in a list. Each tag must be there once.
fn count(images: &[String], name: &str) -> usize {
    let begin = format!("{name}: ");
    let line = images.iter().find_map(|line| line.strip_prefix(&begin)).unwrap_or_default();
    let mut tags: Vec<&str> = line.split(' ').filter(|tag| !tag.is_empty()).collect();
    tags.sort_unstable();
    tags.dedup();
    tags.len()
}

#[test]
fn the_images_of_registries_are_listed_and_written_once() {
    let lab = Lab::shared_unsimulated();
    let issuer = TokenServer::start();
    let mut open = registry(&Access::Open);
    let password = registry(&Access::Password);
    let tokens = registry(&Access::Tokens(issuer.clone()));
    open.push("vm/many", &tags(500)).expect("pushed");
    // More than one page of the registry's catalogue.
    for number in 0..120 {
        open.push(&format!("r{number:03}"), &tags(1)).expect("pushed");
    }
    open.push("empty", &["latest".to_owned()]).expect("pushed");
    password.push("apps/editor", &tags(3)).expect("pushed");
    tokens.push("vm", &tags(2)).expect("pushed");
    lab.apply(&existing("real-open"));
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("password");
    fs::write(&secret, "s3cret\n").expect("written");
    let login = format!("username: ada, passwordFile: {}", secret.display());
    let config = format!(
        "controllers:
  imageList:
    enabled: true
    updateInterval: 5s
    registries:
    - {{imageListName: real-open, url: \"{}/\", registryName: pull.example.org}}
    - {{imageListName: real-password, url: \"{}\", registryName: r.example.org, project: apps, {login}}}
    - {{imageListName: real-tokens, url: \"{}\", registryName: t.example.org, tokenUrl: \"{}\", {login}}}\n",
        open.url(),
        password.url(),
        tokens.url(),
        issuer.url(),
    );
    let kubeconfig = lab.service_account();
    let options = Options { kubeconfig: &kubeconfig, selector: "real", config: &config };
    let daemon = Daemon::start(&options);
    let list = await_images(&lab, "real-open", |images| images.len() == 121);
    let found = images(&list);
    assert_eq!(count(&found, "vm/many"), 500);
    let mut sorted = found.clone();
    sorted.sort();
    assert_eq!(found, sorted, "by their names");
    assert!(!found.iter().any(|line| line.contains("latest")), "{found:?}");
    assert_eq!(list["spec"]["registryName"], "pull.example.org");
    assert_eq!(list["metadata"]["labels"], json!({"theirs": "yes"}));
    let list = await_images(&lab, "real-password", |images| images.len() == 1);
    assert_eq!(count(&images(&list), "editor"), 3, "without the project");
    assert_eq!(list["spec"]["projectBaseName"], "apps");
    assert_eq!(count(&images(&await_images(&lab, "real-tokens", |images| images.len() == 1)), "vm"), 2);
    for name in LISTS {
        await_stale(&lab, name, "False", "RegistryRead");
    }
    nothing_changes(&lab, daemon, &options);
    let daemon = Daemon::start(&options);
    others_are_respected(&lab, &open);
    an_outage(&lab, &daemon, &mut open);
    assert!(!daemon.log().contains("s3cret"), "{}", daemon.log());
    drop(daemon);
    lab.delete(KIND, "", &["real-password", "real-tokens"]);
}

/// An unchanged registry causes no write, nor does a restart.
fn nothing_changes(lab: &Lab, daemon: Daemon, options: &Options<'_>) {
    // A status is visible before its write is in the audit log. The next query begins only after the response to that
    // write.
    await_queries(&daemon, &LISTS, "succeeded", 1);
    let mark = lab.cluster.audit().mark().expect("the audit log");
    await_queries(&daemon, &LISTS, "succeeded", 2);
    drop(daemon);
    let daemon = Daemon::start(options);
    await_queries(&daemon, &LISTS, "succeeded", 2);
    let written = writes(lab, mark, &LISTS);
    assert!(written.is_empty(), "{written:#?}");
    let metrics = daemon.metrics();
    assert!(
        metrics.contains("image_list_last_success_timestamp_seconds{image_list=\"real-open\"} 1"),
        "{metrics}"
    );
}

/// Only the spec is ours: it is repaired, and updated when the registry changes.
fn others_are_respected(lab: &Lab, open: &Registry) {
    let before = lab.get(KIND, "", "real-open").expect("there");
    let theirs = json!({"metadata": {
        "labels": {"more": "labels"}, "finalizers": ["example.org/theirs"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "default",
            "uid": lab.get("namespaces", "", "default").expect("there")["metadata"]["uid"], "controller": true}],
    }, "spec": {"images": [], "registryName": "evil.example.org", "projectBaseName": "x"}});
    lab.patch(KIND, "", "real-open", &theirs.to_string());
    let healed = await_images(lab, "real-open", |images| images.len() == 121);
    assert_eq!(healed["spec"], before["spec"], "without the project");
    open.push("new/one", &tags(1)).expect("pushed");
    let list = await_images(lab, "real-open", |images| images.len() == 122);
    let metadata = &list["metadata"];
    assert_eq!(metadata["labels"], json!({"theirs": "yes", "more": "labels"}));
    assert_eq!(metadata["annotations"]["theirs"], "too");
    for member in ["finalizers", "ownerReferences"] {
        assert_eq!(metadata[member].as_array().map(Vec::len), Some(1), "{metadata}");
    }
    // A deleted list is created again once it is gone.
    lab.patch(KIND, "", "real-open", r#"{"metadata": {"finalizers": null}}"#);
    lab.delete(KIND, "", &["real-open"]);
    let list = await_images(lab, "real-open", |images| images.len() == 122);
    assert_eq!(list["metadata"]["labels"], Value::Null);
}

/// When its registry is down, a list stays as it was, says since when, and recovers.
fn an_outage(lab: &Lab, daemon: &Daemon, open: &mut Registry) {
    let before = lab.get(KIND, "", "real-open").expect("there");
    open.stop();
    // A query in progress ends with another message.
    let list = wait_until(PATIENCE, || {
        let list = await_stale(lab, "real-open", "True", "RegistryUnreachable");
        let said = message(&list);
        if said.contains("Connection refused") { Ok(list) } else { Err(said) }
    });
    assert_eq!(list["spec"], before["spec"]);
    let since = list["status"]["lastSuccessTime"].as_str().expect("a time").to_owned();
    let (said, end) = (message(&list), format!("; the list dates from {since}"));
    assert!(said.ends_with(&end), "{said}");
    wait_until(PATIENCE, || {
        let events = lab.events("default", "real-open");
        let is_told = |event: &String| event.starts_with("RegistryUnreachable: ") && event.ends_with(&end);
        let found = events.iter().any(is_told);
        found.then_some(()).ok_or_else(|| format!("the event in {events:?}"))
    });
    // The same failure is not written again; the first write is in the audit log before the next query begins.
    await_queries(daemon, &["real-open"], "failed", 1);
    let mark = lab.cluster.audit().mark().expect("the audit log");
    await_queries(daemon, &["real-open"], "failed", 2);
    let written = writes(lab, mark, &["real-open"]);
    assert!(written.is_empty(), "{written:#?}");
    open.start_again().expect("it starts");
    let list = await_stale(lab, "real-open", "False", "RegistryRead");
    assert_eq!((&list["spec"], &list["status"]["lastSuccessTime"]), (&before["spec"], &Value::Null));
}
