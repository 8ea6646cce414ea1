//! The requests of actions, each with the token of the user. The API server and the webhooks enforce all rules. An
//! action that is sent twice takes effect once: after a refusal, and after a change that was not confirmed, the object is
//! read before the failure is reported.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::entry::{Action, Enrolment, Form, NewInstance, Plan};
use super::happened;
use super::result::Failure;
use crate::api::instance::InstanceKind;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::names::{CanonicalName, check_dns_label};
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::workspace::WorkspaceKind;
use crate::api::{Instance, InstanceSnapshot, Kind, Object};
use crate::controllers::dashboard::texts::Problem;
use crate::controllers::dashboard::user::users::User;
use crate::runtime::ObjectKey;
use crate::runtime::client::{Patch, Preconditions, UserClient};
use crate::runtime::error::ApiError;

/// The maximum number of tries while other clients change the same object.
const TRIES: usize = 5;
/// The pauses before the reads of an object after a refusal. The API server counts a new object shortly before it stores
/// it, so the second of two equal forms may be refused before the object of the first one can be read.
const PAUSES: [Duration; 2] = [Duration::ZERO, Duration::from_millis(300)];
/// The time limit for these reads: the user has waited for the change already.
const READS: Duration = Duration::from_millis(1_500);

/// The requests of one user.
pub struct Requests<'a> {
    /// The API server.
    pub client: &'a UserClient,
    /// The user.
    pub user: &'a User,
}

