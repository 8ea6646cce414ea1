//! The events of a mirror.

use super::decide::{Decision, decide, volume_name};
use super::observe::Observed;
use super::reconcile::Settings;
use crate::api::reason::{MIRROR_PROVISIONED, MIRROR_REFUSED};
use crate::kinds::MirrorClaimKind;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::reconciler::{Reconciled, Report};

/// The report of a reconcile: an event when the volume is created, and when there is a new reason why it is not.
pub fn report(done: &Reconciled<'_, Observed, Settings>) -> Report<MirrorClaimKind> {
    let Reconciled { observed, settings, plan, outcome, .. } = *done;
    let mut report = Report::unchanged(&observed.claim);
    if !plan.ensure.is_empty() {
        if outcome.is_success() {
            let message = format!("Successfully provisioned volume {}", volume_name(&observed.claim));
            report.events.push(EventNote::new(EventType::Normal, MIRROR_PROVISIONED, message));
        }
    } else if let Decision::Refuse(refusal) = decide(observed, settings)
        && observed.told.as_ref() != Some(&refusal.message)
    {
        let type_ = if refusal.is_waiting { EventType::Normal } else { EventType::Warning };
        report.events.push(EventNote::new(type_, MIRROR_REFUSED, refusal.message));
    }
    report
}
