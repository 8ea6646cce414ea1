//! The personal volume of a Tenant (`MyDrive`): `PersistentVolumeClaim`, Secret and Job.
//!
//! The claim is kept when its Tenant is deleted, unless it is configured otherwise. So it has no owner
//! reference but annotations with the name and e-mail address of its Tenant. A new Tenant of the same name
//! gets the volume only if it has the same address.

use serde_json::Value;

use super::children::{Children, EMAIL, MY_DRIVE, OWNER, TENANT_UID};
use super::observe::Observed;
use super::{Effect, Settings};
use crate::api::labels;
use crate::api::reason;
use crate::controllers::shared::nfs_volume::{Location, failure, growth, is_bound, location, provisioning};
use crate::kinds::{NfsClaim, NfsClaimKind};
use crate::runtime::plan::{Desired, KindInfo, Plan};
use crate::runtime::problem::Problem;

/// Plans the volume of a Tenant whose personal namespace exists.
pub fn plan(children: Children<'_>, plan: &mut Plan<Effect>) {
    let Children { observed, settings } = children;
    let claim = observed.claim();
    if let Some(problem) = claim.and_then(|claim| foreign_owner(observed, claim)) {
        plan.problems.push(problem);
        return;
    }
    if !observed.has_my_drive_namespace {
        let message = format!(
            "the personal volume waits for namespace {} (controllers.tenant.myDrive.namespace), which does not \
             exist: create it",
            settings.config.my_drive.namespace
        );
        plan.problems.push(Problem::elsewhere(MY_DRIVE, reason::NAMESPACE_MISSING, message));
        return;
    }
    let own_job = observed.job().filter(|job| job.is_controlled_by(&observed.tenant));
    let provisioned = provisioning(claim, own_job);
    children.claim(provisioned).ensure(plan);
    plan.patches.extend(claim.and_then(|claim| growth(claim, &settings.config.my_drive.size, MY_DRIVE)));
    let Some(claim) = claim.filter(|claim| is_bound(claim)) else { return };
    let job = children.job();
    if !is_usable(observed, claim) {
        // A pod holds the claim even when it has succeeded, so its Job goes first: the engine deletes that of a former
        // Tenant if the garbage collector does not. The next claim needs a Job of its own.
        match job.existing {
            Some(_) if job.is_own() => job.remove(plan),
            Some(_) => job.ensure(plan),
            None => {}
        }
        return;
    }
    match found(observed) {
        Ok(Location { server, share }) => children.secret(&server, &share).ensure(plan),
        Err(problem) => plan.problems.push(problem),
    }
    if provisioned == Some(labels::PROVISIONING_COMPLETED) {
        return;
    }
    if let Some(failed) = observed.job().and_then(failure) {
        let message = format!(
            "the personal volume could not be prepared: Job {}/{} has failed: {}; delete the Job to have it \
             tried again",
            claim.namespace(),
            observed.names().provision,
            failed
        );
        plan.problems.push(Problem::elsewhere(MY_DRIVE, reason::PROVISIONING_FAILED, message));
    }
    // A Job that runs is left alone; one of another owner is refused by the apply engine.
    if own_job.is_none() {
        job.ensure(plan);
    }
}

/// Whether a claim is that of this Tenant and stays. One that is being deleted, or that a former Tenant of the same name
/// controls, may have the data of somebody else: its location is told to nobody.
fn is_usable(observed: &Observed, claim: &NfsClaim) -> bool {
    let is_ours = claim.controller_uid().is_none_or(|uid| uid == observed.tenant.uid());
    is_ours && !claim.is_terminating()
}

/// The name conflict if the claim belongs to another Tenant.
fn foreign_owner(observed: &Observed, claim: &NfsClaim) -> Option<Problem> {
    let tenant = &observed.tenant;
    if claim.is_controlled_by(&observed.tenant) || claim.controller_uid().is_some() {
        // The apply engine refuses what another object controls.
        return None;
    }
    let name = format!("{}/{}", claim.namespace(), claim.name());
    match (claim.annotation(OWNER), claim.annotation(EMAIL)) {
        (Some(owner), _) if owner != tenant.name() => {
            let message = format!("the personal volume {name} belongs to Tenant {owner}: it is left alone");
            Some(Problem::fault(MY_DRIVE, reason::NAME_CONFLICT, message))
        }
        (Some(_), Some(email))
            if !email.eq_ignore_ascii_case(&tenant.spec.email) && is_of_former_tenant(observed) =>
        {
            let message = format!(
                "the personal volume {name} was kept for a former Tenant of this name with another e-mail \
                 address: it is left alone; to hand it over, set its annotation {EMAIL} to this Tenant's address"
            );
            Some(Problem::fault(MY_DRIVE, reason::NAME_CONFLICT, message))
        }
        _ => None,
    }
}

/// Whether the volume was made for a former Tenant of the same name. A Tenant that has a volume can change
/// its address, and the annotation is updated.
fn is_of_former_tenant(observed: &Observed) -> bool {
    observed.claim().and_then(|claim| claim.annotation(TENANT_UID)) != Some(observed.tenant.uid())
}

/// Whether a claim belongs to this Tenant, and not to a former one of the same name.
pub fn belongs_to(observed: &Observed, claim: &NfsClaim) -> bool {
    claim.is_controlled_by(&observed.tenant) || claim.annotation(TENANT_UID) == Some(observed.tenant.uid())
}

/// The location of the volume.
fn found(observed: &Observed) -> Result<Location, Problem> {
    let Some(volume) = &observed.volume else {
        return Err(Problem::waiting(
            MY_DRIVE,
            reason::VOLUME_MISSING,
            "the volume of the personal claim is not there yet".to_owned(),
        ));
    };
    location(volume).ok_or_else(|| {
        let message = format!(
            "PersistentVolume {} names no NFS server and share (spec.csi.volumeAttributes): is \
             controllers.tenant.myDrive.storageClassName an NFS class?",
            volume.name()
        );
        Problem::fault(MY_DRIVE, reason::VOLUME_NOT_NFS, message)
    })
}

/// The Secret that is made once the claim of a plan is bound, with placeholders for the location of the volume.
pub fn foreseen(observed: &Observed, settings: &Settings, plan: &Plan<Effect>) -> Option<Value> {
    let name = observed.names().claim;
    let is_claim =
        |made: &&Desired| made.kind == KindInfo::of::<NfsClaimKind>() && made.key.name.as_str() == name;
    let claim = &plan.ensure.iter().find(is_claim)?.key;
    let (server, path) = (format!("<server of volume {claim}>"), format!("<path of volume {claim}>"));
    let secret = Children { observed, settings }.secret(&server, &path).made();
    secret.manifest.map(|manifest| manifest.json().clone())
}

#[cfg(test)]
mod tests;
