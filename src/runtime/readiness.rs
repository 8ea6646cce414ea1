//! Readiness by loop: which run, and what the others wait for.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a loop stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopState {
    /// Its stores are being filled.
    Starting,
    /// It has no certificate to serve with.
    WaitingForCertificate,
    /// A kind without which it cannot work is not served; its CRD's name.
    WaitingForCrd(Vec<String>),
    /// Its stores mirror the cluster; it waits for the lease.
    Standby,
    /// It works.
    Ready,
    /// It works, but not with these kinds, which are not served.
    Degraded(Vec<String>),
}

impl LoopState {
    /// Whether the replica is of use in this state: a standby is, that is what it is for.
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
    /// Sets the state of a loop; whether that is a change.
    pub fn set(&self, name: &'static str, state: LoopState) -> bool {
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.insert(name, state.clone()) != Some(state)
    }

    /// Every loop has a state from now on; before, the replica is of no use.
    pub fn complete(&self) {
        self.complete.store(true, Ordering::SeqCst);
    }

    /// Whether every loop is of use, and a line on each.
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
