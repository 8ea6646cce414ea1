//! The requests of actions, each with the token of the user. The API server and the webhooks enforce all rules. An
//! action that is sent twice takes effect once: after a refusal, and after a change that was not confirmed, the object is
//! read before the failure is reported.

use std::time::Duration;

use futures::future::BoxFuture;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::entry::{Action, Enrolment, Form, NewInstance, NewObject, Plan, Target};
use super::happened;
use super::result::Failure;
use crate::api::instance::InstanceKind;
use crate::api::names::{CanonicalName, check_dns_label};
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::workspace::WorkspaceKind;
use crate::api::{Instance, Workspace};
use crate::controllers::dashboard::texts::Problem;
use crate::controllers::dashboard::user::users::User;
use crate::runtime::client::{Patch, Preconditions, UserClient};
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;
use crate::runtime::{ObjectKey, merge};

const INSTANCE: KindInfo = KindInfo::of::<InstanceKind>();
const TENANT: KindInfo = KindInfo::of::<TenantKind>();
const WORKSPACE: KindInfo = KindInfo::of::<WorkspaceKind>();

/// The maximum number of tries while other clients change the same object.
const TRIES: usize = 5;
/// The pauses before the reads of an object after a refusal. The API server counts a new object shortly before it stores
/// it, so the second of two equal forms may be refused before the object of the first one can be read.
const PAUSES: [Duration; 2] = [Duration::ZERO, Duration::from_millis(300)];
/// The time limit for these reads: the user has waited for the change already.
const READS: Duration = Duration::from_millis(1_500);

