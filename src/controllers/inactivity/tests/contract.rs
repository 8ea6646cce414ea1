//! The guarantee of the loop, tested with random faults.

use super::*;
use crate::api::lifetime::LifetimeError;
use crate::config::Undeliverable;
use crate::controllers::cleanup::contract::{Automation, Round, Sight, Stage, keep_promises};
use crate::controllers::cleanup::ending::Ending;
use crate::controllers::inactivity::InactivityReconciler;

/// The number of random fault plans; `make properties` runs a hundred times as many.
const PLANS: u32 = 1_300;

struct Inactivity;

impl Automation for Inactivity {
    type Reconciler = InactivityReconciler;

    fn settings(undeliverable: Undeliverable) -> Settings {
        let mut settings = Settings { undeliverable, ..settings() };
        settings.config.destruction_notification_interval = settings.config.notification_interval;
        settings
    }

    fn observed(sight: Sight) -> Observed {
        let Sight { instance, template, tenant, managers, is_exempt, mailed, round } = sight;
        let seen = round.map(|round| {
            let Round { since, until, problems, last_use } = round;
            RoundResult { since, answered: until, problems, last_use }
        });
        let tenant = Some(tenant);
        let candidate = Candidate { instance, template, tenant, managers, mailed, is_exempt };
        Observed { candidate, seen, connected: None }
    }

    fn ending<'a>(
        observed: &'a Observed,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<Option<Ending<'a>>, LifetimeError> {
        observed.ending(settings, now)
    }

    fn stage(instance: &Instance) -> Stage {
        if instance.spec.running { Stage::Idle } else { Stage::Off }
    }
}

#[test]
fn no_instance_is_stopped_or_deleted_without_warnings_under_random_faults() {
    let ends = keep_promises::<Inactivity>(PLANS);
    println!("ends among the faults: {ends:?}");
    for stage in [Stage::Idle, Stage::Off] {
        let ends = ends.get(&stage).copied().unwrap_or_default();
        assert!(std::env::var("CONTRACT_SEED").is_ok() || ends > 60, "{stage:?}: {ends}");
    }
}
