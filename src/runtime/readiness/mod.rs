//! The readiness of the replica, for each control loop.

pub mod pods;
pub mod state;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{FutureExt, join_all, select_all};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::outages::Outages;
use super::plan::KindInfo;
use super::store::{Store, StoreState};
use crate::api::Kind;

/// A store that a loop, or the webhooks, depend on.
#[derive(Clone)]
pub struct Need {
    /// The name of the CRD, `<plural>.<group>`, or only the plural name for the core group.
    pub crd: String,
    /// Whether the loop cannot work without it.
    pub is_required: bool,
    /// The state of the store.
    pub state: watch::Receiver<StoreState>,
}

impl Need {
    /// Creates the need for a store.
    pub fn of<T: Kind>(store: &Store<T>, is_required: bool) -> Self {
        let KindInfo { group, plural, .. } = store.kind();
        let crd = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        Self { crd, is_required, state: store.watch_state() }
    }
}

/// Waits until each store is synced, or its kind is found not to be served.
pub async fn settled(needs: &[Need]) {
    wait(needs, |_, state| state != StoreState::Syncing).await;
}

/// Returns the CRDs of the required stores whose kind is not served.
pub fn missing(needs: &[Need]) -> Vec<String> {
    let missing = |need: &&Need| need.is_required && *need.state.borrow() == StoreState::Missing;
    needs.iter().filter(missing).map(|need| need.crd.clone()).collect()
}

/// Waits until each required store is synced, and each optional store is synced or its kind is found not to be served.
pub async fn served(needs: &[Need]) {
    wait(needs, |is_required, state| match state {
        StoreState::Syncing => false,
        StoreState::Missing => !is_required,
        StoreState::Synced => true,
    })
    .await;
}

/// Waits until `enough(is_required, state)` has been true for each store.
async fn wait(needs: &[Need], enough: impl Fn(bool, StoreState) -> bool) {
    let waits = needs.iter().map(async |need| {
        // An error means that the store is gone, but stores live as long as the process.
        drop(need.state.clone().wait_for(|state| enough(need.is_required, *state)).await);
    });
    join_all(waits).await;
}

/// The state of a control loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopState {
    /// These of its stores are still being filled.
    Starting(Vec<String>),
    /// It has no serving certificate yet, for this reason; empty while the reason is unknown.
    WaitingForCertificate(String),
    /// These required CRDs are not installed.
    WaitingForCrd(Vec<String>),
    /// Its stores are synced; it waits for the lease.
    Standby,
    /// It reconciles objects.
    Ready,
    /// It reconciles objects, but these optional CRDs are not installed.
    Degraded(Vec<String>),
    /// It does not work, for this reason.
    Failing(String),
}

impl LoopState {
    /// Whether the replica is ready in this state. A standby replica is ready: it can take over. So is a replica with
    /// one failing loop: the other loops and the webhooks continue.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Standby | Self::Ready | Self::Degraded(_) | Self::Failing(_))
    }

    /// The mark in the text of the probe.
    fn mark(&self) -> char {
        match self {
            Self::Failing(_) => '!',
            state if state.is_ready() => '+',
            _ => '-',
        }
    }

    /// Describes the state, for `/readyz` and the log.
    pub fn sentence(&self) -> String {
        match self {
            Self::Starting(kinds) if kinds.is_empty() => "starting".to_owned(),
            Self::Starting(kinds) => {
                format!("starting: the first lists have not ended: {}", kinds.join(", "))
            }
            Self::WaitingForCrd(crds) => {
                format!("waiting for CRDs that are not installed: {}", crds.join(", "))
            }
            Self::WaitingForCertificate(why) if why.is_empty() => {
                "waiting for a serving certificate".to_owned()
            }
            Self::WaitingForCertificate(why) => format!("waiting for a serving certificate: {why}"),
            Self::Standby => "standby: waiting to lead".to_owned(),
            Self::Ready => "ready".to_owned(),
            Self::Failing(why) => why.clone(),
            Self::Degraded(crds) => {
                format!(
                    "ready, except for features that need CRDs that are not installed: {}",
                    crds.join(", ")
                )
            }
        }
    }
}

/// The states of all loops. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    loops: Arc<Mutex<BTreeMap<&'static str, LoopState>>>,
    /// The faults: of watches that have been broken for some time (`false`), by the plural name of their kind, and of
    /// the cluster (`true`), such as those of the CRDs, each under its own name.
    faults: Arc<Mutex<BTreeMap<(bool, &'static str), String>>>,
    /// The outages of systems outside the cluster.
    pub outages: Outages,
    /// What this replica waits for before the loops have a state; `None` before the first request.
    start: Arc<Mutex<Option<String>>>,
    /// What this replica waits for instead of leading, for [`LoopState::Standby`]; `None` while that is unknown.
    standby: Arc<Mutex<Option<String>>>,
    /// Whether every loop has a state.
    complete: Arc<AtomicBool>,
}

impl Readiness {
    /// Sets the state of a loop, and returns whether that is a change.
    pub fn set(&self, name: &'static str, state: LoopState) -> bool {
        let mut loops = self.loops.lock();
        loops.insert(name, state.clone()) != Some(state)
    }

    /// Records that every loop has a state from now on. Until then, the replica is not ready.
    pub fn complete(&self) {
        self.complete.store(true, Ordering::SeqCst);
    }

