//! The personal volume of a Tenant (`MyDrive`): `PersistentVolumeClaim`, Secret and Job.
//!
//! The claim is kept when its Tenant is deleted, unless it is configured otherwise. So it has no owner
//! reference but annotations with the name and e-mail address of its Tenant. A new Tenant of the same name
//! gets the volume only if it has the same address.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::observe::Observed;
use super::{Effect, Settings};
use crate::api::labels;
use crate::api::reason;
use crate::config::{MyDrive, OnTenantDeletion};
use crate::controllers::shared::children::{ChildBuilder, ChildMeta};
use crate::controllers::shared::nfs_volume::{
    Location, claim_spec, failure, growth, is_bound, job, location, provisioning,
};
use crate::controllers::shared::references::MY_DRIVE_SECRET;
use crate::kinds::{NfsClaim, NfsClaimKind, SecretKind};
use crate::runtime::component::Component;
use crate::runtime::plan::{Desired, KindInfo, Ownership, Plan, Removal, to_value};
use crate::runtime::problem::Problem;

/// The component of the personal volume.
pub const MY_DRIVE: Component = Component::Part("mydrive");
/// The component of the Secret: a part of the component of the namespace.
pub const SECRET: Component = Component::Within("personal-namespace", "mydrive");
/// Annotation of a claim: the name of its Tenant.
pub const OWNER: &str = "crownlabs.polito.it/mydrive-owner";
/// Annotation of a claim: the e-mail address of its Tenant.
pub const EMAIL: &str = "crownlabs.polito.it/mydrive-email";

