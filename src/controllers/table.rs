//! The table of control loops, and a loop independent of its type.

use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use serde_json::Value;

use super::preview::{Previewed, preview};
use super::{
    Definition, ReplicaDefinition, Setup, bastion, exam_agent, expiration, image_list, inactivity, instance,
    instance_metrics, pod_config, pod_config_node, public_exposure, shared_volume, snapshot, ssh_tracker,
    submission, tenant, termination, web_ssh, workspace,
};
use crate::api::Kind;
use crate::config::Controllers;
use crate::config::loops::{Toggle, for_each_loop};
use crate::runtime::ObjectKey;
use crate::runtime::apply::Engine;
#[cfg(test)]
use crate::runtime::apply::rewritten;
use crate::runtime::client::Writer;
use crate::runtime::context::Connections;
use crate::runtime::control_loop::ControlLoop;
use crate::runtime::driver::Driver;
use crate::runtime::merge;
use crate::runtime::plan::{Plan, to_value};
use crate::runtime::readiness::Need;
#[cfg(test)]
use crate::runtime::reconciler::Outcome;
use crate::runtime::reconciler::Reconciler;
use crate::runtime::replica::{Replica, ReplicaLoop};
use crate::runtime::store::StoreFactory;
use crate::runtime::store_set::{DeclaredStores, StoreSet};

/// A control loop as the table lists it.
pub struct Loop {
    /// Its key below `controllers` in the configuration; its name in metrics, readiness and logs.
    pub name: &'static str,
    /// A sentence on what it does.
    pub description: &'static str,
    /// Where it works.
    pub place: Place,
    /// Whether it uses the API server.
    pub uses_api_server: bool,
    /// Whether it is enabled, and its concurrency.
    pub toggle: fn(&Controllers) -> Toggle,
    /// Declares its stores and builds it.
    pub build: fn(&mut Setup<'_>, &mut StoreFactory) -> anyhow::Result<Built>,
}

/// Where a loop works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the replica that holds the lease.
    Leader,
    /// In every replica.
    Replica,
    /// In a process on every node, as a replica loop: a `DaemonSet` of the same binary with other loops enabled.
    Node,
}

/// A loop that has been built.
pub enum Built {
    /// One of the leader.
    Leader(Box<dyn BuiltLoop>),
    /// One of every replica.
    Replica(Replica),
}

macro_rules! place {
    (leader) => {
        Place::Leader
    };
    (replica) => {
        Place::Replica
    };
    (node) => {
        Place::Node
    };
}

/// Whether a loop uses the API server. A reconciler always does.
macro_rules! uses_api_server {
    (leader, $loop:ty) => {
        true
    };
    ($place:ident, $loop:ty) => {
        <$loop as ReplicaDefinition>::USES_API_SERVER
    };
}

/// A loop of a replica or node does one thing at a time.
macro_rules! concurrency {
    (leader, $config:expr) => {
        $config.concurrency
    };
    ($place:ident, $config:expr) => {
        1
    };
}

