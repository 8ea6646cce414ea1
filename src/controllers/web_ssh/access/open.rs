//! The rights of users with open terminals, from stores: they are checked again every few seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Access, Entitlement, Machine, is_among, token};
use crate::api::instance::Instance;
use crate::api::tenant::Tenant;
use crate::controllers::shared::entrance;
use crate::controllers::shared::peers::peer;
use crate::controllers::shared::references::template_of;
use crate::controllers::web_ssh::message::Request;
use crate::runtime::ObjectKey;
use crate::runtime::clock;

/// The time between two checks.
const CHECK: Duration = Duration::from_secs(5);
/// An administrator is checked with a request, at each of this many checks: once a minute. A store that has never confirmed
/// a right, because it was behind when the terminal opened, has the same time.
const RARELY: u32 = 12;

/// The checks of one terminal.
#[derive(Debug)]
struct Checks {
    number: u32,
    /// Whether the stores have confirmed the right before.
    is_confirmed: bool,
}

impl Checks {
    /// Creates the checks of a terminal that has just opened. Only the stores give a peer the right, so they have confirmed
    /// it. `is_entitled` says whether they confirm that of another user.
    fn of(entitlement: Entitlement, is_entitled: bool) -> Self {
        Self { number: 0, is_confirmed: is_entitled || matches!(entitlement, Entitlement::Peer(_)) }
    }

    /// Notes the result of a check of the stores; returns whether the terminal ends.
    fn end_after(&mut self, is_entitled: bool) -> bool {
        self.number += 1;
        self.is_confirmed |= is_entitled;
        !is_entitled && (self.is_confirmed || self.number >= RARELY)
    }
}

impl Access {
    /// The Instance that its owner shares with a user, and the right of the user.
    pub(super) fn shared(&self, user: &str, key: &ObjectKey) -> Option<(Arc<Instance>, Entitlement)> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        let tenant = self.tenant(user)?;
        let entitlement = self.as_peer(&tenant, &instance, clock::now())?;
        Some((instance, entitlement))
    }

    /// Completes when the user may not use an open terminal any more. Sets `is_view` to whether input is discarded.
    pub async fn lost(&self, user: &str, request: &Request, machine: &Machine, is_view: &AtomicBool) {
        let Ok(token) = token(request) else { return };
        let is_entitled = self.current(user, machine, clock::now()).is_some();
        let mut checks = Checks::of(machine.entitlement, is_entitled);
        let mut tick = interval_at(Instant::now() + CHECK, CHECK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if machine.entitlement == Entitlement::Administrator {
                checks.number += 1;
                // A token that has expired, and an API server that does not answer, end nothing.
                if checks.number.is_multiple_of(RARELY)
                    && matches!(self.is_administrator(&token, &machine.instance).await, Ok(false))
                {
                    return;
                }
                continue;
            }
            let current = self.current(user, machine, clock::now());
            if let Some(current) = current {
                is_view.store(current.is_view(), Ordering::Relaxed);
            }
            if checks.end_after(current.is_some()) {
                return;
            }
        }
    }

    /// The right of a user on a machine now, without the right of administrators.
    pub(super) fn current(&self, user: &str, machine: &Machine, now: Timestamp) -> Option<Entitlement> {
        let instance = self.instances.get(&machine.instance.namespace, &machine.instance.name)?;
        let tenant = self.tenant(user)?;
        if instance.uid() != machine.uid {
            return None;
        }
        if entrance::owners(&self.tenants, &instance).iter().any(|owner| owner == user) {
            return Some(Entitlement::Owner);
        }
        let template = template_of(&instance, &self.templates)?;
        if is_among(user, &entrance::managers(&self.tenants, &template)) {
            return Some(Entitlement::Manager);
        }
        self.as_peer(&tenant, &instance, now)
    }

    fn as_peer(&self, tenant: &Tenant, instance: &Instance, now: Timestamp) -> Option<Entitlement> {
        let template = template_of(instance, &self.templates)?;
        peer(instance, &template, tenant, now).map(|peer| Entitlement::Peer(peer.access))
    }

    fn tenant(&self, user: &str) -> Option<Arc<Tenant>> {
        self.tenants.get("", user).filter(|tenant| !tenant.is_terminating())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::sharing;

    #[test]
    fn a_right_that_was_confirmed_ends_at_once_and_another_one_after_a_minute() {
        let mut confirmed = Checks::of(Entitlement::Owner, false);
        assert!(!confirmed.end_after(true));
        assert!(confirmed.end_after(false));
        let mut never = Checks::of(Entitlement::Owner, false);
        assert!((1..RARELY).all(|_| !never.end_after(false)));
        assert!(never.end_after(false));
    }

    #[test]
    fn a_right_that_ends_before_the_first_check_ends_at_this_check() {
        assert!(Checks::of(Entitlement::Manager, true).end_after(false));
        for access in [sharing::Access::View, sharing::Access::Control] {
            assert!(Checks::of(Entitlement::Peer(access), false).end_after(false), "{access:?}");
        }
    }
}
