//! An Instance of a course, as a row of a table.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::instance::{Instance, InstancePhase as Phase};
use crate::api::template::Template;

/// An Instance of a course.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The name of its Tenant.
    pub tenant: String,
    /// Its namespace and name.
    pub instance: String,
    /// The name of its Template.
    pub template: String,
    /// Its phase.
    pub phase: Phase,
    /// The last known use; `None` if inactivity is not tracked.
    pub idle_since: Option<Time>,
    /// The cores of its running environments.
    pub cores: i64,
}

impl Row {
    /// The row of an Instance.
    pub fn of(instance: &Instance, template: Option<&Template>) -> Self {
        let (spec, status) = (&instance.spec, &instance.status);
        let environments = template.map_or(&[][..], |template| &template.spec.environment_list);
        let runs = |name: &str| {
            let mut all = status.environments.iter();
            let found = all.find(|environment| environment.name == name).map(|found| &found.phase);
            matches!(found, Some(Phase::Running | Phase::Ready | Phase::Stopping))
        };
        let running = environments.iter().filter(|environment| runs(&environment.name));
        let promise = status.inactivity.as_ref().or(status.destruction.as_ref());
        Self {
            tenant: spec.tenant_ref.name.to_string(),
            instance: format!("{}/{}", instance.namespace(), instance.name()),
            template: spec.template_ref.name.to_string(),
            phase: status.phase.clone(),
            idle_since: promise.and_then(|promise| promise.since.clone()),
            cores: running.map(|environment| environment.resources.cpu).sum(),
        }
    }
}

/// Sorts rows by cores in descending order, and rows with the same number of cores by idle time in descending order.
pub fn sort(rows: &mut [Row], now: Timestamp) {
    let idle = |row: &Row| row.idle_since.as_ref().map_or(now, |since| since.0);
    rows.sort_by(|a, b| {
        (b.cores, idle(a), &a.tenant, &a.instance).cmp(&(a.cores, idle(b), &b.tenant, &b.instance))
    });
}
