//! The table of control loops, and a type-independent interface to a loop.

mod simulation;

use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use serde_json::Value;

use self::simulation::simulate;
#[cfg(test)]
use self::writes::{Refused, written};
use crate::api::Kind;
use crate::config::Controllers;
use crate::config::loops::{Toggle, for_each_loop};
#[cfg(feature = "daemon")]
use crate::controllers::setup::ReplicaDefinition;
use crate::controllers::setup::{Definition, Setup};
use crate::controllers::{
    bastion, dashboard, exam_agent, expiration, image_list, inactivity, instance, instance_metrics, login,
    pod_config, pod_config_node, public_exposure, pvc_mirror, shared_volume, snapshot, ssh_tracker,
    submission, template, tenant, termination, web_ssh, workspace,
};
use crate::runtime::ObjectKey;
use crate::runtime::apply::Engine;
use crate::runtime::client::Writer;
use crate::runtime::context::Connections;
use crate::runtime::control_loop::ControlLoop;
use crate::runtime::driver::Driver;
use crate::runtime::preview::{Previewed, preview};
use crate::runtime::readiness::Need;
use crate::runtime::reconciler::Reconciler;
#[cfg(feature = "daemon")]
use crate::runtime::replica::{Replica, ReplicaLoop};
use crate::runtime::store::StoreFactory;
use crate::runtime::store_set::{DeclaredStores, StoreSet};

/// A control loop as an entry of the table.
pub struct Loop {
    /// Its key below `controllers` in the configuration. It is also its name in metrics, readiness and logs.
    pub name: &'static str,
    /// A sentence that describes it.
    pub description: &'static str,
    /// The processes that run it.
    pub runs_in: RunsIn,
    /// Whether it uses the API server.
    pub uses_api_server: bool,
    /// Whether it is enabled, and its concurrency.
    pub toggle: fn(&Controllers) -> Toggle,
    /// Declares its stores and builds it.
    pub build: fn(&mut Setup<'_>, &mut StoreFactory) -> anyhow::Result<Built>,
}

/// The processes that run a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsIn {
    /// In the replica that holds the lease.
    Leader,
    /// In every replica.
    Replica,
    /// In a process on every node, as a replica loop: a `DaemonSet` runs the same binary with other loops enabled.
    Node,
}

/// A loop after it has been built.
pub enum Built {
    /// A leader loop.
    Leader(Box<dyn BuiltLoop>),
    /// A replica loop.
    #[cfg(feature = "daemon")]
    Replica(Replica),
    /// A replica loop, in a build without the daemon.
    #[cfg(not(feature = "daemon"))]
    Absent,
}

macro_rules! runs_in {
    (leader) => {
        RunsIn::Leader
    };
    (replica) => {
        RunsIn::Replica
    };
    (node) => {
        RunsIn::Node
    };
}

/// Whether a loop uses the API server. Reconcilers always do.
macro_rules! uses_api_server {
    (leader, $loop:ty) => {
        true
    };
    ($runs_in:ident, $loop:ty) => {
        <$loop>::USES_API_SERVER
    };
}

/// A replica or node loop works on one object at a time.
macro_rules! concurrency {
    (leader, $config:expr) => {
        $config.concurrency
    };
    ($runs_in:ident, $config:expr) => {
        1
    };
}

