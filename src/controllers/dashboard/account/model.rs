//! The model of the account page.

use std::collections::HashMap;

use super::actions::{ADD_KEY, REMOVE_KEY, entry};
use crate::api::public_key::{Description, PublicKeyError, describe, within_limits};
use crate::api::quota::Scope;
use crate::api::usage::{Measure, Share, Usage};
use crate::api::workspace::WorkspaceQuota;
use crate::controllers::dashboard::student::Student;
use crate::controllers::dashboard::ui::view::View;

/// The account page.
#[derive(Debug, Clone)]
pub struct Account {
    /// First and last name.
    pub name: String,
    /// The address for warnings.
    pub email: String,
    /// The name of the Tenant.
    pub user: String,
    /// The SSH keys, in the order of the Tenant.
    pub keys: Vec<Key>,
    /// Whether the user can add a key.
    pub can_add: bool,
    /// The usage and the limits of all courses together.
    pub all: Vec<Share>,
    /// The usage and the limits of each course and of the personal workspace, by title.
    pub courses: Vec<(String, Vec<Share>)>,
    /// The size of `MyDrive`; empty if it is not known.
    pub drive_size: String,
}

/// A key.
#[derive(Debug, Clone)]
pub struct Key {
    /// The identifier in the form that removes it, see [`entry`].
    pub entry: String,
    /// The number of keys with this identifier.
    pub same: usize,
    /// Its description, or why it is invalid.
    pub description: Result<Description, PublicKeyError>,
    /// Whether it is within the limits.
    pub is_used: bool,
    /// Whether the user can remove it.
    pub can_remove: bool,
}

impl Account {
    /// Returns the page of a user.
    pub fn of(view: &View<'_>, student: &Student<'_>) -> Self {
        let tenant = student.tenant();
        let spec = &tenant.spec;
        let used = within_limits(&spec.public_keys).len();
        let can_remove = student.may(&REMOVE_KEY.right, "");
        let mut counts: HashMap<&String, usize> = HashMap::new();
        spec.public_keys.iter().for_each(|text| *counts.entry(text).or_default() += 1);
        let key = |(at, text): (usize, &String)| Key {
            entry: entry(text),
            same: counts[text],
            description: describe(text),
            is_used: at < used,
            can_remove,
        };
        let course = |scope: &Scope| (student.scope_title(view.texts(), scope), student.shares(scope));
        let granted = &tenant.status.quota;
        let granted = WorkspaceQuota {
            cpu: granted.cpu.clone(),
            memory: granted.memory.clone(),
            instances: granted.instances,
            ..WorkspaceQuota::default()
        };
        let limited = [Measure::Instances, Measure::Cpu, Measure::Memory];
        let mut all = granted.shares(&usage(student));
        all.retain(|share| limited.contains(&share.measure));
        Self {
            name: format!("{} {}", spec.first_name, spec.last_name),
            email: spec.email.clone(),
            user: tenant.name().to_owned(),
            keys: spec.public_keys.iter().enumerate().map(key).collect(),
            can_add: student.may(&ADD_KEY.right, ""),
            all,
            courses: student.scopes().iter().map(course).collect(),
            drive_size: student.settings.drive_size.clone(),
        }
    }
}

/// Returns the usage of all Instances. As in the `ResourceQuota` of the namespace, stopped Instances count, but their resources do
/// not.
fn usage(student: &Student<'_>) -> Usage {
    let mut usage = Usage::default();
    for instance in student.instances() {
        let template = student.template(&instance.spec.template_ref).filter(|_| instance.spec.running);
        usage.add(template.map(|template| &template.spec));
    }
    usage
}
