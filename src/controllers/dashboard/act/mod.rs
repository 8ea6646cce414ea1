//! What forms change, each by one request with the user's token. The API server and the webhooks decide; whoever sends a form twice
//! changes one thing once.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::instance::{Instance, InstanceKind};
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::labels;
use crate::api::names::{CanonicalName, check_dns_label, check_object_name};
use crate::api::public_key::{PublicKeyError, canonical};
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::workspace::{AutoEnroll, WorkspaceKind};
use crate::controllers::dashboard::page;
use crate::controllers::dashboard::route::{Fields, OfMachine, key};
use crate::controllers::dashboard::users::User;
use crate::runtime::ObjectKey;
use crate::runtime::client::{Patch, Preconditions, UserClient};
use crate::runtime::clock;
use crate::runtime::error::ApiError;

/// Why nothing was changed.
#[derive(Debug)]
pub enum Failure {
    /// The API server has not done it.
    Api(ApiError),
    /// What was typed cannot be used.
    Typed(Typed),
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

/// What is wrong with what was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    /// A field that the page itself has written is missing or wrong.
    Form,
    /// A key is none.
    Key(PublicKeyError),
    /// A key is there already.
    KnownKey,
    /// A port is none.
    Port,
    /// The name of a port is none.
    PortName,
    /// A name to be shown is too long.
    Name,
    /// One cannot join this course by oneself.
    Closed,
}

/// How often a change is tried while others change the same object.
const TRIES: usize = 5;
/// The most characters of a name that is shown.
const LONGEST_NAME: usize = 200;

/// The requests of one user.
pub struct Acting<'a> {
    /// The API server.
    pub client: &'a UserClient,
    /// The user.
    pub user: &'a User,
}