macro_rules! table {
    ($(#[doc = $description:literal] $key:ident: $config:ident => $runs_in:ident $loop:ident;)*) => {
        /// All control loops.
        pub static LOOPS: &[Loop] = &[$(Loop {
            name: $key::$loop::NAME,
            description: $description,
            runs_in: runs_in!($runs_in),
            uses_api_server: uses_api_server!($runs_in, $key::$loop),
            toggle: |controllers| Toggle {
                enabled: controllers.$key.enabled,
                concurrency: concurrency!($runs_in, controllers.$key),
            },
            build: $runs_in::<$key::$loop>,
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
    /// Whether this installation manages it.
    pub is_ours: bool,
    /// The object after the patch of the plan. `None` if it is not managed, if it does not exist because only the
    /// configuration names it, or if nothing is made for it and only its status changes.
    pub object: Option<Value>,
    /// The objects that would be created for it.
    pub made: Vec<Value>,
    /// Objects that this or another loop will create later, after other components have acted, with placeholders for
    /// values that only those components know.
    pub foreseen: Vec<Value>,
    /// Problems with the object, and remarks.
    pub messages: Vec<String>,
    /// Whether one of the problems persists until the files are changed.
    pub is_refused: bool,
}

/// A built loop, independent of its type.
pub trait BuiltLoop: Send + Sync {
    /// Plans a reconcile of each of its objects, ordered by name, as if every step succeeded. Nothing is sent, and
    /// effects have no result.
    fn plan(&self, now: Timestamp) -> Vec<Planned>;

    /// The objects that these reconciles create or change, with their final status, and a description of each write.
    /// The API server rejects writes of the kind in `refused`.
    #[cfg(test)]
    fn written(&self, now: Timestamp, refused: Option<Refused<'_>>) -> Vec<(Value, String)>;

    /// The stores that the loop waits for.
    fn needs(&self) -> &[Need];

    /// Previews the writes of a reconcile of each of its objects, ordered by name. Only reads are sent.
    fn preview<'a>(&'a self, writer: &'a Writer, now: Timestamp) -> BoxFuture<'a, Vec<Previewed>>;

    /// Whether its objects are namespaced.
    fn is_namespaced(&self) -> bool;

    /// Converts it to a control loop with up to `concurrency` concurrent reconciles.
    fn into_control_loop(self: Box<Self>, connections: &Connections, concurrency: usize) -> ControlLoop;
}

struct BuiltReconciler<R: Reconciler> {
    reconciler: R,
    settings: R::Settings,
    stores: DeclaredStores,
}

/// Builds a replica loop.
#[cfg(feature = "daemon")]
fn replica<R: ReplicaDefinition>(setup: &mut Setup<'_>, factory: &mut StoreFactory) -> anyhow::Result<Built> {
    let mut set = StoreSet::new(R::NAME, factory);
    let built = R::build(setup, &mut set)?;
    Ok(Built::Replica(Replica::new(built, set.finish().needs)))
}

#[cfg(not(feature = "daemon"))]
#[expect(clippy::unnecessary_wraps, clippy::extra_unused_type_parameters, reason = "as with the daemon")]
fn replica<R>(_: &mut Setup<'_>, _: &mut StoreFactory) -> anyhow::Result<Built> {
    Ok(Built::Absent)
}

// A node loop is built like a replica loop.
use self::replica as node;

/// Builds a leader loop.
pub fn leader<R: Definition>(setup: &mut Setup<'_>, factory: &mut StoreFactory) -> anyhow::Result<Built> {
    let mut set = StoreSet::new(R::NAME, factory);
    let (reconciler, settings) = R::build(setup, &mut set)?;
    set.reconciles::<R::Kind>(R::WRITES_STATUS);
    Ok(Built::Leader(Box::new(BuiltReconciler { reconciler, settings, stores: set.finish() })))
}

/// Returns the loops that are enabled.
pub fn enabled(controllers: &Controllers) -> impl Iterator<Item = &'static Loop> {
    LOOPS.iter().filter(move |entry| (entry.toggle)(controllers).enabled)
}

/// Builds the enabled loops, and returns the loops of the leader with their names. Replica loops write no objects that
/// other programs also write.
///
/// # Errors
/// When a loop cannot be built, or a file that it watches cannot be read.
pub fn leader_loops(
    controllers: &Controllers,
    setup: &mut Setup<'_>,
    factory: &mut StoreFactory,
) -> anyhow::Result<Vec<(&'static str, Box<dyn BuiltLoop>)>> {
    let mut loops = Vec::new();
    for entry in enabled(controllers) {
        if let Built::Leader(built) = (entry.build)(setup, factory)? {
            loops.push((entry.name, built));
        }
    }
    for file in &setup.files {
        if let Some((path, problem)) = file.unreadable() {
            anyhow::bail!("{}: {} cannot be read: {problem}", file.key, path.display());
        }
    }
    Ok(loops)
}

impl<R: Definition> BuiltLoop for BuiltReconciler<R> {
    fn plan(&self, now: Timestamp) -> Vec<Planned> {
        let mut keys = (self.stores.keys)();
        keys.sort();
        keys.into_iter().map(|key| simulate(&self.reconciler, &self.settings, key, now)).collect()
    }

    #[cfg(test)]
    fn written(&self, now: Timestamp, refused: Option<Refused<'_>>) -> Vec<(Value, String)> {
        let Self { reconciler, settings, stores } = self;
        let mut keys = (stores.keys)();
        keys.sort();
        keys.iter()
            .flat_map(|key| written(reconciler, settings, &stores.written, key, now, refused))
            .collect()
    }

    fn needs(&self) -> &[Need] {
        &self.stores.needs
    }

    fn preview<'a>(&'a self, writer: &'a Writer, now: Timestamp) -> BoxFuture<'a, Vec<Previewed>> {
        async move {
            let engine = Engine::new(writer.clone(), self.stores.written.clone(), R::NAME);
            let mut keys = (self.stores.keys)();
            keys.sort();
            let remarks = |observed: &R::Observed| R::remarks(observed, &self.settings, now);
            let mut previews = Vec::new();
            for key in keys {
                previews.extend(preview(&self.reconciler, &self.settings, &engine, key, now, remarks).await);
            }
            previews
        }
        .boxed()
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

#[cfg(test)]
mod keys;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod writes;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{Config, ParentRef};
    use crate::runtime::gate::Gate;
    use crate::runtime::plan::to_value;
    use crate::runtime::selection::{Label, Selection};

    /// The rows of the README's table of loops, with the lines around them.
    fn readme_block() -> String {
        let controllers = Controllers::default();
        let rows: Vec<String> = LOOPS
            .iter()
            .map(|Loop { name, description, runs_in, toggle, .. }| {
                let default = if toggle(&controllers).enabled { "on" } else { "off" };
                let runs_in = match runs_in {
                    RunsIn::Leader => "leader",
                    RunsIn::Replica => "every replica",
                    RunsIn::Node => "every node",
                };
                format!("| `{name}` | {default} | {runs_in} | {} |\n", description.trim())
            })
            .collect();
        let head = "| key | default | works in | description |\n|---|---|---|---|\n";
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

    /// A configuration with every feature that needs rights.
    pub fn everything() -> Config {
        let mut config = Config::default();
        config.controllers.instance.gateway_api.enabled = true;
        let gateway = ParentRef { name: "labs".to_owned(), namespace: "gateways".to_owned() };
        config.controllers.instance.gateway_api.parent_refs.push(gateway);
        config.controllers.snapshot.vm_registry_secret = "login".to_owned();
        config.controllers.tenant.egress.enabled = true;
        config
    }

    /// Builds every loop with [`everything`].
    pub fn build_all() -> StoreFactory {
        let config = everything();
        let mut setup = Setup::new(&config, Gate::closed());
        let mut factory = StoreFactory::default();
        for entry in LOOPS {
            (entry.build)(&mut setup, &mut factory).expect("built");
        }
        factory
    }

    #[test]
    fn the_shipped_role_grants_exactly_the_watches_that_the_loops_declare() {
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
            // Rules bound to a name belong to the webhooks.
            if texts(&rule["verbs"]).contains(&"watch".to_owned()) && rule["resourceNames"].is_null() {
                for group in texts(&rule["apiGroups"]) {
                    watched.extend(
                        texts(&rule["resources"]).into_iter().map(|resource| (group.clone(), resource)),
                    );
                }
            }
        }
        let factory = build_all();
        // The dashboard has its own account.
        let ours = factory.rights.iter().filter(|(name, _)| **name != "dashboard");
        let declared = ours.flat_map(|(_, rights)| rights).filter(|(_, verbs)| verbs.contains("watch"));
        let declared = declared.map(|((kind, _), _)| (kind.group.to_owned(), kind.plural.to_owned()));
        assert_eq!(watched, declared.collect());
    }

    #[test]
    fn secrets_are_read_by_label_and_by_name_only() {
        let found = build_all().selections("secrets");
        let is_one = |selection: &Selection| {
            selection.name.is_some() || matches!(selection.label, Some(Label::Is(..)))
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
