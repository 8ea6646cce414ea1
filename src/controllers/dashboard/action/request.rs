//! The requests of actions, each with the token of the user. The API server and the webhooks enforce all rules. An
//! action that is sent twice takes effect once.

use serde_json::{Value, json};

use super::entry::{Action, Enrolment, Form, NewInstance, Plan};
use super::result::Failure;
use crate::api::instance::InstanceKind;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::names::{CanonicalName, check_dns_label};
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::workspace::WorkspaceKind;
use crate::api::{Kind, Object};
use crate::controllers::dashboard::texts::Problem;
use crate::controllers::dashboard::user::users::User;
use crate::runtime::ObjectKey;
use crate::runtime::client::{Patch, Preconditions, UserClient};
use crate::runtime::error::ApiError;

/// The maximum number of tries while other clients change the same object.
const TRIES: usize = 5;

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
                match self.client.delete::<InstanceKind>(&self.user.credential, &machine, uid).await {
                    // The form was sent twice: the Instance no longer exists.
                    Ok(()) | Err(ApiError::NotFound(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Plan::CreateSnapshot(plan) => {
                let (machine, _) = of_form(form)?;
                let (credential, body) = (&self.user.credential, plan(form)?);
                let created =
                    self.client.create::<InstanceSnapshotKind>(credential, &machine.namespace, &body).await;
                match created {
                    Ok(_) | Err(ApiError::AlreadyExists(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Plan::PatchTenant(plan) => self.patch_tenant(|tenant| plan(tenant, form)).await?,
            Plan::Enrol(plan) => {
                let workspace = ObjectKey::new("", form.course().ok_or(Problem::Form)?);
                let workspace = self.client.get::<WorkspaceKind>(&self.user.credential, &workspace).await?;
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

    async fn create(&self, instance: &NewInstance) -> Result<(), Failure> {
        let NewInstance { name, template } = instance;
        let namespace = CanonicalName::of(&self.user.name).tenant_namespace();
        if check_dns_label(name).is_err() {
            return Err(Problem::Form.into());
        }
        let body = json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "template.crownlabs.polito.it/TemplateRef": {"namespace": &*template.namespace, "name": &*template.name},
                "tenant.crownlabs.polito.it/TenantRef": {"name": self.user.name},
                "running": true,
            },
        });
        match self.client.create::<InstanceKind>(&self.user.credential, &namespace, &body).await {
            Ok(_) => Ok(()),
            Err(error @ ApiError::AlreadyExists(_)) => {
                // The form was sent twice if the existing Instance has the same Template.
                let own = ObjectKey::new(namespace, name.as_str());
                let found = self.client.get::<InstanceKind>(&self.user.credential, &own).await?;
                let reference = &found.spec.template_ref;
                let is_same =
                    *reference.name == *template.name && *reference.namespace == *template.namespace;
                if is_same { Ok(()) } else { Err(error.into()) }
            }
            Err(error) => Err(error.into()),
        }
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

    /// Patches an object. The status of an Instance changes often, so a conflict is retried with the next version.
    async fn patch<T: Kind>(
        &self,
        key: &ObjectKey,
        mut plan: impl FnMut(&Object<T>) -> Result<Option<Value>, Problem>,
    ) -> Result<(), Failure> {
        let mut retries = 1..TRIES;
        loop {
            let object = self.client.get::<T>(&self.user.credential, key).await?;
            let Some(body) = plan(&object)? else { return Ok(()) };
            // A JSON patch is a list of operations, and a merge patch is an object.
            let patch = if body.is_array() { Patch::Json(&body) } else { Patch::Merge(&body) };
            match self.client.patch::<T>(&self.user.credential, key, patch).await {
                Err(ApiError::Conflict(_)) if retries.next().is_some() => {}
                patched => return patched.map(drop).map_err(Failure::from),
            }
        }
    }
}

/// Returns the machine of a form, and the uid that the page was rendered for.
fn of_form<'f>(form: &'f Form<'_>) -> Result<(ObjectKey, &'f str), Problem> {
    let uid = Some(form.get("uid")).filter(|uid| !uid.is_empty()).ok_or(Problem::Form)?;
    Ok((form.machine().ok_or(Problem::Form)?, uid))
}
