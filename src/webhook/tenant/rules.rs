//! The rights to change members of a Tenant.
//!
//! | user | may change |
//! |---|---|
//! | the Tenant | its SSH keys, its `lastLogin` to about now, and its enrolment in Workspaces that allow it |
//! | a manager of a Workspace | the entries of that Workspace; new Tenants with names, e-mail and such entries |
//! | any user, while the Tenant is being deleted | its metadata, except for metadata reserved for administrators |
//! | administrators | everything, except for removing a personal workspace that is in use |
//!
//! Values that are invalid for every user are in [`super::input`].

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::changes::{Enrolment, changed_member, changed_metadata, enrolments};
use super::defaults::label;
use super::{SERVICE_TENANT, Settings, input};
use crate::api::Tenant;
use crate::api::denial::DenialReason;
use crate::api::labels::{ADOPT_ACCOUNT, FINALIZED_BY, OPERATOR_SELECTOR, TENANT_FINALIZER};
use crate::api::names::CanonicalName;
use crate::api::tenant::{Role, TenantSpec};
use crate::api::workspace::AutoEnroll;
use crate::webhook::decision::{Decision, Denial};
use crate::webhook::requester::Requester;
use crate::webhook::review::{Operation, Request, decoded};
use crate::webhook::view::View;

/// How far `lastLogin` may be from now, in either direction, when a Tenant sets it.
const LOGIN_WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// The members of `spec` that a manager may set when creating a Tenant.
const CREATED: [&str; 4] = ["firstName", "lastName", "email", "workspaces"];

/// The warning to administrators, who are exempt from the rules.
pub const OVERRIDDEN: &str = "webhook check overridden";

/// Decides on a request to create or change a Tenant. `lastLogin` is compared with `now`.
pub fn validate(request: &Request, settings: &Settings, view: &dyn View, now: Timestamp) -> Decision {
    let requester = settings.bypass.requester(&request.user_info);
    if !request.is_write() || requester == Requester::Ourselves {
        return Decision::allowed();
    }
    let is_administrator = requester == Requester::Administrator;
    let edit = match Edit::read(request, settings, view) {
        Ok(edit) => edit,
        // Administrators may replace an invalid object.
        Err(_) if is_administrator => return Decision::allowed().with_warning(OVERRIDDEN),
        Err(denial) => return Decision::denied(denial),
    };
    let valid = if is_administrator { edit.personal_workspace_unused() } else { edit.validate(now) };
    match valid.and_then(|()| input::check(edit.old.as_ref(), &edit.new)) {
        Err(denial) => Decision::denied(denial),
        Ok(mut warnings) => {
            if is_administrator {
                warnings.extend(edit.missing_workspaces());
                warnings.push(OVERRIDDEN.to_owned());
            }
            warnings.into_iter().fold(Decision::allowed(), Decision::with_warning)
        }
    }
}

/// A Tenant before a change (`None` for a creation) and after it, also as the JSON of the request.
struct Edit<'a> {
    request: &'a Request,
    settings: &'a Settings,
    view: &'a dyn View,
    old: Option<Tenant>,
    old_json: &'a Value,
    new: Tenant,
    new_json: &'a Value,
}

impl<'a> Edit<'a> {
    fn read(request: &'a Request, settings: &'a Settings, view: &'a dyn View) -> Result<Self, Denial> {
        let (old, old_json): (_, &Value) = match request.operation {
            Operation::Update => (Some(decoded(&request.old_object, "old object")?), &request.old_object),
            _ => (None, &Value::Null),
        };
        let new = decoded(&request.object, "object")?;
        Ok(Self { request, settings, view, old, old_json, new, new_json: &request.object })
    }

    fn validate(&self, now: Timestamp) -> Result<(), Denial> {
        self.keeps_reserved_metadata()?;
        let Some(old) = &self.old else {
            self.require_manager(&enrolments(&TenantSpec::default(), &self.new.spec)?)?;
            return self.only(&CREATED).map_err(|member| {
                Denial::forbidden(format!(
                    "managers may create a Tenant only with names, e-mail and entries of their Workspaces, not \
                     with {member}"
                ))
            });
        };
        let changes = enrolments(&old.spec, &self.new.spec)?;
        if self.request.user_info.username == self.new.name() {
            self.own_members(old, now)?;
            return changes.iter().try_for_each(|change| self.self_enrolment(change));
        }
        let other = changed_member(self.old_json, self.new_json, &["workspaces"]);
        // The garbage collector removes finalizers from objects that are being deleted.
        let is_metadata_only = other.is_none() && changes.iter().all(|change| self.is_base_role(change));
        if old.is_terminating() && is_metadata_only {
            return Ok(());
        }
        self.require_manager(&changes)?;
        self.only(&["workspaces"]).map_err(|member| {
            Denial::forbidden(format!("managers may change only spec.workspaces of a Tenant, not {member}"))
        })
    }

