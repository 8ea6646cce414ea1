//! What no Tenant may hold, whoever writes it, and what is odd enough for a warning. What was stored before
//! is not held against a change of something else.

use crate::api::public_key::{self, PublicKeyError};
use crate::api::quantity::RawQuantity;
use crate::api::tenant::{Tenant, TenantSpec};
use crate::webhook::decision::Denial;

/// Checks the members that a schema cannot; the sentences that it returns are warnings.
///
/// # Errors
/// With what is wrong, where, and what would be right.
pub fn check(old: Option<&Tenant>, new: &Tenant) -> Result<Vec<String>, Denial> {
    let before = old.map(|old| &old.spec);
    let mut warnings = Vec::new();
    for (place, key) in new.spec.public_keys.iter().enumerate() {
        if before.is_some_and(|before| before.public_keys.contains(key)) {
            continue;
        }
        match public_key::checked(key) {
            Ok(_) => {}
            Err(fault @ PublicKeyError::LineBreak) => {
                return Err(Denial::malformed(format!("spec.publicKeys[{place}] {fault}")));
            }
            Err(fault) => {
                warnings.push(format!("spec.publicKeys[{place}] {fault}: it opens no machine"));
            }
        }
    }
    let known = before.map_or_else(Vec::new, amounts);
    for (name, amount) in amounts(&new.spec) {
        if !known.contains(&(name, amount)) {
            judge(name, amount, &mut warnings)?;
        }
    }
    Ok(warnings)
}

/// The amounts of a Tenant, by their place; those that are absent are left out.
fn amounts(spec: &TenantSpec) -> Vec<(&'static str, &RawQuantity)> {
    let quota = spec.quota.as_ref();
    let personal = spec.personal_workspace.as_ref();
    [
        ("spec.quota.cpu", quota.map(|quota| &quota.cpu)),
        ("spec.quota.memory", quota.map(|quota| &quota.memory)),
        ("spec.personalWorkspace.cpu", personal.map(|personal| &personal.cpu)),
        ("spec.personalWorkspace.memory", personal.map(|personal| &personal.memory)),
    ]
    .into_iter()
    .filter_map(|(name, amount)| Some((name, amount?)))
    .collect()
}

fn judge(name: &str, amount: &RawQuantity, warnings: &mut Vec<String>) -> Result<(), Denial> {
    match amount.parse() {
        Ok(amount) if amount.is_zero() => {
            warnings.push(format!("{name} is 0: no Instance can start"));
            Ok(())
        }
        Ok(amount) if !amount.is_negative() => Ok(()),
        _ => Err(Denial::malformed(format!(
            "{name} is {:?}: an amount such as 500m or 4Gi, not below 0, is expected",
            amount.as_str()
        ))),
    }
}