    /// Records why the API server cannot be reached at the start, in a sentence that begins with its URL.
    pub fn set_start(&self, why: String) {
        *self.start.lock() = Some(why);
    }

    /// Records what a standby waits for, or which replica leads.
    pub fn set_standby(&self, why: String) {
        *self.standby.lock() = Some(why);
    }

    /// Describes a state, with what a standby waits for.
    fn sentence(&self, state: &LoopState) -> String {
        let standby = self.standby.lock();
        match (state, &*standby) {
            (LoopState::Standby, Some(why)) => format!("standby: {why}"),
            (state, _) => state.sentence(),
        }
    }

    /// Records the fault of the watch of a kind; `None` clears it. The loops continue with the cached objects. Returns
    /// whether a fault was recorded before.
    pub fn set_watch(&self, kind: &'static str, broken: Option<String>) -> bool {
        self.set_fault((false, kind), broken)
    }

    /// Records a fault of the cluster, such as those of the CRDs; `None` clears it. The replica stays ready. Returns
    /// whether a fault was recorded before.
    pub fn set_notice(&self, name: &'static str, wrong: Option<String>) -> bool {
        self.set_fault((true, name), wrong)
    }

    fn set_fault(&self, of: (bool, &'static str), sentence: Option<String>) -> bool {
        let mut faults = self.faults.lock();
        let before = match sentence {
            Some(sentence) => faults.insert(of, sentence),
            None => faults.remove(&of),
        };
        before.is_some()
    }

    /// Returns whether the replica is ready, and the text of the probe: a line for each loop.
    pub fn report(&self) -> (bool, String) {
        let loops = self.loops.lock();
        let mut text = String::new();
        for (name, state) in loops.iter() {
            let _ = writeln!(text, "[{}] {name}: {}", state.mark(), self.sentence(state));
        }
        for ((is_notice, name), sentence) in self.faults.lock().iter() {
            let what = if *is_notice { "" } else { "watch of " };
            let _ = writeln!(text, "[!] {what}{name}: {sentence}");
        }
        text.push_str(&self.outages.lines());
        let complete = self.complete.load(Ordering::SeqCst);
        if !complete {
            let start = self.start.lock();
            let place = start.as_ref().map(|why| format!(" {why}")).unwrap_or_default();
            let _ = writeln!(text, "[-] start-up: waiting for the API server{place}");
        }
        let ready = complete && loops.values().all(LoopState::is_ready);
        text.push_str(if ready { "ready\n" } else { "not ready\n" });
        (ready, text)
    }

    /// Returns whether a loop is ready and not failing, and the line about it; `None` if no loop has that name.
    pub fn report_of(&self, name: &str) -> Option<(bool, String)> {
        let loops = self.loops.lock();
        let state = loops.get(name)?;
        Some((state.mark() == '+', format!("[{}] {name}: {}\n", state.mark(), self.sentence(state))))
    }

    /// Sets the state of `name` whenever a store, or `activity`, changes, and calls `announce` with each new state.
    /// While `inactive` returns a state for the activity, that is the state once the stores are synced. Calls
    /// `appeared` when a kind that was missing is served. Never returns.
    pub async fn track<A: Send + Sync>(
        self,
        name: &'static str,
        mut needs: Vec<Need>,
        (mut activity, inactive): (watch::Receiver<A>, impl Fn(&A) -> Option<LoopState>),
        appeared: impl Fn(),
        announce: impl AsyncFn(&LoopState),
    ) {
        let mut missing_before = 0;
        loop {
            let states: Vec<_> = needs
                .iter_mut()
                .map(|need| (need.crd.as_str(), need.is_required, *need.state.borrow_and_update()))
                .collect();
            let state = assess(&states, inactive(&activity.borrow_and_update()));
            let missing = states.iter().filter(|(_, _, state)| *state == StoreState::Missing).count();
            if missing < missing_before {
                appeared();
            }
            missing_before = missing;
            if self.set(name, state.clone()) {
                announce(&state).await;
            }
            let changes = needs.iter_mut().map(|need| need.state.changed().boxed());
            if select_all(changes.chain([activity.changed().boxed()])).await.0.is_err() {
                return;
            }
        }
    }
}

/// Computes the state of a loop. `states` has the CRD of each store, whether it is required, and the state of the
/// store; `inactive` is the state of a loop with synced stores that does not work.
fn assess(states: &[(&str, bool, StoreState)], inactive: Option<LoopState>) -> LoopState {
    let crds = |required: bool| -> Vec<String> {
        let missing = |(_, needed, state): &&(&str, bool, StoreState)| {
            *needed == required && *state == StoreState::Missing
        };
        states.iter().filter(missing).map(|(crd, _, _)| (*crd).to_owned()).collect()
    };
    let (required, optional) = (crds(true), crds(false));
    let syncing = states.iter().filter(|(_, _, state)| *state == StoreState::Syncing);
    let mut syncing: Vec<String> = syncing.map(|(crd, _, _)| (*crd).to_owned()).collect();
    syncing.dedup();
    if !required.is_empty() {
        LoopState::WaitingForCrd(required)
    } else if !syncing.is_empty() {
        LoopState::Starting(syncing)
    } else if let Some(inactive) = inactive {
        inactive
    } else if optional.is_empty() {
        LoopState::Ready
    } else {
        LoopState::Degraded(optional)
    }
}

#[cfg(test)]
mod tests;
