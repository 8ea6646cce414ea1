//! Decides from the last login whether a Tenant has a personal namespace.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Settings;
use super::children::Children;
use super::observe::Observed;
use crate::controllers::shared::responsibility::Standing;

/// Whether the personal namespace of a Tenant should exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The e-mail address is not confirmed yet: the namespace is not created, changed or deleted.
    Undecided,
    /// The namespace should exist for at least this time; `None` as long as it is not empty.
    Wanted(Option<Duration>),
    /// The namespace should not exist: it is empty, and the last login of the Tenant is long ago.
    Unwanted,
}

/// Whether the personal namespace should exist. It is kept while it contains Instances or Templates. Templates
/// keep it even without a personal workspace: they may be older than the change that ended it.
pub fn presence(observed: &Observed, settings: &Settings, now: Timestamp) -> Presence {
    let config = &settings.config;
    // The status contains the last answer of Keycloak. Without Keycloak, the e-mail address counts as confirmed.
    let is_confirmed = !settings.has_keycloak || observed.tenant.status.keycloak.user_confirmed;
    if config.wait_user_verification && !is_confirmed {
        return Presence::Undecided;
    }
    let keep_alive = SignedDuration::try_from(config.keep_alive.get()).unwrap_or(SignedDuration::MAX);
    // If there was no login, the keep-alive has expired. A login in the future counts as now.
    let login = observed.tenant.spec.last_login.as_ref();
    let left = login.map_or(SignedDuration::MIN, |at| keep_alive.saturating_sub(now.duration_since(at.0)));
    if !left.is_negative() {
        // It expires only after this time, so the next reconcile follows one millisecond later.
        let wake = left.saturating_add(SignedDuration::from_millis(1));
        return Presence::Wanted(Some(wake.unsigned_abs()));
    }
    let is_empty = observed.instances == 0 && observed.templates == 0;
    if is_empty { Presence::Unwanted } else { Presence::Wanted(None) }
}

/// The message of `crownlabs plan` about a Tenant whose personal namespace is deleted or not created.
pub fn remark(observed: &Observed, settings: &Settings, now: Timestamp) -> Option<String> {
    let is_released = observed.standing == Standing::Deselected;
    if is_released || presence(observed, settings, now) != Presence::Unwanted {
        return None;
    }
    let message = if (Children { observed, settings }).namespace().removal().is_some() {
        "the personal namespace is deleted, because it contains neither Instances nor Templates and the last login is \
         too long ago (spec.lastLogin, controllers.tenant.keepAlive); it is created again at the next one"
    } else {
        "the last login is too long ago for a personal namespace (spec.lastLogin, controllers.tenant.keepAlive): it is \
         created at the next one"
    };
    Some(message.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controllers::tenant::fixtures::{observed, owners, settings};
    use crate::fixtures::{at, object};
    use crate::kinds::NamespaceKind;

    #[test]
    fn a_remark_says_whether_the_namespace_is_deleted_or_not_created() {
        let mut observed = observed(&json!({}), &[]);
        let told = |observed: &Observed| remark(observed, &settings(), at(2 * 24 * 3600));
        let absent = told(&observed).expect("a remark");
        assert!(absent.ends_with(": it is created at the next one"), "{absent}");
        let metadata = json!({"name": "tenant-ada-rossi", "uid": "n1", "ownerReferences": owners("u1")});
        observed.children.set::<NamespaceKind>([object(json!({"metadata": metadata}))]);
        let deleted = told(&observed).expect("a remark");
        assert!(deleted.starts_with("the personal namespace is deleted, because "), "{deleted}");
        let kept = Observed { templates: 1, ..observed.clone() };
        let released = Observed { standing: Standing::Deselected, ..observed };
        assert_eq!((told(&kept), told(&released)), (None, None));
    }
}