macro_rules! table {
    ($(#[doc = $description:literal] $key:ident: $config:ident => $place:ident $loop:ident;)*) => {
        /// All control loops.
        pub static LOOPS: &[Loop] = &[$(Loop {
            name: $key::$loop::NAME,
            description: $description,
            place: place!($place),
            uses_api_server: uses_api_server!($place, $key::$loop),
            toggle: |controllers| Toggle {
                enabled: controllers.$key.enabled,
                concurrency: concurrency!($place, controllers.$key),
            },
            build: $place::<$key::$loop>,
        }),*];
    };
}
for_each_loop!(table);

/// The plan for one object, for `crownlabs plan`.
#[derive(Debug, Default)]
pub struct Planned {
    /// The kind of the object.
    pub kind: &'static str,
    /// The key of the object.
    pub key: ObjectKey,
    /// The object after the patch of the plan; `None` when it is not ours, or does not exist.
    pub object: Option<Value>,
    /// Whether it does not exist: the configuration names it.
    pub is_absent: bool,
    /// The objects that would be created for it.
    pub made: Vec<Value>,
    /// Objects that this or another loop makes for it once others have done their part, with placeholders for what only
    /// they know.
    pub foreseen: Vec<Value>,
    /// The problems and remarks about it.
    pub messages: Vec<String>,
}

/// A loop that has been built, independent of its type.
pub trait BuiltLoop: Send + Sync {
    /// The plans for all its objects, in the order of their names, as if no child existed yet.
    fn plan(&self, now: Timestamp) -> Vec<Planned>;

    /// The stores that it waits for.
    fn needs(&self) -> &[Need];

    /// What the next reconcile of each of its objects would write, in the order of their names. Only reads are sent.
    fn preview<'a>(&'a self, writer: &'a Writer, now: Timestamp) -> BoxFuture<'a, Vec<Previewed>>;

    /// The objects as they are after one more reconcile each: those that are made or changed, each with what is written.
    #[cfg(test)]
    fn next_pass(&self, now: Timestamp) -> Vec<(Value, String)>;

    /// Whether its objects are in namespaces.
    fn is_namespaced(&self) -> bool;

    /// The control loop, with up to `concurrency` reconciles at once.
    fn into_control_loop(self: Box<Self>, connections: &Connections, concurrency: usize) -> ControlLoop;
}

struct BuiltReconciler<R: Reconciler> {
    reconciler: R,
    settings: R::Settings,
    stores: DeclaredStores,
}

/// Builds a replica loop.
fn replica<R: ReplicaDefinition>(setup: &mut Setup<'_>, factory: &mut StoreFactory) -> anyhow::Result<Built> {
    let mut set = StoreSet::new(R::NAME, factory);
    let built = R::build(setup, &mut set)?;
    Ok(Built::Replica(Replica::new(built, set.finish().needs)))
}

/// Builds a loop of every node.
fn node<R: ReplicaDefinition>(setup: &mut Setup<'_>, factory: &mut StoreFactory) -> anyhow::Result<Built> {
    replica::<R>(setup, factory)
}

/// Builds a loop of the leader.
fn leader<R: Definition>(setup: &mut Setup<'_>, factory: &mut StoreFactory) -> anyhow::Result<Built> {
    build::<R>(setup, factory).map(Built::Leader)
}

pub(super) fn build<R: Definition>(
    setup: &mut Setup<'_>,
    factory: &mut StoreFactory,
) -> anyhow::Result<Box<dyn BuiltLoop>> {
    let mut set = StoreSet::new(R::NAME, factory);
    let (reconciler, settings) = R::build(setup, &mut set)?;
    Ok(Box::new(BuiltReconciler { reconciler, settings, stores: set.finish() }))
}

impl<R: Definition> BuiltLoop for BuiltReconciler<R> {
    fn plan(&self, now: Timestamp) -> Vec<Planned> {
        let mut keys = (self.stores.keys)();
        keys.sort();
        let plan = |key: ObjectKey| {
            let kind = R::Kind::KIND;
            let Some(observed) = self.reconciler.observe(&key) else {
                return Planned { kind, key, ..Planned::default() };
            };
            let plan = (R::PLAN)(&observed, &self.settings, now);
            let mut messages: Vec<String> =
                plan.problems.iter().map(|problem| problem.message.clone()).collect();
            messages.extend(R::remarks(&observed, &self.settings, now));
            let foreseen = R::foreseen(&observed, &self.settings, &plan);
            let is_absent = observed.as_ref().uid().is_empty();
            let object = (!is_absent).then(|| patched::<R>(&observed, &plan));
            Planned { kind, key, object, is_absent, made: made(&plan), foreseen, messages }
        };
        keys.into_iter().map(plan).collect()
    }

    fn needs(&self) -> &[Need] {
        &self.stores.needs
    }

    fn preview<'a>(&'a self, writer: &'a Writer, now: Timestamp) -> BoxFuture<'a, Vec<Previewed>> {
        async move {
            let engine = Engine::new(writer.clone(), self.stores.written.clone(), R::NAME);
            let mut keys = (self.stores.keys)();
            keys.sort();
            let mut previews = Vec::new();
            for key in keys {
                previews.extend(preview(&self.reconciler, &self.settings, &engine, key, now).await);
            }
            previews
        }
        .boxed()
    }

    #[cfg(test)]
    fn next_pass(&self, now: Timestamp) -> Vec<(Value, String)> {
        let observed = (self.stores.keys)().into_iter().filter_map(|key| self.reconciler.observe(&key));
        observed.flat_map(|observed| written::<R>(&observed, &self.settings, &self.stores, now)).collect()
    }

    fn is_namespaced(&self) -> bool {
        R::Kind::NAMESPACED
    }

    fn into_control_loop(self: Box<Self>, connections: &Connections, concurrency: usize) -> ControlLoop {
        let Self { reconciler, settings, stores } = *self;
        let context = connections.context(R::NAME, R::EVENT_SOURCE, stores.written.clone());
        ControlLoop::new(Driver::new(reconciler, settings, context), stores, concurrency)
    }
}

/// The object with the patch that the plan has for it.
fn patched<R: Reconciler>(observed: &R::Observed, plan: &Plan<R::Effect>) -> Value {
    let object = observed.as_ref();
    let mut patched = to_value(object);
    if let Some(patch) = plan.patches.iter().find(|patch| patch.uid == object.uid()) {
        merge::apply(&mut patched, &patch.patch);
    }
    patched
}

/// What a reconcile writes, as [`BuiltLoop::next_pass`] has it. Nothing fails, and effects have no result.
#[cfg(test)]
fn written<R: Reconciler>(
    observed: &R::Observed,
    settings: &R::Settings,
    stores: &DeclaredStores,
    now: Timestamp,
) -> Vec<(Value, String)> {
    let (plan, object) = ((R::PLAN)(observed, settings, now), observed.as_ref());
    let mut found = Vec::new();
    for desired in &plan.ensure {
        match rewritten(desired, &stores.written) {
            Ok(None) => {}
            Ok(Some((patch, object))) => {
                found.push((object, format!("{} {}: {patch}", desired.kind.kind, desired.key)));
            }
            Err(_) => {
                let made = desired.manifest.as_ref().map(|manifest| manifest.json().clone());
                let what = format!("{} {} is made", desired.kind.kind, desired.key);
                found.push((made.unwrap_or_default(), what));
            }
        }
    }
    let outcome = Outcome::default();
    let status = to_value(&(R::REPORT)(observed, settings, &plan, &outcome, now).status);
    let before = to_value(object);
    let mut after = patched::<R>(observed, &plan);
    if status != to_value(&object.status) {
        after["status"] = status;
    }
    if after != before {
        let difference = merge::difference(&before, &after).unwrap_or_default();
        found.push((after, format!("{} {}: {difference}", R::Kind::KIND, ObjectKey::of(object))));
    }
    found
}

/// The objects that a plan creates.
fn made<E>(plan: &Plan<E>) -> Vec<Value> {
    plan.ensure.iter().filter_map(|desired| Some(desired.manifest.as_ref()?.json().clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Config;
    use crate::runtime::gate::Gate;
    use crate::runtime::watch::Selection;

    /// The rows of the README about the loops, with the lines that enclose them.
    fn readme_block() -> String {
        let controllers = Controllers::default();
        let rows: Vec<String> = LOOPS
            .iter()
            .map(|Loop { name, description, place, toggle, .. }| {
                let default = if toggle(&controllers).enabled { "on" } else { "off" };
                let place = match place {
                    Place::Leader => "leader",
                    Place::Replica => "every replica",
                    Place::Node => "every node",
                };
                format!("| `{name}` | {default} | {place} | {} |\n", description.trim())
            })
            .collect();
        let head = "| key | default | works in | what it does |\n|---|---|---|---|\n";
        format!("<!-- loops -->\n{head}{}<!-- /loops -->\n", rows.concat())
    }

    #[test]
    fn the_readme_lists_the_loops() {
        let readme = include_str!("../../README.md");
        let (_, rest) = readme.split_once("<!-- loops -->\n").expect("the README marks the list");
        let (rows, _) = rest.split_once("<!-- /loops -->\n").expect("the README marks the end of the list");
        let found = format!("<!-- loops -->\n{rows}<!-- /loops -->\n");
        let expected = readme_block();
        assert!(
            found == expected,
            "the list of loops in README.md should be:\n\n{expected}\nnot:\n\n{found}"
        );
    }

    /// Builds every loop, with all that can be switched on.
    fn build_all() -> StoreFactory {
        let mut config = Config::default();
        config.controllers.instance.gateway_api.enabled = true;
        let mut setup = Setup::new(&config, Gate::closed());
        let mut factory = StoreFactory::default();
        for entry in LOOPS {
            (entry.build)(&mut setup, &mut factory).expect("built");
        }
        factory
    }

    #[test]
    fn the_shipped_role_lets_the_loops_watch_what_they_declare_and_nothing_else() {
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(include_str!("../../manifests/10-rbac.yaml")).expect("YAML");
        let role =
            documents.iter().find(|document| document["kind"] == "ClusterRole").expect("a ClusterRole");
        let texts = |value: &Value| -> Vec<String> {
            value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|text| Some(text.as_str()?.to_owned()))
                .collect()
        };
        let mut watched = BTreeSet::new();
        for rule in role["rules"].as_array().expect("rules") {
            // What is bound to one name is the webhooks' own.
            if texts(&rule["verbs"]).contains(&"watch".to_owned()) && rule["resourceNames"].is_null() {
                for group in texts(&rule["apiGroups"]) {
                    watched.extend(
                        texts(&rule["resources"]).into_iter().map(|resource| (group.clone(), resource)),
                    );
                }
            }
        }
        assert_eq!(watched, build_all().resources());
    }

    #[test]
    fn secrets_are_asked_for_by_label_and_by_name_only() {
        let found = build_all().selections("secrets");
        let is_one = |selection: &Selection| {
            matches!(selection, Selection::Label { value: Some(_), .. } | Selection::Named { .. })
        };
        assert!(found.len() > 1 && found.iter().all(is_one), "{found:?}");
    }

    #[test]
    fn the_name_of_each_loop_is_its_key_in_the_configuration() {
        let controllers = to_value(&Controllers::default());
        let keys: Vec<&String> = controllers.as_object().expect("a mapping").keys().collect();
        let names: Vec<&str> = LOOPS.iter().map(|entry| entry.name).collect();
        assert_eq!(names, keys);
    }
}