impl Acting<'_> {
    /// Makes a machine. Its name was in the form.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn create(&self, fields: &Fields) -> Result<(), Failure> {
        let form = || Failure::Typed(Typed::Form);
        let template = key(fields.get("templateNamespace"), fields.get("template")).ok_or_else(form)?;
        self.make(&template, fields.get("name")).await
    }

    /// Makes a machine of a Template, with this name.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn make(&self, template: &ObjectKey, name: &str) -> Result<(), Failure> {
        let form = || Failure::Typed(Typed::Form);
        let namespace = CanonicalName::of(&self.user.name).tenant_namespace();
        let own =
            Some(name).filter(|name| check_dns_label(name).is_ok()).and_then(|name| key(&namespace, name));
        let own = own.ok_or_else(form)?;
        let body = json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2",
            "kind": "Instance",
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
                // Sent twice: it is there.
                let found = self.client.get::<InstanceKind>(&self.user.credential, &own).await?;
                let reference = &found.spec.template_ref;
                let is_same =
                    *reference.name == *template.name && *reference.namespace == *template.namespace;
                if is_same { Ok(()) } else { Err(error.into()) }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Does something with a machine. The form has the uid of the one that it is about.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn machine(&self, key: &ObjectKey, act: OfMachine, fields: &Fields) -> Result<(), Failure> {
        let uid = fields.get("uid");
        if uid.is_empty() {
            return Err(Failure::Typed(Typed::Form));
        }
        match act {
            OfMachine::Start => self.change(key, uid, |_| Ok(Some(json!({"spec": {"running": true}})))).await,
            OfMachine::Stop => self.change(key, uid, |_| Ok(Some(json!({"spec": {"running": false}})))).await,
            OfMachine::Keep => self.change(key, uid, |_| Ok(Some(kept(clock::now())))).await,
            OfMachine::Delete => {
                match self.client.delete::<InstanceKind>(&self.user.credential, key, uid).await {
                    // Sent twice: it is gone.
                    Ok(()) | Err(ApiError::NotFound(_)) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
            OfMachine::Rename => {
                let name = fields.get("prettyName").trim();
                if name.chars().count() > LONGEST_NAME {
                    return Err(Failure::Typed(Typed::Name));
                }
                self.change(key, uid, |_| Ok(Some(json!({"spec": {"prettyName": name}})))).await
            }
            OfMachine::Expose => {
                self.change(key, uid, |instance| {
                    Ok(with_port(instance, fields)?.map(|ports| exposing(&ports)))
                })
                .await
            }
            OfMachine::Unexpose => {
                let name = fields.get("name");
                self.change(key, uid, |instance| {
                    Ok(without_port(instance, name).map(|ports| exposing(&ports)))
                })
                .await
            }
            OfMachine::Save => self.save(key, fields).await,
        }
    }

    /// Changes the machine with this uid by a merge patch that follows from what it is now, if there is something to change. Its
    /// status changes all the time, so it is tried again for the next version.
    async fn change(
        &self,
        key: &ObjectKey,
        uid: &str,
        patch: impl Fn(&Instance) -> Result<Option<Value>, Typed>,
    ) -> Result<(), Failure> {
        let mut conflict = ApiError::Conflict("it was deleted, and made anew".to_owned());
        for _ in 0..TRIES {
            let instance = self.client.get::<InstanceKind>(&self.user.credential, key).await?;
            if instance.uid() != uid {
                break;
            }
            let Some(patch) = patch(&instance).map_err(Failure::Typed)? else { return Ok(()) };
            let patch = Preconditions::of(&instance).merge(patch);
            let patched =
                self.client.patch::<InstanceKind>(&self.user.credential, key, Patch::Merge(&patch)).await;
            match patched {
                Ok(_) => return Ok(()),
                Err(error @ ApiError::Conflict(_)) => conflict = error,
                Err(error) => return Err(error.into()),
            }
        }
        Err(conflict.into())
    }

    /// Has an image made of the disk of a machine.
    async fn save(&self, key: &ObjectKey, fields: &Fields) -> Result<(), Failure> {
        let form = Failure::Typed(Typed::Form);
        let [name, image, environment] = ["name", "imageName", "environment"].map(|field| fields.get(field));
        if check_object_name(name).is_err() {
            return Err(form);
        }
        let body = json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2",
            "kind": "InstanceSnapshot",
            "metadata": {"name": name, "namespace": &*key.namespace},
            "spec": {
                "instanceRef": {"name": &*key.name, "namespace": &*key.namespace},
                "environmentRef": {"name": environment},
                "imageName": image,
            },
        });
        let made =
            self.client.create::<InstanceSnapshotKind>(&self.user.credential, &key.namespace, &body).await;
        match made {
            Ok(_) | Err(ApiError::AlreadyExists(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Joins a course, or asks for it. Returns whether the user is in it now.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn join(&self, course: &str) -> Result<bool, Failure> {
        let workspace = ObjectKey::new("", course);
        let workspace = self.client.get::<WorkspaceKind>(&self.user.credential, &workspace).await?;
        let role = match workspace.spec.auto_enroll {
            AutoEnroll::Immediate => "user",
            AutoEnroll::WithApproval => "candidate",
            _ => return Err(Failure::Typed(Typed::Closed)),
        };
        self.change_tenant(|tenant| {
            let entries = &tenant.spec.workspaces;
            let is_there = entries.iter().any(|entry| entry.name == course);
            let entry = json!({"name": course, "role": role});
            Ok((!is_there).then(|| adding("workspaces", entries.is_empty(), entry)))
        })
        .await?;
        Ok(role == "user")
    }

    /// Leaves a course.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn leave(&self, course: &str) -> Result<(), Failure> {
        self.change_tenant(|tenant| {
            let mut entries = tenant.spec.workspaces.iter().enumerate();
            let found = entries.find(|(_, entry)| entry.name == course);
            Ok(found.map(|(at, _)| removing("workspaces", at)))
        })
        .await
    }

    /// Adds a key to those that open the user's machines.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn add_key(&self, text: &str) -> Result<(), Failure> {
        let text = text.trim();
        let key = canonical(text).map_err(|error| Failure::Typed(Typed::Key(error)))?;
        self.change_tenant(|tenant| {
            let keys = &tenant.spec.public_keys;
            if keys.iter().any(|known| canonical(known).as_ref() == Ok(&key)) {
                return Err(Typed::KnownKey);
            }
            Ok(Some(adding("publicKeys", keys.is_empty(), text.into())))
        })
        .await
    }

    /// Removes a key, which the form names by its digest.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn remove_key(&self, entry: &str) -> Result<(), Failure> {
        self.change_tenant(|tenant| {
            let mut keys = tenant.spec.public_keys.iter().enumerate();
            let found = keys.find(|(_, known)| page::entry(known) == entry);
            Ok(found.map(|(at, _)| removing("publicKeys", at)))
        })
        .await
    }

    /// Writes that the user has logged in, at most every hour.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn logged_in(&self) -> Result<(), ApiError> {
        let tenant = self.tenant().await?;
        let now = clock::now();
        let is_recent = |last: Timestamp| now.duration_since(last).as_secs().abs() < 3_600;
        if tenant.spec.last_login.as_ref().is_some_and(|last| is_recent(last.0)) {
            return Ok(());
        }
        let patch = json!({"spec": {"lastLogin": clock::rfc3339(now)}});
        let key = ObjectKey::of(&tenant);
        self.client.patch::<TenantKind>(&self.user.credential, &key, Patch::Merge(&patch)).await.map(drop)
    }

    /// The user's Tenant.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn tenant(&self) -> Result<Tenant, ApiError> {
        self.client
            .get::<TenantKind>(&self.user.credential, &ObjectKey::new("", self.user.name.as_str()))
            .await
    }

    /// Changes the user's Tenant by operations that follow from what it is now, if there is something to change.
    async fn change_tenant(
        &self,
        operations: impl Fn(&Tenant) -> Result<Option<Vec<Value>>, Typed>,
    ) -> Result<(), Failure> {
        let mut conflict = ApiError::Conflict("it changes all the time".to_owned());
        for _ in 0..TRIES {
            let tenant = self.tenant().await?;
            let Some(operations) = operations(&tenant).map_err(Failure::Typed)? else { return Ok(()) };
            let (key, patch) = (ObjectKey::of(&tenant), Preconditions::of(&tenant).json(operations));
            let patched =
                self.client.patch::<TenantKind>(&self.user.credential, &key, Patch::Json(&patch)).await;
            match patched {
                Ok(_) => return Ok(()),
                Err(error @ ApiError::Conflict(_)) => conflict = error,
                Err(error) => return Err(error.into()),
            }
        }
        Err(conflict.into())
    }
}

