//! Decides from the last login whether a Tenant has a personal namespace.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Settings;
use super::observe::Observed;

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

/// Whether the personal namespace should exist. It is kept while it contains Instances or, if Tenants may have their
/// own Templates, Templates.
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
    let templates = config.personal_workspace.enabled && observed.templates > 0;
    if observed.instances > 0 || templates { Presence::Wanted(None) } else { Presence::Unwanted }
}

/// The message of `crownlabs plan` about a Tenant without a personal namespace.
pub fn remark(observed: &Observed, settings: &Settings, now: Timestamp) -> Option<String> {
    let message = "the last login is too long ago for a personal namespace (spec.lastLogin, \
                   controllers.tenant.keepAlive): it is created at the next one";
    (presence(observed, settings, now) == Presence::Unwanted).then(|| message.to_owned())
}
