//! The gauges of quotas: how much of each Workspace's quota Instances use, how much it grants to all of its users
//! together, and how many Tenants have almost used up their own quota.
//!
//! The first two show which courses have too little quota or too much. The third one shows how many users may soon be
//! unable to start an Instance, which the sums do not reveal. There are three series per Workspace, one for each
//! resource. Only administrators create Workspaces, and no text of a user becomes a label. The values are computed when
//! metrics are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use metrics::gauge;
use parking_lot::Mutex;

use super::stores::Stores;
use crate::api::quantity::{Quantity, RawQuantity};
use crate::api::tenancy::is_tenant_namespace;
use crate::api::tenant::{Role, Tenant};
use crate::api::usage::Usage;
use crate::api::workspace::Workspace;
use crate::api::{Instance, Template, labels};
use crate::runtime::metrics::precise;

/// The values of the label `resource`: cores, bytes, and a number.
const RESOURCES: [&str; 3] = ["cpu", "memory", "instances"];
/// A Tenant is near the limit of its quota from this many tenths on.
const NEAR: i64 = 9;

/// Amounts of [`RESOURCES`].
type Amounts = [Quantity; 3];

/// The use of quotas.
#[derive(Debug, Default)]
pub struct QuotaUse {
    /// Whether Templates of Tenants count against their personal workspaces.
    has_personal: bool,
    workspaces: BTreeMap<String, Share>,
    /// The number of Tenants near the end of their quota, for each of [`RESOURCES`].
    near: [usize; 3],
}

/// The use of a Workspace's quota.
#[derive(Debug, Clone, Default)]
struct Share {
    used: Usage,
    /// The quota of one user.
    each: Amounts,
    users: i64,
}

impl QuotaUse {
    /// Nothing is counted yet. With `has_personal`, Templates of Tenants count against their personal workspaces.
    pub fn new(has_personal: bool) -> Self {
        Self { has_personal, ..Self::default() }
    }

    /// Counts a Workspace.
    pub fn add_workspace(&mut self, workspace: &Workspace) {
        let quota = &workspace.spec.quota;
        let each = [amount(&quota.cpu), amount(&quota.memory), Quantity::from_int(quota.instances.max(0))];
        self.workspaces.insert(workspace.name().to_owned(), Share { each, ..Share::default() });
    }

    /// Counts a Tenant as a user of its Workspaces, which must be added first, and its use: Instances with their
    /// Templates. As in a `ResourceQuota`, stopped Instances are counted too, and resources only of running ones.
    pub fn add_tenant(&mut self, tenant: &Tenant, instances: &[(Arc<Instance>, Option<Arc<Template>>)]) {
        let entries = tenant.spec.workspaces.iter();
        for entry in entries.filter(|entry| matches!(entry.role, Role::User | Role::Manager)) {
            if let Some(share) = self.workspaces.get_mut(entry.name.as_str()) {
                share.users += 1;
            }
        }
        let mut own = Usage::default();
        for (instance, template) in instances {
            count(&mut own, instance, template.as_deref());
            let is_personal = self.has_personal && is_tenant_namespace(&instance.spec.template_ref.namespace);
            let workspace = workspace(instance, template.as_deref()).filter(|_| !is_personal);
            if let Some(share) = workspace.and_then(|name| self.workspaces.get_mut(name)) {
                count(&mut share.used, instance, template.as_deref());
            }
        }
        let quota = &tenant.status.quota;
        let limits = [amount(&quota.cpu), amount(&quota.memory), Quantity::from_int(quota.instances)];
        for ((near, used), limit) in self.near.iter_mut().zip(amounts(&own)).zip(limits) {
            *near += usize::from(limit > Quantity::ZERO && used.times(10) >= limit.times(NEAR));
        }
    }
}

/// The Workspace whose quota an Instance uses. If its Template no longer exists, the label of the Instance decides.
fn workspace<'a>(instance: &'a Instance, template: Option<&'a Template>) -> Option<&'a str> {
    let of_template = template.map(|template| template.spec.workspace_ref.name.as_str());
    of_template.or_else(|| instance.label(labels::WORKSPACE))
}

fn count(usage: &mut Usage, instance: &Instance, template: Option<&Template>) {
    usage.instances += 1;
    if instance.spec.running {
        usage.add_running(template.map(|template| &template.spec));
    }
}

fn amounts(usage: &Usage) -> Amounts {
    [usage.cpu.clone(), usage.memory.clone(), Quantity::from_int(usage.instances)]
}

/// An amount; zero if it cannot be read, which the report of the Tenant states.
fn amount(raw: &RawQuantity) -> Quantity {
    raw.parse().ok().filter(|amount: &Quantity| !amount.is_negative()).unwrap_or_default()
}

/// Sets the gauges on each call. A Workspace that no longer exists is shown with 0.
pub fn quotas(stores: Arc<Stores>) -> impl Fn() + Send + Sync {
    let shown = Mutex::new(BTreeMap::new());
    move || {
        let QuotaUse { workspaces, near, .. } = stores.quota_use();
        let mut shown = shown.lock();
        show(&mut shown, workspaces);
        for (resource, near) in RESOURCES.into_iter().zip(near) {
            gauge!("crownlabs_tenants_near_quota", "resource" => resource).set(precise(near));
        }
    }
}

