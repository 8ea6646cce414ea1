//! The plan of a shared volume: a pure function of what is observed.

use serde_json::json;

use super::children::{self, VOLUME};
use super::observe::Observed;
use super::reconcile::Settings;
use crate::api::labels;
use crate::api::quantity::Quantity;
use crate::api::reason;
use crate::api::template::TemplateKind;
use crate::config::SharedVolumeConfig;
use crate::controllers::shared::nfs_volume::{failure, growth, is_bound, location, provisioning, requested};
use crate::controllers::shared::responsibility::{Responsibility, release};
use crate::kinds::{DeploymentKind, NfsClaim, SecretKind};
use crate::runtime::plan::{KindInfo, ObjectPatch, Plan, Precondition};
use crate::runtime::problem::Problem;

/// The plan of a shared volume. For one that is being deleted: its finalizer is removed once nothing uses
/// it.
pub fn plan(observed: &Observed, settings: &Settings) -> Plan {
    if observed.is_deselected {
        return release(&observed.volume, labels::SHARED_VOLUME_FINALIZER);
    }
    let mut plan = Plan::default();
    let Settings { config, responsibility } = settings;
    if observed.volume.is_terminating() {
        plan.remove_finalizer = (!observed.is_used()).then_some(labels::SHARED_VOLUME_FINALIZER);
        // With the claim, the files of the course are deleted.
        let users =
            [KindInfo::of::<TemplateKind>(), KindInfo::of::<DeploymentKind>(), KindInfo::of::<SecretKind>()];
        plan.finalizer_preconditions = users.map(Precondition::Every).into();
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
    children::claim(observed, config, &size, provisioned).ensure(&mut plan);
    let Some(claim) = claim.filter(|claim| !claim.is_terminating()) else {
        remove_job_first(observed, config, &mut plan);
        return plan;
    };
    plan.patches.extend(growth(claim, &size, VOLUME));
    plan.problems.extend(shrinks(claim, &size));
    if !is_bound(claim) {
        return plan;
    }
    match &observed.persistent_volume {
        None => {
            plan.problems.push(Problem::waiting(
                VOLUME,
                reason::VOLUME_MISSING,
                "the storage of the claim is not there yet",
            ));
        }
        Some(volume) if location(volume).is_none() => {
            let message = format!(
                "PV misses CSI params: PersistentVolume {} names no NFS server and share \
                 (spec.csi.volumeAttributes); is controllers.sharedVolume.storageClass an NFS class?",
                volume.name()
            );
            plan.problems.push(Problem::fault(VOLUME, reason::MISSING_CSI, message));
            return plan;
        }
        Some(_) => {}
    }
    if provisioned != Some(labels::PROVISIONING_COMPLETED) {
        prepare(observed, config, claim, &mut plan);
    }
    plan
}

/// The size in the spec, or what is wrong with it.
fn size(observed: &Observed) -> Result<Quantity, Problem> {
    let volume = &observed.volume;
    if let Some(reason) = &volume.malformed {
        return Err(Problem::fault(
            VOLUME,
            reason::INVALID_SPEC,
            format!("the spec cannot be read: {reason}"),
        ));
    }
    let text = volume.spec.size.to_string();
    let invalid = |why: &str| {
        let message = format!("spec.size {text:?} {why}: set it to an amount above 0, such as 10Gi");
        Problem::fault(VOLUME, reason::INVALID_SIZE, message)
    };
    let size: Quantity = text.parse().map_err(|_| invalid("is no amount of storage"))?;
    if size.is_zero() || size.is_negative() {
        return Err(invalid("leaves nothing to store in"));
    }
    Ok(size)
}

/// The problem of a size in the spec that is below that of the claim.
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
        return responsibility.hold(volume, labels::SHARED_VOLUME_FINALIZER, &wanted);
    }
    ObjectPatch::of(volume, &json!({"metadata": {"labels": wanted}}))
}

/// Plans the end of the Job of a claim that is being deleted, or that a former volume of the same name controls: a pod
/// holds its claim even when it has succeeded. The engine deletes the Job of a former volume if the garbage collector does
/// not. The next claim needs a Job of its own.
fn remove_job_first(observed: &Observed, config: &SharedVolumeConfig, plan: &mut Plan) {
    let Some(claim) = observed.claim() else { return };
    if claim.is_terminating() {
        let (namespace, name) = (claim.namespace(), claim.name());
        let message = format!(
            "PersistentVolumeClaim {namespace}/{name} is being removed; the volume gets a new one after that"
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
fn prepare(observed: &Observed, config: &SharedVolumeConfig, claim: &NfsClaim, plan: &mut Plan) {
    let own = observed.own_job();
    if let Some(failed) = own.and_then(failure) {
        let message = format!(
            "the volume could not be prepared: Job {}/{} has failed: {failed}; delete the Job to have it tried \
             again",
            claim.namespace(),
            observed.job().0
        );
        plan.problems.push(Problem::elsewhere(VOLUME, reason::PROVISIONING_FAILED, message));
    }
    // A Job that runs is left alone; one of another owner is refused by the apply engine.
    if own.is_none() {
        children::job(observed, config).ensure(plan);
    }
}
