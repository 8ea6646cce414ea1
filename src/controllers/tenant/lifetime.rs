//! Whether a Tenant has a personal namespace, which depends on its last login.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Settings;
use super::observe::Observed;

/// Whether the personal namespace of a Tenant should exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is neither created nor changed nor deleted: the e-mail address is not confirmed yet.
    Undecided,
    /// It should exist, at least for this time; `None` for as long as it contains something.
    Wanted(Option<Duration>),
    /// It should not exist: the Tenant has not logged in for long, and it contains nothing.
    Unwanted,
}

/// Whether the personal namespace should exist. It is kept as long as it contains Instances or, where
/// Tenants may have their own Templates, Templates.
pub fn presence(observed: &Observed, settings: &Settings, now: Timestamp) -> Presence {
    let config = &settings.config;
    if config.wait_user_verification && !observed.is_confirmed(settings) {
        return Presence::Undecided;
    }
    let keep_alive = SignedDuration::try_from(config.keep_alive.get()).unwrap_or(SignedDuration::MAX);
    // Without a login, the keep-alive has expired. A login in the future counts as now.
    let left = observed
        .tenant
        .spec
        .last_login
        .as_ref()
        .map_or(SignedDuration::MIN, |login| keep_alive.saturating_sub(now.duration_since(login.0)));
    if !left.is_negative() {
        // It expires only after this time, so the next reconcile comes a millisecond later.
        let wake = left.saturating_add(SignedDuration::from_millis(1));
        return Presence::Wanted(Some(wake.unsigned_abs()));
    }
    let templates = config.personal_workspace.enabled && observed.templates > 0;
    if observed.instances > 0 || templates { Presence::Wanted(None) } else { Presence::Unwanted }
}

/// The message of `crownlabs plan` about a Tenant without a personal namespace.
pub fn remark(observed: &Observed, settings: &Settings, now: Timestamp) -> Option<String> {
    let message = "the last login is too long ago for a personal namespace (spec.lastLogin, \
                   controllers.tenant.keepAlive): it is made at the next";
    (presence(observed, settings, now) == Presence::Unwanted).then(|| message.to_owned())
}