/// Carries out an action of a page that shows its form again itself; see [`Requests::carry_out`].
pub fn carry_out<'a>(
    client: &'a UserClient,
    user: &'a User,
    action: &'static Action,
    form: &'a Form<'a>,
) -> BoxFuture<'a, Result<&'static str, Failure>> {
    Box::pin(async move { Requests { client, user }.carry_out(action, form).await })
}

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
                let plan = |instance: &Instance| -> Result<Option<Value>, Problem> {
                    // The Instance was deleted and created again.
                    if instance.uid() != uid {
                        return Err(Problem::Changed);
                    }
                    let patch = plan(instance, form)?;
                    Ok(patch.map(|patch| Preconditions::of(instance).merge(patch)))
                };
                self.patch(INSTANCE, &machine, plan, happened::patched).await?;
            }
            Plan::DeleteInstance => {
                let (machine, uid) = of_form(form)?;
                self.delete(INSTANCE, &machine, uid).await?;
            }
            Plan::PatchTenant(plan) => self.patch_tenant(|tenant| plan(tenant, form)).await?,
            Plan::Enrol(plan) => {
                let workspace = ObjectKey::new("", form.course().ok_or(Problem::Form)?);
                let workspace: Workspace = self.read(WORKSPACE, &workspace).await?;
                let mut done = action.name;
                self.patch_tenant(|tenant| {
                    let Enrolment { done: of_course, operations } = plan(tenant, &workspace)?;
                    done = of_course;
                    Ok(operations)
                })
                .await?;
                return Ok(done);
            }
            Plan::Create(plan) => self.create_object(&plan(form)?).await?,
            Plan::Patch(target, plan) => {
                let (key, uid) = of_target(&target, form)?;
                let plan = |object: &Value| -> Result<Option<Value>, Problem> {
                    // The object was deleted and created again.
                    if object["metadata"]["uid"] != uid {
                        return Err(Problem::Changed);
                    }
                    Ok(plan(object, form)?.map(|patch| versioned(object, patch)))
                };
                self.patch(target.kind, &key, plan, happened::changed).await?;
            }
            Plan::Delete(target) => {
                let (key, uid) = of_target(&target, form)?;
                self.delete(target.kind, &key, uid).await?;
            }
            Plan::CreateOrPatch { kind, key, create, patch } => {
                let (create, patch) = (|| create(form), |object: &Value| patch(object, form));
                self.create_or_patch(kind, &key(form)?, create, patch).await?;
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
        let credential = &self.user.credential;
        let done = self.client.create_as::<IgnoredAny>(credential, INSTANCE, &namespace, &body).await;
        let key = ObjectKey::new(namespace, name.as_str());
        let happened = |found: Option<&Instance>| found.is_some_and(|found| happened::created(found, new));
        self.unless_done(done.map(drop), INSTANCE, &key, happened).await
    }

    async fn create_object(&self, new: &NewObject) -> Result<(), Failure> {
        let NewObject { kind, key, body } = new;
        key.check().map_err(|_| Problem::Form)?;
        let (credential, mut body) = (&self.user.credential, body.clone());
        merge::apply(&mut body, &json!({"metadata": {"name": &*key.name}}));
        let done = self.client.create_as::<IgnoredAny>(credential, *kind, &key.namespace, &body).await;
        let happened = |found: Option<&Value>| found.is_some_and(|found| happened::is_new(found, &body));
        self.unless_done(done.map(drop), *kind, key, happened).await
    }

    /// Changes an object, or creates it if it does not exist. A creation has happened if the change of the object that
    /// exists then is none.
    async fn create_or_patch(
        &self,
        kind: KindInfo,
        key: &ObjectKey,
        create: impl Fn() -> Result<Value, Problem>,
        patch: impl Fn(&Value) -> Result<Option<Value>, Problem>,
    ) -> Result<(), Failure> {
        match self.read::<IgnoredAny>(kind, key).await {
            Ok(_) => {
                let plan = |object: &Value| -> Result<Option<Value>, Problem> {
                    Ok(patch(object)?.map(|changes| versioned(object, changes)))
                };
                self.patch(kind, key, plan, happened::changed).await
            }
            Err(Failure::Api(ApiError::NotFound(_))) => {
                let mut body = create()?;
                merge::apply(&mut body, &json!({"metadata": {"name": &*key.name}}));
                let credential = &self.user.credential;
                let done = self.client.create_as::<IgnoredAny>(credential, kind, &key.namespace, &body).await;
                let happened =
                    |found: Option<&Value>| found.is_some_and(|found| matches!(patch(found), Ok(None)));
                self.unless_done(done.map(drop), kind, key, happened).await
            }
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, kind: KindInfo, key: &ObjectKey, uid: &str) -> Result<(), Failure> {
        let done = match self.client.delete_as(&self.user.credential, kind, key, uid).await {
            // The form was sent twice: the object no longer exists.
            Err(ApiError::NotFound(_)) => Ok(()),
            done => done,
        };
        let happened = |found: Option<&Value>| happened::deleted(found, uid);
        self.unless_done(done, kind, key, happened).await
    }

    /// Patches the Tenant of the user.
    async fn patch_tenant(
        &self,
        mut plan: impl FnMut(&Tenant) -> Result<Option<Vec<Value>>, Problem>,
    ) -> Result<(), Failure> {
        let own = ObjectKey::new("", self.user.name.as_str());
        let plan = |tenant: &Tenant| -> Result<Option<Value>, Problem> {
            let operations = plan(tenant)?;
            Ok(operations.map(|operations| Preconditions::of(tenant).json(operations)))
        };
        self.patch(TENANT, &own, plan, happened::patched).await
    }

    /// Reads an object before it is changed.
    async fn read<A: DeserializeOwned>(&self, kind: KindInfo, key: &ObjectKey) -> Result<A, Failure> {
        let found = self.client.get_as::<A>(&self.user.credential, kind, key).await;
        found.map_err(|error| if error.is_away() { Problem::NotNow.into() } else { error.into() })
    }

    /// Returns the result of a change. If it failed, reads the object: the change may have happened anyway.
    async fn unless_done<A: DeserializeOwned>(
        &self,
        done: Result<(), ApiError>,
        kind: KindInfo,
        key: &ObjectKey,
        mut happened: impl FnMut(Option<&A>) -> bool,
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
            let read = self.client.get_as::<A>(&self.user.credential, kind, key);
            let found = match timeout_at(end, read).await {
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
    async fn patch<A: DeserializeOwned>(
        &self,
        kind: KindInfo,
        key: &ObjectKey,
        mut plan: impl FnMut(&A) -> Result<Option<Value>, Problem>,
        has_changed: impl Fn(&A, &Value, &Result<Option<Value>, Problem>) -> bool,
    ) -> Result<(), Failure> {
        let mut retries = 1..TRIES;
        loop {
            let object = self.read::<A>(kind, key).await?;
            let Some(body) = plan(&object)? else { return Ok(()) };
            // A JSON patch is a list of operations, and a merge patch is an object.
            let patch = if body.is_array() { Patch::Json(&body) } else { Patch::Merge(&body) };
            match self.client.patch_as::<IgnoredAny>(&self.user.credential, kind, key, patch).await {
                Err(ApiError::Conflict(_)) if retries.next().is_some() => {}
                patched => {
                    let happened = |found: Option<&A>| {
                        found.is_some_and(|found| has_changed(found, &body, &plan(found)))
                    };
                    return self.unless_done(patched.map(drop), kind, key, happened).await;
                }
            }
        }
    }
}

/// Returns the machine of a form, and the uid that the page was rendered for.
fn of_form<'f>(form: &'f Form<'_>) -> Result<(ObjectKey, &'f str), Problem> {
    Ok((form.machine().ok_or(Problem::Form)?, form.uid()?))
}

/// Returns the object that a form changes, and the uid that the page was rendered for.
fn of_target<'f>(target: &Target, form: &'f Form<'_>) -> Result<(ObjectKey, &'f str), Problem> {
    let key = (target.key)(form).filter(|key| key.check().is_ok()).ok_or(Problem::Form)?;
    Ok((key, form.uid()?))
}

/// Adds the version of an object to a change of it.
fn versioned(object: &Value, patch: Value) -> Value {
    let version = Preconditions::of_json(object);
    match patch {
        Value::Array(operations) => version.json(operations),
        patch => version.merge(patch),
    }
}
