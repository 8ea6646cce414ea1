//! The actions of the account page.

#![expect(clippy::unnecessary_wraps, reason = "all plans have one type")]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::pasted::key;
use crate::api::public_key::canonical;
use crate::api::tenant::{Tenant, TenantKind};
use crate::controllers::dashboard::action::entry::{Action, Field, Form, Input, Place, Plan, Right};
use crate::controllers::dashboard::action::json_patch::{append, remove};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;

/// Adds an SSH key.
pub const ADD_KEY: Action = Action {
    name: "account.keys.add",
    path: "/account/keys/add",
    page: paths::ACCOUNT,
    right: Right::to::<TenantKind>("patch"),
    place: Place::Section,
    fields: &[Field { name: "key", id: "key", input: Input::Lines }],
    plan: Plan::PatchTenant(add_key),
};
/// Removes an SSH key, which the form identifies by its digest.
pub const REMOVE_KEY: Action = Action {
    name: "account.keys.remove",
    path: "/account/keys/remove",
    page: paths::ACCOUNT,
    right: Right::to::<TenantKind>("patch"),
    place: Place::Section,
    fields: &[],
    plan: Plan::PatchTenant(remove_key),
};
/// All actions of the page.
pub const ACTIONS: &[&Action] = &[&ADD_KEY, &REMOVE_KEY];

/// Returns the identifier of an entry of `spec.publicKeys` in a form: the SHA-256 of its text.
pub fn entry(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

/// Adds a key. The form contains the number of keys that its page shows: a later key was added by the same form, which was
/// sent twice.
fn add_key(tenant: &Tenant, form: &Form<'_>) -> Result<Option<Vec<Value>>, Problem> {
    let text = form.get("key").trim();
    let key = key(text)?;
    let keys = &tenant.spec.public_keys;
    let shown = form.get("count").parse::<usize>().unwrap_or(usize::MAX);
    match keys.iter().position(|known| canonical(known).as_ref() == Ok(&key)) {
        Some(position) if position >= shown => Ok(None),
        Some(_) => Err(Problem::KnownKey),
        None => Ok(Some(append("publicKeys", keys.is_empty(), text.into()))),
    }
}

fn remove_key(tenant: &Tenant, form: &Form<'_>) -> Result<Option<Vec<Value>>, Problem> {
    let keys = tenant.spec.public_keys.iter().enumerate();
    let mut equal = keys.filter(|(_, known)| entry(known) == form.get("entry")).map(|(position, _)| position);
    // If there are fewer equal keys than on the page, the form was sent twice.
    let others = form.get("same").parse::<usize>().map_or(0, |same| same.saturating_sub(1));
    let position = equal.next().filter(|_| equal.count() >= others);
    Ok(position.map(|position| remove("publicKeys", position)))
}
