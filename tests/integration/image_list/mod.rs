//! Image lists from real registries without login, with a password and with tokens, and from a server that lies and
//! hangs.

mod faults;
mod real;
mod registry;
mod scripted;

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::exam_server::{Answer, ExamServer};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::audit::{AuditEntry, Mark};

const KIND: &str = "imagelists";

/// The images of a list, each as `name: tag tag`.
fn images(list: &Value) -> Vec<String> {
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .map(|text| text.as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let line = |image: &Value| {
        format!("{}: {}", image["name"].as_str().unwrap_or_default(), texts(&image["versions"]).join(" "))
    };
    list["spec"]["images"].as_array().into_iter().flatten().map(line).collect()
}

/// Waits until a list satisfies `is_wanted`. Returns it.
fn await_images(lab: &Lab, name: &str, is_wanted: impl Fn(&[String]) -> bool) -> Value {
    wait_until(PATIENCE, || {
        let list = lab.get(KIND, "", name).ok_or_else(|| format!("ImageList {name}"))?;
        let found = images(&list);
        if is_wanted(&found) {
            return Ok(list);
        }
        let begin: Vec<&String> = found.iter().take(5).collect();
        Err(format!("{name}: {} images, {begin:?}; {}", found.len(), list["status"]))
    })
}

/// Waits until the condition `Stale` of a list has this status and reason. Returns the list.
fn await_stale(lab: &Lab, name: &str, status: &str, reason: &str) -> Value {
    wait_until(PATIENCE, || {
        let list = lab.get(KIND, "", name).ok_or_else(|| format!("ImageList {name}"))?;
        let found = stale(&list);
        if found["status"] == status && found["reason"] == reason {
            return Ok(list);
        }
        Err(format!("{name}: {status} {reason}, is {found}"))
    })
}

/// The keys of the loop for one list, with a server that does not answer like a registry yet.
pub fn keys(name: &str, server: &ExamServer) -> String {
    let url = format!("http://{}", server.host());
    format!(
        "updateInterval: 5s, registries: [{{imageListName: {name}, url: \"{url}\", registryName: r.example.org}}]"
    )
}

/// Makes the loop do everything that it does with the list of [`keys`], once.
pub fn exercise(lab: &Lab, name: &str, server: &ExamServer) {
    await_stale(lab, name, "True", "RegistryFailed");
    server.set("v2/a/tags/list", Answer::Body(200, r#"{"name": "a", "tags": ["1"]}"#));
    server.set("v2/_catalog", Answer::Body(200, r#"{"repositories": ["a"]}"#));
    let list = await_stale(lab, name, "False", "RegistryRead");
    assert_eq!(images(&list), ["a: 1"]);
}

/// The condition `Stale` of a list.
fn stale(list: &Value) -> Value {
    let conditions = list["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == "Stale").cloned().unwrap_or_default()
}

/// The message of the condition `Stale` of a list.
fn message(list: &Value) -> String {
    stale(list)["message"].as_str().unwrap_or_default().to_owned()
}

/// The number of finished queries of a list.
fn queries(daemon: &Daemon, name: &str, result: &str) -> u64 {
    let begin = format!("image_list_queries_total{{image_list=\"{name}\",result=\"{result}\"}} ");
    let metrics = daemon.metrics();
    metrics.lines().find_map(|line| line.strip_prefix(&begin)?.parse().ok()).unwrap_or_default()
}

/// Waits until this many more queries of each of these lists have ended.
fn await_queries(daemon: &Daemon, names: &[&str], result: &str, more: u64) {
    let wanted: Vec<(&str, u64)> =
        names.iter().map(|name| (*name, queries(daemon, name, result) + more)).collect();
    for (name, wanted) in wanted {
        wait_until(PATIENCE, || match queries(daemon, name, result) {
            found if found >= wanted => Ok(()),
            found => Err(format!("{name}: {wanted} queries that have {result}, are {found}")),
        });
    }
}

/// The writes of the daemon to these lists since a position of the audit log.
fn writes(lab: &Lab, mark: Mark, names: &[&str]) -> Vec<AuditEntry> {
    let entries = lab.cluster.audit().since(mark).expect("the audit log");
    let is_ours = |entry: &AuditEntry| {
        entry.is_write()
            && entry.user_agent.starts_with("crownlabs/")
            && entry.resource == KIND
            && names.contains(&entry.name.as_str())
    };
    entries.into_iter().filter(is_ours).collect()
}

/// A list that a user has created before.
fn existing(name: &str) -> String {
    json!({
        "apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "ImageList",
        "metadata": {"name": name, "labels": {"theirs": "yes"}, "annotations": {"theirs": "too"}},
        "spec": {"registryName": "r.example.org", "images": [{"name": "kept", "versions": ["1"]}]},
    })
    .to_string()
}