/// The operations that add an entry to a list of a spec. An empty list may be absent, so that it is made.
fn adding(list: &str, is_empty: bool, entry: Value) -> Vec<Value> {
    let (path, value) =
        if is_empty { (format!("/spec/{list}"), json!([entry])) } else { (format!("/spec/{list}/-"), entry) };
    vec![json!({"op": "add", "path": path, "value": value})]
}

/// The operations that remove an entry of a list of a spec. That it is where it was follows from the version; a `test` of it would
/// fail for a text with `<`, `>` or `&`, which the API server compares as it has escaped it.
fn removing(list: &str, at: usize) -> Vec<Value> {
    vec![json!({"op": "remove", "path": format!("/spec/{list}/{at}")})]
}

/// The patch by which these ports of a machine are to be public.
fn exposing(ports: &[Value]) -> Value {
    json!({"spec": {"publicExposure": {"ports": ports}}})
}

/// The patch by which a machine counts as used now.
fn kept(now: Timestamp) -> Value {
    json!({"metadata": {"annotations": {labels::KEPT_AT: clock::rfc3339(now)}}})
}

/// The public ports of a machine with a further one; `None` if it is there already.
fn with_port(instance: &Instance, fields: &Fields) -> Result<Option<Vec<Value>>, Typed> {
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let target = number(fields.get("targetPort")).ok_or(Typed::Port)?;
    // Zero has the daemon choose one.
    let port = match fields.get("port").trim() {
        "" | "0" => 0,
        text => number(text).ok_or(Typed::Port)?,
    };
    let protocol = match fields.get("protocol") {
        protocol @ ("TCP" | "UDP" | "SCTP") => protocol,
        "" => "TCP",
        _ => return Err(Typed::Form),
    };
    let name = match fields.get("name").trim() {
        "" => format!("{}-{target}", protocol.to_ascii_lowercase()),
        name => name.to_owned(),
    };
    if name.len() > 15 || check_dns_label(&name).is_err() {
        return Err(Typed::PortName);
    }
    let known = instance.spec.public_exposure.iter().flat_map(|exposure| exposure.ports.iter());
    let mut ports: Vec<Value> = Vec::new();
    for exposed in known {
        if exposed.name == name && exposed.target_port == i32::from(target) {
            return Ok(None);
        }
        ports.push(json!(exposed));
    }
    ports.push(json!({"name": name, "port": port, "targetPort": target, "protocol": protocol}));
    Ok(Some(ports))
}

/// The public ports of a machine without that of a name; `None` if there is none.
fn without_port(instance: &Instance, name: &str) -> Option<Vec<Value>> {
    let known = &instance.spec.public_exposure.as_ref()?.ports;
    let is_known = known.iter().any(|exposed| exposed.name == name);
    let rest = known.iter().filter(|exposed| exposed.name != name);
    is_known.then(|| rest.map(|exposed| json!(exposed)).collect())
}

#[cfg(test)]
mod tests;
