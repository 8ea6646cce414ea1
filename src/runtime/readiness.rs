//! The readiness of the replica, by control loop.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The state of a control loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopState {
    /// Its stores are being filled.
    Starting,
    /// It has no certificate to serve with.
    WaitingForCertificate,
    /// These CRDs, without which it cannot work, are not installed.
    WaitingForCrd(Vec<String>),
    /// Its stores are synced; it waits for the lease.
    Standby,
    /// It reconciles objects.
    Ready,
    /// It reconciles objects, but these CRDs, which it can do without, are not installed.
    Degraded(Vec<String>),
}

impl LoopState {
    /// Whether the replica counts as ready in this state. A standby does: it can take over.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Standby | Self::Ready | Self::Degraded(_))
    }

    fn sentence(&self) -> String {
        match self {
            Self::Starting => "starting: the first lists have not ended".to_owned(),
            Self::WaitingForCrd(crds) => {
                format!("waiting for CRDs that are not installed: {}", crds.join(", "))
            }
            Self::WaitingForCertificate => "waiting for a certificate to serve with".to_owned(),
            Self::Standby => "standby: another replica leads".to_owned(),
            Self::Ready => "ready".to_owned(),
            Self::Degraded(crds) => {
                format!(
                    "ready, but without what needs these CRDs, which are not installed: {}",
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
    /// Whether every loop has a state.
    complete: Arc<AtomicBool>,
}

impl Readiness {
    /// Sets the state of a loop, and returns whether that is a change.
    pub fn set(&self, name: &'static str, state: LoopState) -> bool {
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.insert(name, state.clone()) != Some(state)
    }

    /// Records that every loop has a state from now on. Before, the replica is not ready.
    pub fn complete(&self) {
        self.complete.store(true, Ordering::SeqCst);
    }

    /// Whether the replica is ready, and the text of the probe: a line for each loop.
    #[must_use]
    pub fn report(&self) -> (bool, String) {
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for (name, state) in loops.iter() {
            let mark = if state.is_ready() { '+' } else { '-' };
            let _ = writeln!(text, "[{mark}] {name}: {}", state.sentence());
        }
        let complete = self.complete.load(Ordering::SeqCst);
        if !complete {
            text.push_str("[-] start-up: waiting for the API server\n");
        }
        let ready = complete && loops.values().all(LoopState::is_ready);
        text.push_str(if ready { "ready\n" } else { "not ready\n" });
        (ready, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_crd_is_named_and_counts_only_where_the_loop_needs_it() {
        let readiness = Readiness::default();
        assert!(!readiness.report().0, "nothing is known yet");
        readiness.complete();
        assert!(readiness.set("instance", LoopState::Starting));
        assert!(!readiness.report().0);
        readiness.set("instance", LoopState::Degraded(vec!["virtualmachines.kubevirt.io".into()]));
        let (ready, text) = readiness.report();
        assert!(ready);
        assert!(text.contains("instance") && text.contains("virtualmachines.kubevirt.io"), "{text}");
        readiness.set("tenant", LoopState::WaitingForCrd(vec!["tenants.crownlabs.polito.it".into()]));
        let (ready, text) = readiness.report();
        assert!(!ready);
        assert!(text.contains("[-] tenant: waiting"), "{text}");
        assert!(
            !readiness.set("tenant", LoopState::WaitingForCrd(vec!["tenants.crownlabs.polito.it".into()]))
        );
    }
}
