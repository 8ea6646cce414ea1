//! The promise of the loops that warn, over random faults: nothing is stopped or deleted before every promised warning
//! was accepted, each an interval after the one before, the deadlines of all of them have passed, and that in the status
//! too; and no promise is withdrawn without a reason. At most one mail of a kind is accepted in an interval, whatever the
//! Tenant does to the status; only a crash, or another leader, right after a mail can have it sent once more. Where the mail
//! server refuses the Tenant's mails for good, the Instance is kept, or, where that is set, a mail to the managers counts.
//!
//! The world is virtual: an API server with resource versions, a mail server, sources of metrics, clocks that step, and
//! two daemons that believe to lead, each with a store that may be late. Plans, reports and the order of a reconcile are the
//! real ones ([`crate::runtime::reconcile`]). Each step can end by a crash between any two of its writes, or by a write of
//! somebody else in between.
//!
//! | module | what it is |
//! |---|---|
//! | [`world`], [`server`] | the API server and the daemons; the mail server |
//! | [`steps`] | the course of a plan: faults, then calm |
//! | [`faults`] | how a plan of faults begins, and what happens in it that nobody has planned |
//! | [`judge`] | what was promised and why that may be withdrawn, known from the mails and the facts alone |
//!
//! The seed of a plan that fails is printed; `CONTRACT_SEED` runs that one alone and prints what happens in it.

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

    /// Its settings, with [`INTERVAL`], [`MAX`], and what happens where nobody can be warned.
    fn settings(undeliverable: Undeliverable) -> <Self::Reconciler as Reconciler>::Settings;

    /// What it observes in a store that shows this.
    fn observed(sight: Sight) -> <Self::Reconciler as Reconciler>::Observed;

    /// The end of the Instance, if it comes to one.
    fn ending<'a>(
        observed: &'a <Self::Reconciler as Reconciler>::Observed,
        settings: &<Self::Reconciler as Reconciler>::Settings,
        now: Timestamp,
    ) -> Result<Option<Ending<'a>>, LifetimeError>;

    /// From what to which end an Instance goes.
    fn stage(instance: &Instance) -> Stage;
}

/// What the stores of a daemon show, and what it remembers.
pub struct Sight {
    pub instance: Arc<Instance>,
    pub template: Option<Arc<Template>>,
    pub tenant: Arc<Tenant>,
    pub managers: Vec<Arc<Tenant>>,
    pub is_exempt: bool,
    /// What it remembers of mails.
    pub mailed: Mailed,
    /// Its latest round of queries.
    pub round: Option<Round>,
}

/// What a round of queries says.
#[derive(Clone)]
pub struct Round {
    pub since: Option<Timestamp>,
    pub until: Timestamp,
    pub problems: Vec<String>,
    pub last_use: Option<(Timestamp, &'static str)>,
}

/// How many Instances came to their end while there were faults, by what ended them. A property that nothing puts to
/// the test would hold as well.
pub type Ends = BTreeMap<Stage, usize>;

/// Prints the seed of a plan that fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("CONTRACT_SEED={}", self.0);
        }
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

/// The seed of the only plan to be run, if somebody asks for one.
fn seed_asked() -> Option<u64> {
    let seed = std::env::var("CONTRACT_SEED").ok();
    seed.map(|seed| seed.parse().expect("CONTRACT_SEED is a number"))
}

/// Runs so many random plans of faults, those whose seeds begin at the seed of this run. Returns how many Instances came to their end in them.
pub fn keep_promises<A: Automation>(plans: u64) -> Ends {
    let ends = Mutex::new(Ends::new());
    let first = crate::properties::seed();
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
