//! Tests of the rules for Tenants.

mod defaulting;
mod enrolment;
mod members;
mod outcomes;
mod properties;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Settings;
use super::rules::validate;
use crate::fixtures::time;
use crate::webhook::decision::Decision;
use crate::webhook::fixture::{TestCluster, merged, request, tenant};
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
    time("2026-11-20T10:00:00Z")
}

/// Workspaces with each value of `autoEnroll`, the base Workspace (`utilities`), two managers, and a Tenant without
/// Workspaces.
fn cluster() -> TestCluster {
    let quota = &json!({"cpu": "1", "memory": "1Gi", "instances": 1});
    TestCluster::default()
        .with_workspace("open", "immediate", quota)
        .with_workspace("asked", "withApproval", quota)
        .with_workspace("closed", "", quota)
        .with_workspace("other", "", quota)
        .with_workspace("utilities", "", quota)
        .with_tenant("teacher", &["closed:manager", "open:manager", "other:user"])
        .with_tenant("rector", &["utilities:manager"])
        .with_tenant("nobody", &[])
}

/// The stored Tenant `ada`, with the label of the selector and the finalizer of the loop.
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

/// The same request, sent by an administrator.
fn by_administrator(mut request: Request) -> Request {
    request.user_info.groups.push("system:masters".to_owned());
    request
}

/// The decision of the rules with [`settings`], in [`cluster`].
fn decide(request: &Request) -> Decision {
    validate(request, &settings(), &cluster(), now())
}

/// The code of a refusal, or 200 for an admission.
fn code(decision: &Decision) -> u16 {
    decision.outcome.as_ref().err().map_or(200, |denial| denial.code)
}

/// The message of a refusal, or nothing for an admission.
fn message(decision: &Decision) -> String {
    decision.outcome.as_ref().err().map(ToString::to_string).unwrap_or_default()
}

/// A request of `user` to change the Workspaces of `ada`.
fn enrols(user: &str, before: &[&str], after: &[&str]) -> Request {
    let list = tenant("ada", after)["spec"]["workspaces"].clone();
    let new = merged(stored(before), &json!({"spec": {"workspaces": list}}));
    request(user, "tenants", stored(before), new)
}

/// A request of `user` to change `ada`, a user of `closed`, by this merge patch.
fn edits(user: &str, patch: &Value) -> Request {
    let old = stored(&["closed:user"]);
    request(user, "tenants", old.clone(), merged(old, patch))
}