    /// Checks that only these members of `spec`, members that the API server writes, and the selector's labels differ.
    /// The labels have a separate rule. Otherwise returns the path of another member that differs.
    fn only(&self, members: &[&str]) -> Result<(), String> {
        if let Some(member) = changed_member(self.old_json, self.new_json, members) {
            return Err(format!("spec.{member}"));
        }
        let selector: Vec<&str> = self.settings.selector.keys().map(String::as_str).collect();
        changed_metadata(self.old_json, self.new_json, &selector)
            .map_or(Ok(()), |member| Err(format!("metadata.{member}")))
    }

    /// Returns a warning for each new or changed entry whose Workspace does not exist.
    fn missing_workspaces(&self) -> Vec<String> {
        let known = self.old.as_ref().map_or(&[][..], |old| &old.spec.workspaces);
        let entries = self.new.spec.workspaces.iter().filter(|entry| !known.contains(entry));
        entries
            .filter(|entry| self.view.workspace(&entry.name).is_none())
            .map(|entry| format!("the Workspace {} does not exist: the enrolment waits for it", entry.name))
            .collect()
    }

    /// Returns the labels that users may not change, with the values that a new Tenant may have: the labels of
    /// the selector. A mistake in a key of the selector must not allow users to change the real label. So the
    /// default key and the keys of the selector under which the Tenant was taken are reserved, too. A new Tenant
    /// does not have them.
    fn reserved_labels(&self) -> BTreeMap<&str, &str> {
        let mark = self.old_json["metadata"]["annotations"][FINALIZED_BY].as_str().unwrap_or_default();
        let taken = mark.split(' ').next().unwrap_or_default().split(',');
        let mut reserved = BTreeMap::from([(OPERATOR_SELECTOR, "")]);
        reserved.extend(taken.filter_map(|label| label.split_once('=')).map(|(key, _)| (key, "")));
        reserved.extend(self.settings.selector.iter().map(|(key, ours)| (key.as_str(), ours.as_str())));
        reserved
    }

    /// Refuses to change a label that daemons select the Tenant by, and to remove its finalizer: either change
    /// would withdraw the Tenant from reconciliation. Also refuses to change two annotations. With one of them, an
    /// administrator gives the Tenant the account of another person. The other one names the installation of the
    /// Tenant: a daemon does not lead beside another installation.
    fn keeps_reserved_metadata(&self) -> Result<(), Denial> {
        for (key, ours) in self.reserved_labels() {
            let new = label(self.new_json, key)?.unwrap_or_default();
            let is_kept = if self.old.is_some() {
                new == label(self.old_json, key)?.unwrap_or_default()
            } else {
                new.is_empty() || new == ours
            };
            // The defaulter empties the label of the service Tenant.
            let is_emptied = self.new.name() == SERVICE_TENANT && new.is_empty();
            if !is_kept && !is_emptied {
                return Err(Denial::forbidden(format!("only administrators may change the label {key}")));
            }
        }
        for key in [ADOPT_ACCOUNT, FINALIZED_BY] {
            let value = |object: &'a Value| &object["metadata"]["annotations"][key];
            if value(self.new_json) != value(self.old_json) {
                return Err(Denial::forbidden(format!(
                    "only administrators may change the annotation {key}"
                )));
            }
        }
        let has_finalizer = |tenant: &Tenant| {
            tenant.metadata.finalizers.iter().any(|finalizer| finalizer == TENANT_FINALIZER)
        };
        if self.old.as_ref().is_some_and(has_finalizer) && !has_finalizer(&self.new) {
            let message = format!("only administrators may remove the finalizer {TENANT_FINALIZER}");
            return Err(Denial::forbidden(message));
        }
        Ok(())
    }