impl Requests<'_> {
    /// Carries out an action. Returns the name of the completed action.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn carry_out(&self, action: &Action, form: &Form<'_>) -> Result<&'static str, Failure> {
        match action.plan {
            Plan::CreateInstance(plan) => self.create(&plan(form)?).await?,
            Plan::PatchInstance(plan) => {
                let (machine, uid) = of_form(form)?;
                self.patch::<InstanceKind>(&machine, |instance| {
                    // The Instance was deleted and created again.
                    if instance.uid() != uid {
                        return Err(Problem::Changed);
                    }
                    let patch = plan(instance, form)?;
                    Ok(patch.map(|patch| Preconditions::of(instance).merge(patch)))
                })
                .await?;
            }
            Plan::DeleteInstance => {
                let (machine, uid) = of_form(form)?;
                let done =
                    match self.client.delete::<InstanceKind>(&self.user.credential, &machine, uid).await {
                        // The form was sent twice: the Instance no longer exists.
                        Err(ApiError::NotFound(_)) => Ok(()),
                        done => done,
                    };
                let happened = |found: Option<&Instance>| happened::deleted(found, uid);
                self.unless_done::<InstanceKind>(done, &machine, happened).await?;
            }
            Plan::CreateSnapshot(plan) => {
                let (machine, _) = of_form(form)?;
                let (credential, body) = (&self.user.credential, plan(form)?);
                let namespace = &machine.namespace;
                let done = self.client.create::<InstanceSnapshotKind>(credential, namespace, &body).await;
                let key = ObjectKey::new(namespace.clone(), form.new_name()?);
                let happened = |found: Option<&InstanceSnapshot>| {
                    found.is_some_and(|found| happened::saved(found, &body))
                };
                self.unless_done::<InstanceSnapshotKind>(done.map(drop), &key, happened).await?;
            }
            Plan::PatchTenant(plan) => self.patch_tenant(|tenant| plan(tenant, form)).await?,
            Plan::Enrol(plan) => {
                let workspace = ObjectKey::new("", form.course().ok_or(Problem::Form)?);
                let workspace = self.read::<WorkspaceKind>(&workspace).await?;
                let mut done = action.name;
                self.patch_tenant(|tenant| {
                    let Enrolment { done: of_course, operations } = plan(tenant, &workspace)?;
                    done = of_course;
                    Ok(operations)
                })
                .await?;
                return Ok(done);
            }
        }
        Ok(action.name)
    }

    async fn create(&self, new: &NewInstance) -> Result<(), Failure> {
        let NewInstance { name, template, pretty_name, node_selector } = new;
        let namespace = CanonicalName::of(&self.user.name).tenant_namespace();
        if check_dns_label(name).is_err() {
            return Err(Problem::Form.into());
        }
        let mut body = json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "template.crownlabs.polito.it/TemplateRef": {"namespace": &*template.namespace, "name": &*template.name},
                "tenant.crownlabs.polito.it/TenantRef": {"name": self.user.name},
                "running": true,
            },
        });
        if !pretty_name.is_empty() {
            body["spec"]["prettyName"] = pretty_name.as_str().into();
        }
        if !node_selector.is_empty() {
            body["spec"]["nodeSelector"] = json!(node_selector);
        }
        let done = self.client.create::<InstanceKind>(&self.user.credential, &namespace, &body).await;
        let key = ObjectKey::new(namespace, name.as_str());
        let happened = |found: Option<&Instance>| found.is_some_and(|found| happened::created(found, new));
        self.unless_done::<InstanceKind>(done.map(drop), &key, happened).await
    }

    /// Patches the Tenant of the user.
    async fn patch_tenant(
        &self,
        mut plan: impl FnMut(&Tenant) -> Result<Option<Vec<Value>>, Problem>,
    ) -> Result<(), Failure> {
        let own = ObjectKey::new("", self.user.name.as_str());
        self.patch::<TenantKind>(&own, |tenant| {
            let operations = plan(tenant)?;
            Ok(operations.map(|operations| Preconditions::of(tenant).json(operations)))
        })
        .await
    }

    /// Reads an object before it is changed.
    async fn read<T: Kind>(&self, key: &ObjectKey) -> Result<Object<T>, Failure> {
        let found = self.client.get::<T>(&self.user.credential, key).await;
        found.map_err(|error| if error.is_away() { Problem::NotNow.into() } else { error.into() })
    }

    /// Returns the result of a change. If it failed, reads the object: the change may have happened anyway.
    async fn unless_done<T: Kind>(
        &self,
        done: Result<(), ApiError>,
        key: &ObjectKey,
        mut happened: impl FnMut(Option<&Object<T>>) -> bool,
    ) -> Result<(), Failure> {
        let error = match done {
            Ok(()) => return Ok(()),
            // Nothing was sent.
            Err(error @ ApiError::Silent) => return Err(error.into()),
            Err(error) => error,
        };
        let end = Instant::now() + READS;
        for pause in PAUSES {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            let found = match timeout_at(end, self.client.get::<T>(&self.user.credential, key)).await {
                Ok(Ok(found)) => Some(found),
                Ok(Err(ApiError::NotFound(_))) => None,
                Ok(Err(_)) | Err(_) => break,
            };
            if happened(found.as_ref()) {
                return Ok(());
            }
            if found.is_some() {
                break;
            }
        }
        Err(error.into())
    }

    /// Patches an object. The status of an Instance changes often, so a conflict is retried with the next version.
    async fn patch<T: Kind>(
        &self,
        key: &ObjectKey,
        mut plan: impl FnMut(&Object<T>) -> Result<Option<Value>, Problem>,
    ) -> Result<(), Failure> {
        let mut retries = 1..TRIES;
        loop {
            let object = self.read::<T>(key).await?;
            let Some(body) = plan(&object)? else { return Ok(()) };
            // A JSON patch is a list of operations, and a merge patch is an object.
            let patch = if body.is_array() { Patch::Json(&body) } else { Patch::Merge(&body) };
            match self.client.patch::<T>(&self.user.credential, key, patch).await {
                Err(ApiError::Conflict(_)) if retries.next().is_some() => {}
                patched => {
                    let happened = |found: Option<&Object<T>>| {
                        found.is_some_and(|found| happened::patched(found, &body, &plan(found)))
                    };
                    return self.unless_done::<T>(patched.map(drop), key, happened).await;
                }
            }
        }
    }
}

/// Returns the machine of a form, and the uid that the page was rendered for.
fn of_form<'f>(form: &'f Form<'_>) -> Result<(ObjectKey, &'f str), Problem> {
    let uid = Some(form.get("uid")).filter(|uid| !uid.is_empty()).ok_or(Problem::Form)?;
    Ok((form.machine().ok_or(Problem::Form)?, uid))
}
