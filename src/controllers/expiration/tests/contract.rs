//! The guarantee of the loop, tested with random faults.

use super::super::observe::ending;
use super::*;
use crate::api::lifetime::LifetimeError;
use crate::config::{ConfigDuration, Undeliverable};
use crate::controllers::cleanup::contract::{Automation, INTERVAL, Sight, Stage, keep_promises};
use crate::controllers::cleanup::ending::Ending;
use crate::controllers::expiration::ExpirationReconciler;

/// The number of random fault plans; `make properties` runs a hundred times as many.
const PLANS: u32 = 700;

struct Expiration;

impl Automation for Expiration {
    type Reconciler = ExpirationReconciler;

    fn settings(undeliverable: Undeliverable) -> Settings {
        let mut settings = Settings { undeliverable, ..settings(true) };
        settings.config.notification_interval = ConfigDuration::from_secs(INTERVAL.unsigned_abs());
        settings
    }

    fn observed(sight: Sight) -> Observed {
        let Sight { instance, template, tenant, managers, is_exempt, mailed, round: _ } = sight;
        Observed { instance, template, tenant: Some(tenant), managers, mailed, is_exempt }
    }

    fn ending<'a>(
        observed: &'a Observed,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<Option<Ending<'a>>, LifetimeError> {
        ending(observed, settings, now)
    }

    fn stage(_: &Instance) -> Stage {
        Stage::Age
    }
}

#[test]
fn no_instance_expires_without_warnings_under_random_faults() {
    let ends = keep_promises::<Expiration>(PLANS);
    println!("ends among the faults: {ends:?}");
    let ends = ends.get(&Stage::Age).copied().unwrap_or_default();
    assert!(std::env::var("CONTRACT_SEED").is_ok() || ends > 200, "{ends}");
}