    /// Refuses changes that users may not make to their own Tenant, apart from the Workspaces. They may change only
    /// their SSH keys, and `lastLogin` to a time near `now`.
    fn own_members(&self, old: &Tenant, now: Timestamp) -> Result<(), Denial> {
        let (before, after) = (old.spec.last_login.as_ref(), self.new.spec.last_login.as_ref());
        match after {
            _ if before == after => {}
            None => return Err(Denial::forbidden("spec.lastLogin may not be removed")),
            Some(login) if login.0.duration_since(now).abs() <= LOGIN_WINDOW => {}
            Some(_) => {
                return Err(Denial::forbidden("spec.lastLogin may only be set to a time within 24 h of now"));
            }
        }
        let own = ["workspaces", "publicKeys", "lastLogin"];
        changed_member(self.old_json, self.new_json, &own).map_or(Ok(()), |member| {
            Err(Denial::forbidden(format!(
                "users may change only spec.workspaces, spec.publicKeys and spec.lastLogin of their own \
                 Tenant, not spec.{member}"
            )))
        })
    }

    /// Refuses a change of an entry that the Tenant may not make. Depending on `autoEnroll` of the Workspace, Tenants
    /// may enrol as users (`immediate`) or candidates (`withApproval`), and leave.
    fn self_enrolment(&self, change: &Enrolment<'_>) -> Result<(), Denial> {
        if self.is_base_role(change) {
            return Ok(());
        }
        let name = change.workspace;
        let missing = || {
            let message = format!("workspaces.crownlabs.polito.it {name:?} not found");
            Denial::internal(message).because(DenialReason::NoWorkspace, name)
        };
        let workspace = self.view.workspace(name).ok_or_else(missing)?;
        let granted = match &workspace.spec.auto_enroll {
            AutoEnroll::Immediate => Role::User,
            AutoEnroll::WithApproval => Role::Candidate,
            AutoEnroll::Disabled | AutoEnroll::Other(_) => {
                let message = format!("only managers of the Workspace {name} may change this enrolment");
                return Err(Denial::forbidden(message).because(DenialReason::EnrolmentClosed, name));
            }
        };
        match change.after {
            None => Ok(()),
            Some(role) if *role == granted => Ok(()),
            Some(role) => {
                let message = format!("the Workspace {name} allows enrolment as {granted}, not as {role}");
                Err(Denial::forbidden(message).because(DenialReason::EnrolmentChanged, name))
            }
        }
    }

    /// Refuses the changes unless the user is a Tenant and a manager of all affected Workspaces.
    fn require_manager(&self, changes: &[Enrolment<'_>]) -> Result<(), Denial> {
        let user = self.request.user_info.username.as_str();
        let missing = || {
            let message = format!("tenants.crownlabs.polito.it {user:?} not found");
            Denial::not_found(message).because(DenialReason::NoTenant, "")
        };
        let requester = self.view.tenant(user).ok_or_else(missing)?;
        let not_managed: Vec<&str> = changes
            .iter()
            .filter(|change| !self.is_base_role(change))
            .map(|change| change.workspace)
            .filter(|workspace| requester.spec.role_in(workspace) != Some(&Role::Manager))
            .collect();
        if not_managed.is_empty() {
            return Ok(());
        }
        let names = not_managed.join(", ");
        let message = format!("{user} is not a manager of the Workspace {names}");
        Err(Denial::forbidden(message).because(DenialReason::NotManager, &names))
    }

    /// Whether the change only enrols the Tenant in a base Workspace as a user. The defaulter does so in every request,
    /// so no permission is required. Demoting a manager to a user is not such a change.
    fn is_base_role(&self, change: &Enrolment<'_>) -> bool {
        let is_base = self.settings.base_workspaces.iter().any(|base| base == change.workspace);
        is_base && change.after == Some(&Role::User) && change.before != Some(&Role::Manager)
    }

    /// Refuses to remove the personal workspace while Instances of its Templates exist: they would no longer have a
    /// quota.
    fn personal_workspace_unused(&self) -> Result<(), Denial> {
        let had_one = self.old.as_ref().is_some_and(|old| old.spec.has_personal_workspace());
        if !self.settings.personal_workspaces || !had_one || self.new.spec.has_personal_workspace() {
            return Ok(());
        }
        let namespace = CanonicalName::of(self.new.name()).tenant_namespace();
        let instances = self.view.instances(&namespace);
        match instances.iter().find(|instance| instance.spec.template_ref.namespace == namespace) {
            None => Ok(()),
            Some(instance) => Err(Denial::conflict(format!(
                "the personal workspace is in use: the Instance {} is made from its Template {}",
                instance.name(),
                instance.spec.template_ref.name
            ))),
        }
    }
}
