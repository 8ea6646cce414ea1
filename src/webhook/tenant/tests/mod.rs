//! The tables of 05 §14b, a line a case.

mod defaulting;
mod judging;
mod noise;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Settings;
use crate::webhook::fixture::{World, tenant};
use crate::webhook::requester::Bypass;
use crate::webhook::review::Request;

const KEY: &str = "crownlabs.polito.it/operator-selector";
const OURSELVES: &str = "system:serviceaccount:crownlabs-system:crownlabs";

fn settings() -> Settings {
    Settings {
        selector: BTreeMap::from([(KEY.to_owned(), "production".to_owned())]),
        bypass: Bypass { groups: vec!["system:masters".to_owned()], own_user: OURSELVES.to_owned() },
        base_workspaces: vec!["utilities".to_owned()],
        personal_workspaces: true,
    }
}

fn now() -> Timestamp {
    "2026-11-20T10:00:00Z".parse().expect("a time")
}

/// Courses that one enrols in at once, by approval, or not by oneself, and the one of everybody;
/// two managers, an assistant, and somebody who is in nothing.
fn world() -> World {
    let quota = &json!({"cpu": "1", "memory": "1Gi", "instances": 1});
    World::default()
        .with_workspace("open", "immediate", quota)
        .with_workspace("asked", "withApproval", quota)
        .with_workspace("closed", "", quota)
        .with_workspace("other", "", quota)
        .with_workspace("utilities", "", quota)
        .with_tenant("teacher", &["closed:manager", "open:manager", "other:user"])
        .with_tenant("rector", &["utilities:manager"])
        .with_tenant("nobody", &[])
}

/// The Tenant `ada`, as it is stored, with the marks that the loop gives it.
fn stored(workspaces: &[&str]) -> Value {
    let mut object = tenant("ada", workspaces);
    object["metadata"]["labels"] = json!({KEY: "production"});
    object["metadata"]["finalizers"] = json!(["crownlabs.polito.it/tenant-operator"]);
    object["spec"]["lastLogin"] = "2026-11-01T08:00:00Z".into();
    object["spec"]["publicKeys"] = json!(["ssh-ed25519 AAAA ada"]);
    object["spec"]["createSandbox"] = false.into();
    object["spec"]["quota"] = json!({"cpu": "2", "memory": "4Gi", "instances": 3});
    object
}

fn by_administrator(mut request: Request) -> Request {
    request.user_info.groups.push("system:masters".to_owned());
    request
}
