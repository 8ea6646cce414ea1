//! Checks values that the schema cannot check, for every user. Some are refused and some cause a warning. Stored values
//! are not checked again when another field changes.

use std::collections::HashSet;

use crate::api::denial::DenialReason;
use crate::api::public_key::{self, MOST_BYTES, MOST_KEYS, PublicKeyError};
use crate::api::quantity::RawQuantity;
use crate::api::tenant::{Tenant, TenantSpec};
use crate::webhook::decision::Denial;

/// Checks the SSH keys and the quantities of a Tenant, and returns warnings.
///
/// # Errors
/// When there are too many keys, a key has a line break, or a quantity is negative or invalid. The message names the
/// member and the expected value.
pub fn check(old: Option<&Tenant>, new: &Tenant) -> Result<Vec<String>, Denial> {
    let before = old.map(|old| &old.spec);
    let known = before.map_or(&[][..], |before| &before.public_keys);
    let keys = &new.spec.public_keys;
    check_limits(known, keys)?;
    let known: HashSet<&String> = known.iter().collect();
    let mut warnings = Vec::new();
    for (index, key) in keys.iter().enumerate().filter(|(_, key)| !known.contains(key)) {
        let Err(fault) = public_key::canonical(key) else { continue };
        let problem = format!("spec.publicKeys[{index}] {fault}");
        if fault == PublicKeyError::LineBreak {
            return Err(Denial::malformed(problem));
        }
        warnings.push(format!("{problem}: it cannot be used to log in"));
    }
    let known = before.map_or_else(Vec::new, quantities);
    for (name, amount) in quantities(&new.spec) {
        if !known.contains(&(name, amount)) {
            check_quantity(name, amount, &mut warnings)?;
        }
    }
    Ok(warnings)
}

/// Refuses keys that exceed the limits in number or length. A Tenant that already exceeded them may keep as many, but
/// not add more.
fn check_limits(known: &[String], keys: &[String]) -> Result<(), Denial> {
    let bytes = |keys: &[String]| keys.iter().map(String::len).sum::<usize>();
    for (what, number, before, most) in
        [("keys", keys.len(), known.len(), MOST_KEYS), ("bytes", bytes(keys), bytes(known), MOST_BYTES)]
    {
        if number > most && number > before {
            let message = format!("spec.publicKeys has {number} {what}: at most {most} are allowed");
            return Err(Denial::malformed(message).because(DenialReason::TooManyKeys, ""));
        }
    }
    Ok(())
}

/// The quantities of a Tenant with their paths, without absent quantities.
fn quantities(spec: &TenantSpec) -> Vec<(&'static str, &RawQuantity)> {
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

/// Refuses a quantity that is negative or invalid, and warns about zero.
fn check_quantity(name: &str, amount: &RawQuantity, warnings: &mut Vec<String>) -> Result<(), Denial> {
    match amount.parse() {
        Ok(amount) if amount.is_zero() => {
            warnings.push(format!("{name} is 0: no Instance can start"));
            Ok(())
        }
        Ok(amount) if !amount.is_negative() => Ok(()),
        _ => Err(Denial::malformed(format!(
            "{name} is {:?}: expected an amount such as 500m or 4Gi, not below 0",
            amount.as_str()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::time::{ClockId, clock_gettime};
    use serde_json::json;

    use super::*;

    /// A Tenant with this number of keys, all of the same length.
    fn tenant(first: char, number: usize) -> Tenant {
        let keys: Vec<String> = (0..number).map(|n| format!("{first}{n:010}")).collect();
        serde_json::from_value(json!({"metadata": {"name": "ada"}, "spec": {"publicKeys": keys}}))
            .expect("a Tenant")
    }

    #[test]
    fn many_keys_are_judged_in_linear_time() {
        // Comparing each new key with each old one would take 10,000 million comparisons.
        let (old, new) = (tenant('a', 100_000), tenant('b', 100_000));
        // The processor time of this thread does not depend on other programs.
        let used = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock"));
        let begin = used();
        let warnings = check(Some(&old), &new).expect("as many as before");
        assert_eq!(warnings.len(), 100_000, "none of them is known");
        assert_eq!(check(Some(&new), &new), Ok(Vec::new()), "all of them are known");
        let took = used().saturating_sub(begin);
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}
