//! Determines whether another process holds a Lease that this process does not take part in. It is judged as in leader
//! election: by our own clock, from the last observed change of the record. The times in the record are informational.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;

use crate::api::labels::LEASE_SELECTOR;

/// The lease duration of a holder that does not specify it.
const LENGTH: Duration = Duration::from_secs(15);

/// The observed state of a Lease.
#[derive(Debug)]
pub struct Sighting {
    lease: Option<Lease>,
    /// The time when this record was first seen.
    since: Instant,
    /// Whether the record has changed since the first observation.
    has_changed: bool,
}

impl Sighting {
    /// Creates the first sighting; `None` if the Lease does not exist.
    pub fn new(lease: Option<Lease>) -> Self {
        Self { lease, since: Instant::now(), has_changed: false }
    }

    /// Observes the current Lease. Renewals by a holder that manages objects of another selector do not count as
    /// changes.
    pub fn see(&mut self, lease: Option<Lease>, selector: &str) {
        let held = |lease: &Option<Lease>| {
            let lease = lease.as_ref()?;
            holder(lease, selector).and(lease.spec.clone())
        };
        if held(&lease) != held(&self.lease) {
            (self.since, self.has_changed) = (Instant::now(), true);
        }
        self.lease = lease;
    }

    /// Returns the holder in the record, if it manages objects of this selector. A holder without a known selector is
    /// assumed to.
    pub fn holder(&self, selector: &str) -> Option<&str> {
        holder(self.lease.as_ref()?, selector)
    }

    /// Whether its holder has renewed it.
    pub fn is_renewed(&self, selector: &str) -> bool {
        self.has_changed && self.holder(selector).is_some()
    }

    /// Whether the Lease is free: it is missing, released, expired or of another selector, and has stayed so for
    /// `grace`. Within that time, another replica of the same installation would have acquired it.
    pub fn is_free(&self, selector: &str, grace: Duration) -> bool {
        let held = self.holder(selector).map_or(Duration::ZERO, |_| self.length());
        self.since.elapsed() >= held + grace
    }

    /// The lease duration, within which the holder must renew it.
    fn length(&self) -> Duration {
        let spec = self.lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
        seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(LENGTH, Duration::from_secs)
    }

    /// Returns the creation time of the Lease, in seconds since 1970; a Lease without a creation time counts as new.
    pub fn created(&self) -> i64 {
        let created = self.lease.as_ref().and_then(|lease| lease.metadata.creation_timestamp.as_ref());
        created.map_or(i64::MAX, |created| created.0.as_second())
    }
}

/// Returns the holder of a Lease, if it manages objects of this selector.
fn holder<'a>(lease: &'a Lease, selector: &str) -> Option<&'a str> {
    let theirs = lease.metadata.annotations.as_ref().and_then(|all| all.get(LEASE_SELECTOR));
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (!holder.is_empty() && theirs.is_none_or(|theirs| theirs == selector)).then_some(holder)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SELECTOR: &str = "a=b";
    const GRACE: Duration = Duration::from_secs(4);

    fn lease(holder: &str, renewed: u32, selector: Option<&str>) -> Lease {
        let annotations = selector.map(|selector| json!({LEASE_SELECTOR: selector}));
        serde_json::from_value(json!({
            "metadata": {"name": "a", "annotations": annotations},
            "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": 6,
                "renewTime": format!("2026-01-01T00:00:{renewed:02}.000000Z"),
            },
        }))
        .expect("a Lease")
    }

    /// Returns the number of seconds until the Lease is free.
    fn freed_after(mut sighting: Sighting) -> Option<u64> {
        let now = sighting.since;
        (0..=60).find(|seconds| {
            let Some(before) = now.checked_sub(Duration::from_secs(*seconds)) else { return false };
            sighting.since = before;
            sighting.is_free(SELECTOR, GRACE)
        })
    }

    #[test]
    fn a_lease_is_free_once_it_is_missing_released_or_expired_for_a_while() {
        for (case, lease, after) in [
            ("missing", None, 4),
            ("released", Some(lease("", 0, None)), 4),
            ("of another selector", Some(lease("pod", 0, Some("a=c"))), 4),
            ("held", Some(lease("pod", 0, Some(SELECTOR))), 10),
            ("held by a former version", Some(lease("pod", 0, None)), 10),
        ] {
            assert_eq!(freed_after(Sighting::new(lease)), Some(after), "{case}");
        }
    }

    #[test]
    fn only_a_changing_record_is_renewed() {
        let mut sighting = Sighting::new(Some(lease("pod", 0, None)));
        assert_eq!((sighting.holder(SELECTOR), sighting.is_renewed(SELECTOR)), (Some("pod"), false));
        sighting.see(Some(lease("pod", 0, None)), SELECTOR);
        assert!(!sighting.is_renewed(SELECTOR), "the same record");
        sighting.see(Some(lease("pod", 2, None)), SELECTOR);
        assert!(sighting.is_renewed(SELECTOR));
        sighting.see(Some(lease("pod", 3, Some("a=c"))), SELECTOR);
        assert!(!sighting.is_renewed(SELECTOR), "it manages other objects now");
        let since = sighting.since;
        sighting.see(Some(lease("pod", 4, Some("a=c"))), SELECTOR);
        assert_eq!(sighting.since, since, "renewals for other objects are not changes");
        sighting.see(Some(lease("", 4, None)), SELECTOR);
        assert!(!sighting.is_renewed(SELECTOR), "it was released");
    }
}
