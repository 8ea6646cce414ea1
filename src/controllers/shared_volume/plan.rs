//! The plan of a shared volume: a pure function of the observed state.

use jiff::Timestamp;
use serde_json::json;

use super::children::{self, VOLUME};
use super::observe::Observed;
use super::reconcile::Settings;
use crate::api::condition::{Condition, RECONCILED};
use crate::api::quantity::Quantity;
use crate::api::template::TemplateKind;
use crate::api::{labels, reason};
use crate::config::SharedVolumeConfig;
use crate::controllers::shared::nfs_volume::{failure, growth, is_bound, provisioning, requested};
use crate::controllers::shared::responsibility::{Responsibility, Standing, release};
use crate::controllers::shared::waits;
use crate::kinds::{DeploymentKind, NfsClaim, PersistentVolumeKind, SecretKind};
use crate::runtime::plan::{KindInfo, ObjectPatch, Plan, Precondition};
use crate::runtime::problem::Problem;

/// The plan of a shared volume. If the volume is being deleted, its finalizer is removed once it is unused.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan {
    if observed.standing == Standing::Deselected {
        return release(&observed.volume, labels::SHARED_VOLUME_FINALIZER);
    }
    let mut plan = Plan::default();
    let responsibility = &settings.responsibility;
    if observed.volume.is_terminating() {
        plan.remove_finalizer = (!observed.is_used()).then_some(labels::SHARED_VOLUME_FINALIZER);
        // The files of the course are deleted together with the claim.
        let users =
            [KindInfo::of::<TemplateKind>(), KindInfo::of::<DeploymentKind>(), KindInfo::of::<SecretKind>()];
        let mirrors = settings.has_mirrors().then(KindInfo::of::<PersistentVolumeKind>);
        plan.finalizer_preconditions = users.into_iter().chain(mirrors).map(Precondition::Every).collect();
        // Not every volume of a mirror names the shared volume, so its end may not wake it.
        plan.requeue_after((!observed.mirrors.is_empty()).then_some(waits::PATIENCE));
        return plan;
    }
    let claim = observed.own_claim();
    let provisioned = provisioning(claim, observed.own_job());
    let is_complete = provisioned == Some(labels::PROVISIONING_COMPLETED);
    plan.patches.extend(own_patch(observed, responsibility, is_complete));
    let size = match size(observed) {
        Ok(size) => size,
        Err(problem) => {
            plan.problems.push(problem);
            return plan;
        }
    };
    children::claim(observed, settings, &size, provisioned).ensure(&mut plan);
    let Some(claim) = claim.filter(|claim| !claim.is_terminating()) else {
        remove_job_first(observed, &settings.config, now, &mut plan);
        return plan;
    };
    plan.patches.extend(growth(claim, &size, VOLUME));
    plan.problems.extend(shrinks(claim, &size));
    if !is_bound(claim) {
        let (fault, events) = (observed.class_fault.as_ref(), &observed.events);
        waits::of_claim(claim, VOLUME, fault, events, stored(observed), now).join(&mut plan);
        return plan;
    }
    match &observed.persistent_volume {
        None => {
            let message = "the claim is not bound yet";
            plan.problems.push(Problem::waiting(VOLUME, reason::VOLUME_MISSING, message));
        }
        Some(volume) if !settings.is_usable(volume) => {
            let lacks = if settings.has_mirrors() {
                "is not of a CSI driver (spec.csi), so it cannot be mirrored"
            } else {
                "names no NFS server and share (spec.csi.volumeAttributes); is controllers.sharedVolume.storageClass an \
                 NFS class?"
            };
            let message = format!("PV misses CSI params: PersistentVolume {} {lacks}", volume.name());
            plan.problems.push(Problem::fault(VOLUME, reason::MISSING_CSI, message));
            return plan;
        }
        Some(_) => {}
    }
    if !is_complete {
        prepare(observed, &settings.config, now, &mut plan);
    }
    plan
}

/// The size in the spec, or its problem.
fn size(observed: &Observed) -> Result<Quantity, Problem> {
    let volume = &observed.volume;
    if let Some(reason) = &volume.malformed {
        let message = format!("the spec cannot be read: {reason}");
        return Err(Problem::fault(VOLUME, reason::INVALID_SPEC, message));
    }
    let text = volume.spec.size.to_string();
    let invalid = |why: &str| {
        let message = format!("spec.size {text:?} {why}: set it to an amount above 0, such as 10Gi");
        Problem::fault(VOLUME, reason::INVALID_SIZE, message)
    };
    let size: Quantity = text.parse().map_err(|_| invalid("is not an amount of storage"))?;
    if size.is_zero() || size.is_negative() {
        return Err(invalid("is not a positive amount"));
    }
    Ok(size)
}

/// The problem that the size in the spec is below the size of the claim.
fn shrinks(claim: &NfsClaim, size: &Quantity) -> Option<Problem> {
    let has = requested(claim).filter(|has| has > size)?;
    let message = format!(
        "Size cannot be less than previous value: the volume has {has} and spec.size asks for {size}; set it to \
         {has} or more"
    );
    Some(Problem::fault(VOLUME, reason::INVALID_SIZE, message))
}

/// The patch of the label and the finalizer of the shared volume itself.
fn own_patch(observed: &Observed, responsibility: &Responsibility, is_complete: bool) -> Option<ObjectPatch> {
    let (volume, wanted) = (&observed.volume, json!({labels::MANAGED_BY: labels::MANAGED_BY_INSTANCE}));
    if is_complete {
        return responsibility.hold(volume, observed.standing, labels::SHARED_VOLUME_FINALIZER, &wanted);
    }
    ObjectPatch::of(volume, &json!({"metadata": {"labels": wanted}}))
}

/// Plans the end of the Job if its claim is being deleted, or belongs to a former volume with the same name: a pod uses
/// its claim even after it has succeeded. The engine deletes the Job of a former volume if the garbage collector does
/// not. The next claim needs its own Job.
fn remove_job_first(observed: &Observed, config: &SharedVolumeConfig, now: Timestamp, plan: &mut Plan) {
    // The new claim is checked then.
    plan.requeue_after(waits::GRACE);
    let Some(claim) = observed.claim() else { return };
    if let Some(since) = &claim.metadata.deletion_timestamp {
        let (namespace, name) = (claim.namespace(), claim.name());
        let held = waits::held(since.0, &claim.metadata.finalizers, now);
        let message = format!(
            "PersistentVolumeClaim {namespace}/{name} is being removed{held}; the volume gets a new one after that"
        );
        plan.problems.push(Problem::waiting(VOLUME, reason::CLAIM_TERMINATING, message));
    }
    let job = children::job(observed, config);
    match job.existing {
        Some(_) if job.is_own() => job.remove(plan),
        Some(_) => job.ensure(plan),
        None => {}
    }
}

/// Plans the Job that prepares the volume, or reports that it has failed.
fn prepare(observed: &Observed, config: &SharedVolumeConfig, now: Timestamp, plan: &mut Plan) {
    // A running Job is left alone. The apply engine rejects a Job with another owner.
    let Some(job) = observed.own_job() else {
        children::job(observed, config).ensure(plan);
        return;
    };
    plan.problems.extend(failure(job, "the volume", VOLUME));
    waits::of_job(job, VOLUME, &observed.events, stored(observed), now).join(plan);
}

/// The condition that explains why the volume waits.
fn stored(observed: &Observed) -> Option<&Condition> {
    observed.volume.status.conditions.iter().find(|condition| condition.type_ == RECONCILED)
}
