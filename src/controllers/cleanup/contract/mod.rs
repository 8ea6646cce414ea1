//! Tests the promise of the loops that warn, with random faults. Nothing is stopped or deleted before every promised
//! warning was accepted, each an interval after the previous one. All deadlines in the mails and the deadline in the
//! status must have passed, too. No promise is withdrawn without a reason. At most one mail of a kind is accepted per
//! interval, even if the Tenant edits the status. A mail can be sent twice only if the daemon crashes or the leader
//! changes right after it. If the mail server permanently rejects the Tenant's mails, the Instance is kept, or, if
//! configured, a mail to the managers counts.
//!
//! The world is virtual: an API server with resource versions, a mail server, sources of metrics, clocks that step, and
//! two daemons that both believe that they lead, each with a store that may be stale. Plans, reports and the order of a
//! reconcile are the real ones ([`crate::runtime::reconcile`]). Each step can be interrupted by a crash between any two
//! of its writes, or by a concurrent write.
//!
//! | module | content |
//! |---|---|
//! | [`world`], [`server`] | the API server and the daemons; the mail server |
//! | [`steps`] | the course of a plan: faults, then calm |
//! | [`faults`] | the initial state of a plan of faults, and the unplanned events in it |
//! | [`judge`] | the promises and the reasons to withdraw them, derived from the mails and the facts alone |
//!
//! The seed of a failed plan is printed. `CONTRACT_SEED` runs that plan alone and prints its events.

mod faults;
mod judge;
mod random;
mod server;
mod steps;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

pub use self::judge::Stage;
use self::world::World;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::lifetime::LifetimeError;
use crate::api::template::Template;
use crate::api::tenant::Tenant;
use crate::config::Undeliverable;
use crate::controllers::cleanup::ending::{Effect, Ending};
use crate::controllers::cleanup::mail_log::Mailed;
use crate::fixtures::at;
use crate::runtime::reconciler::Reconciler;

/// The time between two warnings, in seconds.
pub const INTERVAL: i64 = 6 * 3_600;
/// The number of warnings, where the Template does not set its own.
pub const MAX: u32 = 2;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// A loop that warns before it ends Instances.
pub trait Automation {
    /// The loop.
    type Reconciler: Reconciler<Kind = InstanceKind, Effect = Effect>;

    /// The settings of the loop, with [`INTERVAL`], [`MAX`], and the action if no warning can be delivered.
    fn settings(undeliverable: Undeliverable) -> <Self::Reconciler as Reconciler>::Settings;

    /// The observed state if the store of the loop has this content.
    fn observed(sight: Sight) -> <Self::Reconciler as Reconciler>::Observed;

    /// The ending of the Instance, if it has one.
    fn ending<'a>(
        observed: &'a <Self::Reconciler as Reconciler>::Observed,
        settings: &<Self::Reconciler as Reconciler>::Settings,
        now: Timestamp,
    ) -> Result<Option<Ending<'a>>, LifetimeError>;

    /// The stage of an Instance.
    fn stage(instance: &Instance) -> Stage;
}

/// The content of a daemon's stores and memory.
pub struct Sight {
    pub instance: Arc<Instance>,
    pub template: Option<Arc<Template>>,
    pub tenant: Arc<Tenant>,
    pub managers: Vec<Arc<Tenant>>,
    pub is_exempt: bool,
    /// The mails that it remembers.
    pub mailed: Mailed,
    /// Its latest round of queries.
    pub round: Option<Round>,
}

/// The result of a round of queries.
#[derive(Clone)]
pub struct Round {
    pub since: Option<Timestamp>,
    pub until: Timestamp,
    pub problems: Vec<String>,
    pub last_use: Option<(Timestamp, &'static str)>,
}

/// The number of Instances that ended while there were faults, by stage. It shows that the plans reach the ends: a
/// property that is never exercised would hold as well.
pub type Ends = BTreeMap<Stage, usize>;

/// Prints the seed of a failed plan.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("CONTRACT_SEED={}", self.0);
        }
    }
}

/// The seed of the only plan to run, if one is requested.
fn seed_asked() -> Option<u64> {
    let seed = std::env::var("CONTRACT_SEED").ok();
    seed.map(|seed| seed.parse().expect("CONTRACT_SEED is a number"))
}

/// Runs at least `plans` random plans of faults, with consecutive seeds from the seed of this run. Returns how many
/// Instances ended in them.
pub fn keep_promises<A: Automation>(plans: u32) -> Ends {
    let ends = Mutex::new(Ends::new());
    let (first, plans) = (crate::properties::seed(), u64::from(crate::properties::scaled(plans)));
    let run = |seed| {
        let printed = Seed(seed);
        for stage in World::<A>::new(seed).run() {
            *ends.lock().entry(stage).or_default() += 1;
        }
        drop(printed);
    };
    match seed_asked() {
        Some(seed) => run(seed),
        None => std::thread::scope(|scope| {
            for part in 0..2 {
                scope.spawn(move || (first + part..first + plans).step_by(2).for_each(run));
            }
        }),
    }
    ends.into_inner()
}