/// Plans the volume of a Tenant whose personal namespace exists.
pub fn plan(observed: &Observed, settings: &Settings, builder: &ChildBuilder, plan: &mut Plan<Effect>) {
    let claim = observed.children.claim.as_deref();
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
    let own_job = observed.children.job.as_deref().filter(|job| job.is_controlled_by(&observed.tenant));
    let provisioned = provisioning(claim, own_job);
    plan.ensure.push(desired_claim(observed, &settings.config.my_drive, builder, claim, provisioned));
    plan.patches.extend(claim.and_then(|claim| growth(claim, &settings.config.my_drive.size, MY_DRIVE)));
    let Some(claim) = claim.filter(|claim| is_bound(claim)) else { return };
    let names = observed.names();
    let config = &settings.config.my_drive;
    let meta =
        ChildMeta { namespace: &config.namespace, name: &names.provision, component: &MY_DRIVE, wave: 1 };
    let existing = observed.children.job.as_deref();
    let wanted_job = || job(existing, &names.claim, &config.provisioning_image, builder, meta);
    if !is_usable(observed, claim) {
        // A pod holds the claim even when it has succeeded, so its Job goes first: the engine deletes that of a former
        // Tenant if the garbage collector does not. The next claim needs a Job of its own.
        plan.remove.extend(own_job.map(|job| Removal::of(job, MY_DRIVE)));
        plan.ensure.extend(existing.filter(|_| own_job.is_none()).map(|_| wanted_job()));
        return;
    }
    match data(observed) {
        Ok(data) => plan.ensure.push(secret(observed, builder, &data)),
        Err(problem) => plan.problems.push(problem),
    }
    if provisioned == Some(labels::PROVISIONING_COMPLETED) {
        return;
    }
    if let Some(failed) = observed.children.job.as_deref().and_then(failure) {
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
        plan.ensure.push(wanted_job());
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
    let claim = observed.children.claim.as_deref();
    claim.and_then(|claim| claim.annotation(TENANT_UID)) != Some(observed.tenant.uid())
}

/// Annotation of a claim: the uid of its current Tenant.
const TENANT_UID: &str = "crownlabs.polito.it/mydrive-tenant-uid";

/// Whether a claim belongs to this Tenant, and not to a former one of the same name.
pub fn belongs_to(observed: &Observed, claim: &NfsClaim) -> bool {
    claim.is_controlled_by(&observed.tenant) || claim.annotation(TENANT_UID) == Some(observed.tenant.uid())
}

/// The claim of a Tenant that is being deleted, without its owner reference, so that it is kept.
pub fn kept(observed: &Observed, settings: &Settings, claim: &NfsClaim) -> Desired {
    let builder = super::plan::builder(observed, settings);
    let state = claim.label(labels::VOLUME_PROVISIONING);
    desired_claim(observed, &settings.config.my_drive, &builder, Some(claim), state)
}

fn desired_claim(
    observed: &Observed,
    config: &MyDrive,
    builder: &ChildBuilder,
    claim: Option<&NfsClaim>,
    provisioned: Option<&str>,
) -> Desired {
    let names = observed.names();
    let body = claim_spec(&config.storage_class_name, &config.size);
    let meta = ChildMeta { namespace: &config.namespace, name: &names.claim, component: &MY_DRIVE, wave: 0 };
    let kept = config.on_tenant_deletion == OnTenantDeletion::Retain;
    let tenant = &observed.tenant;
    let annotations: BTreeMap<String, String> =
        [(OWNER, tenant.name()), (EMAIL, tenant.spec.email.as_str()), (TENANT_UID, tenant.uid())]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
    let mut desired = builder.created::<NfsClaimKind>(claim, meta, &body);
    desired
        .labels
        .extend(provisioned.map(|state| (labels::VOLUME_PROVISIONING.to_owned(), state.to_owned())));
    desired.labels.insert(labels::TENANT.to_owned(), tenant.name().to_owned());
    // A volume of this Tenant is known by the name that it carries, whatever the selector was when it was made.
    let is_named = claim.is_some_and(|claim| claim.annotation(OWNER) == Some(tenant.name()));
    let made_by_us = (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_TENANT.to_owned());
    desired.known_by = Some(if is_named { [made_by_us].into() } else { builder.labels.clone() });
    desired.ownership = if kept { Ownership::Kept } else { Ownership::Controlled };
    desired.manifest = desired.manifest.map(|manifest| {
        let mut metadata = json!({"annotations": annotations, "labels": {labels::TENANT: tenant.name()}});
        if kept {
            metadata["ownerReferences"] = Value::Null;
        }
        manifest.merged(&json!({"metadata": metadata}))
    });
    desired.annotations = annotations.into_iter().map(|(key, value)| (key, Some(value))).collect();
    desired
}

/// The data of the Secret: the location of the volume.
fn data(observed: &Observed) -> Result<Value, Problem> {
    let Some(volume) = &observed.children.volume else {
        return Err(Problem::waiting(
            MY_DRIVE,
            reason::VOLUME_MISSING,
            "the volume of the personal claim is not there yet".to_owned(),
        ));
    };
    let Some(Location { server, share }) = location(volume) else {
        let message = format!(
            "PersistentVolume {} names no NFS server and share (spec.csi.volumeAttributes): is \
             controllers.tenant.myDrive.storageClassName an NFS class?",
            volume.name()
        );
        return Err(Problem::fault(MY_DRIVE, reason::VOLUME_NOT_NFS, message));
    };
    Ok(location_data(&server, &share))
}

fn location_data(server: &str, share: &str) -> Value {
    let encoded = |text: &str| to_value(&k8s_openapi::ByteString(text.as_bytes().to_vec()));
    json!({"data": {"server-name": encoded(server), "path": encoded(share)}})
}

/// The Secret that is made once the claim of a plan is bound, with placeholders for the location of the volume.
pub fn foreseen(observed: &Observed, settings: &Settings, plan: &Plan<Effect>) -> Option<Value> {
    let name = observed.names().claim;
    let is_claim =
        |made: &&Desired| made.kind == KindInfo::of::<NfsClaimKind>() && made.key.name.as_str() == name;
    let claim = &plan.ensure.iter().find(is_claim)?.key;
    let data = location_data(&format!("<server of volume {claim}>"), &format!("<path of volume {claim}>"));
    let secret = secret(observed, &super::plan::builder(observed, settings), &data);
    secret.manifest.map(|manifest| manifest.json().clone())
}

fn secret(observed: &Observed, builder: &ChildBuilder, data: &Value) -> Desired {
    let namespace = observed.names().namespace;
    let meta = ChildMeta { namespace: &namespace, name: MY_DRIVE_SECRET, component: &SECRET, wave: 1 };
    let mut desired = builder.enforced::<SecretKind>(observed.children.secret.as_deref(), meta, data);
    desired.manifest = desired.manifest.map(|manifest| manifest.merged(&json!({"type": "Opaque"})));
    desired
}

#[cfg(test)]
mod tests;
