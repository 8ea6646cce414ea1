//! The personal volume of a Tenant (`MyDrive`): `PersistentVolumeClaim`, Secret or mirror, and Job.
//!
//! The claim is kept when its Tenant is deleted, unless the configuration says otherwise. So it has no owner reference,
//! but annotations with the name and e-mail address of its Tenant. A new Tenant with the same name gets the volume only
//! if it has the same address.

mod mirror;

use jiff::Timestamp;
use serde_json::Value;

use super::children::{Children, EMAIL, MY_DRIVE, OWNER, TENANT_UID};
use super::observe::Observed;
use super::{Effect, Settings};
use crate::api::condition::{Condition, MY_DRIVE_READY};
use crate::api::{labels, reason};
use crate::config::StorageMode;
use crate::controllers::shared::nfs_volume::{Location, failure, growth, is_bound, location, provisioning};
use crate::controllers::shared::waits;
use crate::kinds::{NfsClaim, NfsClaimKind};
use crate::runtime::plan::{Desired, KindInfo, Plan};
use crate::runtime::problem::Problem;

/// Plans the volume of a Tenant whose personal namespace exists.
pub fn plan(children: Children<'_>, now: Timestamp, plan: &mut Plan<Effect>) {
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
    let Some(claim) = claim.filter(|claim| is_bound(claim)) else {
        wait_for_claim(observed, now, plan);
        return;
    };
    let job = children.job();
    if !is_usable(observed, claim) {
        // A pod uses the claim even after it has succeeded, so the Job of a former Tenant must be deleted first. The
        // engine deletes it if the garbage collector does not. The next claim needs its own Job.
        match job.existing {
            Some(_) if job.is_own() => job.remove(plan),
            Some(_) => job.ensure(plan),
            None => {}
        }
        return;
    }
    match (settings.storage.mode, found(observed)) {
        (StorageMode::Mirror, _) => mirror::plan(children, now, plan),
        (StorageMode::Nfs, Ok(Location { server, share })) => children.secret(&server, &share).ensure(plan),
        (StorageMode::Nfs, Err(problem)) => plan.problems.push(problem),
    }
    if provisioned == Some(labels::PROVISIONING_COMPLETED) {
        return;
    }
    plan.problems.extend(observed.job().and_then(|job| failure(job, "the personal volume", MY_DRIVE)));
    // A running Job is left alone. The apply engine rejects a Job with another owner.
    match own_job {
        None => job.ensure(plan),
        Some(own) => waits::of_job(own, MY_DRIVE, &observed.events, stored(observed), now).join(plan),
    }
}

/// Plans the consequences of an unbound claim.
fn wait_for_claim(observed: &Observed, now: Timestamp, plan: &mut Plan<Effect>) {
    let Some(claim) = observed.claim() else {
        // The claim is created now.
        plan.requeue_after(waits::GRACE);
        return;
    };
    let (fault, events) = (observed.class_fault.as_ref(), &observed.events);
    waits::of_claim(claim, MY_DRIVE, fault, events, stored(observed), now).join(plan);
}

/// The condition that explains why the volume waits.
fn stored(observed: &Observed) -> Option<&Condition> {
    observed.tenant.status.conditions.iter().find(|condition| condition.type_ == MY_DRIVE_READY)
}

/// Whether a claim belongs to this Tenant and stays. A claim that is being deleted, or that a former Tenant with the
/// same name controls, may hold another user's data, so its location is not disclosed.
fn is_usable(observed: &Observed, claim: &NfsClaim) -> bool {
    let is_ours = claim.controller_uid().is_none_or(|uid| uid == observed.tenant.uid());
    is_ours && !claim.is_terminating()
}

/// The name conflict, if the claim belongs to another Tenant.
fn foreign_owner(observed: &Observed, claim: &NfsClaim) -> Option<Problem> {
    let tenant = &observed.tenant;
    if claim.controller_uid().is_some() {
        // The apply engine rejects objects with another controller.
        return None;
    }
    let name = format!("{}/{}", claim.namespace(), claim.name());
    let message = match (claim.annotation(OWNER), claim.annotation(EMAIL)) {
        (Some(owner), _) if owner != tenant.name() => {
            format!("the personal volume {name} belongs to Tenant {owner}: it is left alone")
        }
        (Some(_), Some(email))
            if !email.eq_ignore_ascii_case(&tenant.spec.email) && !belongs_to(observed, claim) =>
        {
            format!(
                "the personal volume {name} was kept for a former Tenant of this name with another e-mail \
                 address: it is left alone; to hand it over, set its annotation {EMAIL} to this Tenant's address"
            )
        }
        _ => return None,
    };
    Some(Problem::fault(MY_DRIVE, reason::NAME_CONFLICT, message))
}

/// Whether a claim belongs to this Tenant, and not to a former one with the same name. A Tenant that has a volume can
/// change its address, and then the annotation with the address is updated.
pub fn belongs_to(observed: &Observed, claim: &NfsClaim) -> bool {
    claim.is_controlled_by(&observed.tenant) || claim.annotation(TENANT_UID) == Some(observed.tenant.uid())
}

/// The location of the volume.
fn found(observed: &Observed) -> Result<Location, Problem> {
    let Some(volume) = &observed.volume else {
        let message = "the claim of the personal volume is not bound yet".to_owned();
        return Err(Problem::waiting(MY_DRIVE, reason::VOLUME_MISSING, message));
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

/// The Secret or the mirror that will be created once the claim of a plan is bound. The Secret has placeholders for the
/// location of the volume.
pub fn foreseen(observed: &Observed, settings: &Settings, plan: &Plan<Effect>) -> Option<Value> {
    let name = observed.names().claim;
    let is_claim =
        |made: &&Desired| made.kind == KindInfo::of::<NfsClaimKind>() && made.key.name.as_str() == name;
    let claim = &plan.ensure.iter().find(is_claim)?.key;
    let (server, path) = (format!("<server of volume {claim}>"), format!("<path of volume {claim}>"));
    let children = Children { observed, settings };
    let foreseen = match settings.storage.mode {
        StorageMode::Nfs => children.secret(&server, &path),
        StorageMode::Mirror => children.mirror(),
    };
    foreseen.made().manifest.map(|manifest| manifest.json().clone())
}

#[cfg(test)]
mod tests;