fn show(shown: &mut BTreeMap<String, Share>, workspaces: BTreeMap<String, Share>) {
    for share in shown.values_mut() {
        *share = Share::default();
    }
    shown.extend(workspaces);
    for (workspace, Share { used, each, users }) in shown.iter() {
        for ((resource, used), each) in RESOURCES.into_iter().zip(amounts(used)).zip(each) {
            gauge!("crownlabs_workspace_quota_used", "workspace" => workspace.clone(), "resource" => resource)
                .set(used.approximate());
            gauge!("crownlabs_workspace_quota_granted", "workspace" => workspace.clone(), "resource" => resource)
                .set(each.times(*users).approximate());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::object;

    fn workspace(name: &str) -> Arc<Workspace> {
        let quota = json!({"cpu": "1500m", "memory": "4Gi", "instances": 2});
        object(json!({"metadata": {"name": name}, "spec": {"prettyName": name, "quota": quota}}))
    }

    fn tenant(workspaces: &[(&str, &str)], quota: &serde_json::Value) -> Arc<Tenant> {
        let entry = |(name, role): &(&str, &str)| json!({"name": name, "role": role});
        let workspaces: Vec<_> = workspaces.iter().map(entry).collect();
        object(json!({
            "metadata": {"name": "ada"}, "spec": {"workspaces": workspaces}, "status": {"quota": quota},
        }))
    }

    fn template(workspace: &str) -> Arc<Template> {
        let resources = json!({"cpu": 1, "memory": "512Mi", "reservedCPUPercentage": 10});
        object(json!({"metadata": {"name": "t", "namespace": "w"}, "spec": {
            "workspace.crownlabs.polito.it/WorkspaceRef": {"name": workspace},
            "environmentList": [{"name": "a", "resources": resources}, {"name": "b", "resources": resources}],
        }}))
    }

    fn instance(running: bool, label: &str) -> Arc<Instance> {
        let labels = json!({"crownlabs.polito.it/workspace": label});
        object(json!({
            "metadata": {"name": "i", "namespace": "tenant-ada", "labels": labels}, "spec": {"running": running},
        }))
    }

    /// The lines of a Workspace: used cores, bytes and Instances, then the granted ones.
    fn shown(quotas: QuotaUse, before: &mut BTreeMap<String, Share>, workspace: &str) -> [String; 6] {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || show(before, quotas.workspaces));
        let text = handle.render();
        let value = |index: usize| {
            let (family, resource) = (["used", "granted"][index / 3], RESOURCES[index % 3]);
            let begin = format!(
                "crownlabs_workspace_quota_{family}{{workspace=\"{workspace}\",resource=\"{resource}\"}} "
            );
            let found = text.lines().find_map(|line| line.strip_prefix(&*begin));
            found.unwrap_or_else(|| panic!("{begin} not in\n{text}")).to_owned()
        };
        std::array::from_fn(value)
    }

    #[test]
    fn use_and_grant_are_sums_over_the_users_of_a_workspace() {
        let mut quotas = QuotaUse::default();
        quotas.add_workspace(&workspace("tea"));
        quotas.add_workspace(&workspace("sea"));
        let none = json!({});
        let (running, stopped) = (instance(true, "sea"), instance(false, "sea"));
        // The Template decides, and the label only if the Template is missing. A missing Workspace has no line.
        let own = [
            (Arc::clone(&running), Some(template("tea"))),
            (stopped, Some(template("tea"))),
            (Arc::clone(&running), None),
            (running, Some(template("nowhere"))),
        ];
        quotas.add_tenant(&tenant(&[("tea", "user"), ("sea", "candidate")], &none), &own);
        quotas.add_tenant(&tenant(&[("tea", "manager"), ("sea", "user"), ("nowhere", "user")], &none), &[]);
        assert!(!quotas.workspaces.contains_key("nowhere"));
        let mut before = BTreeMap::new();
        let again = QuotaUse { workspaces: quotas.workspaces.clone(), ..QuotaUse::default() };
        assert_eq!(shown(quotas, &mut before, "tea"), ["2", "1073741824", "2", "3", "8589934592", "4"]);
        assert_eq!(shown(again, &mut before, "sea"), ["0", "0", "1", "1.5", "4294967296", "2"]);
        // A removed Workspace is shown with 0.
        assert_eq!(shown(QuotaUse::default(), &mut before, "tea"), ["0"; 6]);
    }

    #[test]
    fn templates_of_tenants_count_against_personal_workspaces_if_enabled() {
        let mut own = Instance::clone(&instance(true, "tea"));
        own.spec.template_ref.namespace = "tenant-ada".into();
        let own = Arc::new(own);
        for (has_personal, expected) in [(false, 1), (true, 0)] {
            let mut quotas = QuotaUse::new(has_personal);
            quotas.add_workspace(&workspace("tea"));
            quotas.add_tenant(&tenant(&[], &json!({})), &[(Arc::clone(&own), Some(template("tea")))]);
            assert_eq!(quotas.workspaces["tea"].used.instances, expected);
        }
    }

    #[test]
    fn a_tenant_is_near_its_quota_from_nine_tenths_on() {
        let near = |quota: serde_json::Value, instances: usize| {
            let mut quotas = QuotaUse::default();
            let own: Vec<_> =
                (0..instances).map(|_| (instance(true, "tea"), Some(template("tea")))).collect();
            quotas.add_tenant(&tenant(&[], &quota), &own);
            quotas.near
        };
        // An Instance has 2 cores and 1 GiB.
        let quota = |cpu: &str, memory: &str, instances: i64| json!({"cpu": cpu, "memory": memory, "instances": instances});
        assert_eq!(near(quota("20", "20Gi", 20), 9), [1, 0, 0]);
        assert_eq!(near(quota("20001m", "10Gi", 10), 9), [0, 1, 1]);
        assert_eq!(near(quota("2", "1Gi", 1), 2), [1, 1, 1], "more than all of it");
        // A quota of zero, or one that is not known yet, does not count as near.
        assert_eq!(near(quota("0", "x", 0), 1), [0, 0, 0]);
        assert_eq!(near(json!({}), 1), [0, 0, 0]);
    }
}
