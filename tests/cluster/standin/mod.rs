//! Simulates systems outside Kubernetes: `KubeVirt`, CDI, a storage provisioner and a load balancer.
//!
//! One task watches the objects, calls the pure functions of [`machines`] and [`storage`] for the next step of an
//! object that has changed, and carries the steps out: the steps of one object one after the other, the steps of
//! different objects at the same time.

mod cache;
mod machines;
mod objects;
mod storage;

use std::collections::HashSet;
use std::fs::File;
use std::future::Future;
use std::io::Write as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::stream::{FuturesUnordered, SelectAll};
use futures::{FutureExt as _, Stream, StreamExt as _};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::DynamicObject;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use cache::{Cache, Key, Kind};
pub use storage::PROVISIONER;

/// The user and the user agent of the stand-in in the audit log.
pub const USER_AGENT: &str = "kubevirt-stand-in";

/// The pause before a failed step is retried.
const RETRY: Duration = Duration::from_millis(500);

/// The simulated systems and their speed.
pub struct Settings {
    /// Whether it simulates virtual machines; the CRDs of `KubeVirt` and CDI must be installed then.
    pub machines: bool,
    /// Whether claims get volumes.
    pub storage: bool,
    /// Whether Services of type `LoadBalancer` get addresses.
    pub load_balancer: bool,
    /// How long an import, a boot and a shut-down take, each.
    pub machine_delay: Duration,
    /// The file for failures.
    pub log: PathBuf,
}

/// A write, and the pause before it.
pub struct Step {
    delay: Duration,
    write: Write,
}

/// A write.
enum Write {
    Create(Kind, Box<DynamicObject>),
    /// A merge patch of the object or of its status subresource.
    Patch {
        status: bool,
        patch: Value,
    },
    /// A deletion of the object with this uid.
    Delete(Key, String),
}

impl Step {
    fn create(kind: Kind, object: DynamicObject) -> Self {
        Self { delay: Duration::ZERO, write: Write::Create(kind, Box::new(object)) }
    }

    fn patch(patch: Value) -> Self {
        Self { delay: Duration::ZERO, write: Write::Patch { status: false, patch } }
    }

    fn patch_status(patch: Value) -> Self {
        Self { delay: Duration::ZERO, write: Write::Patch { status: true, patch } }
    }

    fn delete(key: Key, object: &DynamicObject) -> Self {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        Self { delay: Duration::ZERO, write: Write::Delete(key, uid) }
    }

    fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

/// The running stand-in; it stops when dropped.
pub struct StandIn {
    task: JoinHandle<()>,
}

impl StandIn {
    /// Starts it on a runtime. Fails when the log cannot be opened.
    pub fn start(runtime: &Handle, client: Client, settings: Settings) -> Result<Self> {
        let log = File::options().create(true).append(true).open(&settings.log);
        let log = log.with_context(|| format!("opening {}", settings.log.display()))?;
        Ok(Self { task: runtime.spawn(Simulator::new(client, settings, log).run()) })
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Watches = SelectAll<Pin<Box<dyn Stream<Item = (Kind, watcher::Result<Event<DynamicObject>>)> + Send>>>;
type Pending = FuturesUnordered<Pin<Box<dyn Future<Output = (Key, Outcome)> + Send>>>;

/// The result of a step.
enum Outcome {
    /// The object, as the API server returned it.
    Written(Kind, Box<DynamicObject>),
    /// The object has been deleted.
    Gone(Key),
    /// The object to be written, and the API server's reason for the rejection; `None` for a conflict.
    Failed(Option<(Key, String)>),
}

struct Simulator {
    client: Client,
    settings: Settings,
    log: File,
    cache: Cache,
    /// Kinds whose first list is not complete yet. Steps begin when all lists are complete.
    unlisted: HashSet<Kind>,
    /// Known objects that have not appeared yet in a list that is being read.
    unseen: HashSet<Key>,
    /// Objects with a step under way.
    busy: HashSet<Key>,
    /// Busy objects that have changed in the meantime.
    changed_while_busy: HashSet<Key>,
    /// The steps under way.
    pending: Pending,
}

impl Simulator {
    fn new(client: Client, settings: Settings, log: File) -> Self {
        let mut kinds = vec![Kind::Claim, Kind::Volume];
        if settings.load_balancer {
            kinds.push(Kind::Service);
        }
        if settings.machines {
            kinds.extend([Kind::Machine, Kind::Instance, Kind::DataVolume, Kind::Launcher]);
        }
        Self {
            client,
            settings,
            log,
            cache: Cache::default(),
            unlisted: kinds.into_iter().collect(),
            unseen: HashSet::new(),
            busy: HashSet::new(),
            changed_while_busy: HashSet::new(),
            pending: FuturesUnordered::new(),
        }
    }

    async fn run(mut self) {
        let mut watches = self.watches();
        loop {
            tokio::select! {
                Some((kind, event)) = watches.next() => self.observe(kind, event),
                Some((key, outcome)) = self.pending.next() => self.finished(&key, outcome),
            }
        }
    }

    fn watches(&self) -> Watches {
        let mut watches = Watches::new();
        for &kind in &self.unlisted {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind.resource());
            let selector = kind.selector().map(str::to_owned);
            let config = watcher::Config { label_selector: selector, ..watcher::Config::default() };
            let events = watcher(api, config).then(move |event| async move {
                if event.is_err() {
                    // While the API server is stopped, the watcher would try again without a pause.
                    tokio::time::sleep(RETRY).await;
                }
                (kind, event)
            });
            watches.push(events.boxed());
        }
        watches
    }

    fn observe(&mut self, kind: Kind, event: watcher::Result<Event<DynamicObject>>) {
        match event {
            Ok(Event::Init) => self.unseen.extend(self.cache.keys(kind)),
            Ok(Event::InitApply(object) | Event::Apply(object)) => self.seen(kind, object),
            Ok(Event::Delete(object)) => self.gone(&Key::of(kind, &object)),
            Ok(Event::InitDone) => {
                let unseen: Vec<Key> = self.unseen.extract_if(|key| key.kind == kind).collect();
                for key in &unseen {
                    self.gone(key);
                }
                if self.unlisted.remove(&kind) && self.unlisted.is_empty() {
                    self.decide_all();
                }
            }
            Err(error) => self.log_failure(&format!("watching {kind:?}: {error}")),
        }
    }

    fn decide_all(&mut self) {
        use Kind::{Claim, DataVolume, Instance, Machine, Service, Volume};
        for kind in [Machine, Instance, DataVolume, Claim, Volume, Service] {
            for key in self.cache.keys(kind) {
                self.decide(key);
            }
        }
    }

    fn seen(&mut self, kind: Kind, object: DynamicObject) {
        let key = Key::of(kind, &object);
        self.unseen.remove(&key);
        let concerned = concerned(&key, &object);
        if self.cache.put(kind, object) {
            for key in concerned {
                self.decide(key);
            }
        }
    }

    fn gone(&mut self, key: &Key) {
        let concerned = self.cache.get(key).map(|object| concerned(key, object)).unwrap_or_default();
        self.cache.remove(key);
        self.cache.refusals.remove(key);
        for key in concerned {
            self.decide(key);
        }
    }

    /// Starts the next step of an object, unless one is under way.
    fn decide(&mut self, key: Key) {
        if !self.unlisted.is_empty() {
            return;
        }
        if self.busy.contains(&key) {
            self.changed_while_busy.insert(key);
            return;
        }
        let delay = self.settings.machine_delay;
        let step = match key.kind {
            Kind::Machine => machines::machine(&self.cache, &key),
            Kind::Instance => machines::instance(&self.cache, &key, delay),
            Kind::DataVolume => machines::data_volume(&self.cache, &key, delay),
            Kind::Claim if !self.settings.storage => None,
            Kind::Claim => storage::claim(&self.cache, &key),
            Kind::Volume => storage::volume(&self.cache, &key),
            Kind::Service => storage::service(&self.cache, &key),
            Kind::Launcher => None,
        };
        if let Some(step) = step {
            self.busy.insert(key.clone());
            let client = self.client.clone();
            let work = async move {
                tokio::time::sleep(step.delay).await;
                let outcome = write(client, &key, step.write).await;
                if let Outcome::Failed(_) = outcome {
                    tokio::time::sleep(RETRY).await;
                }
                (key, outcome)
            };
            self.pending.push(work.boxed());
        }
    }

    fn finished(&mut self, key: &Key, outcome: Outcome) {
        self.busy.remove(key);
        let mut again = self.changed_while_busy.remove(key);
        match outcome {
            Outcome::Written(kind, object) => {
                self.cache.refusals.remove(&Key::of(kind, &object));
                self.seen(kind, *object);
                again = true;
            }
            Outcome::Gone(other) => self.gone(&other),
            Outcome::Failed(reason) => {
                if let Some((refused, message)) = reason {
                    self.log_failure(&format!("{refused:?}: {message}"));
                    self.cache.refusals.insert(refused, message);
                }
                again = true;
            }
        }
        if again {
            self.decide(key.clone());
        }
    }

    fn log_failure(&mut self, line: &str) {
        // The simulation continues if the disk is full.
        let _ = writeln!(self.log, "{line}");
    }
}

/// The objects whose next step may depend on this one.
fn concerned(key: &Key, object: &DynamicObject) -> Vec<Key> {
    let owner = |kind| {
        let owner = object.owner_references().iter().find(|owner| owner.controller == Some(true));
        owner.map(|owner| key.sibling(kind, &owner.name))
    };
    match key.kind {
        Kind::Instance | Kind::DataVolume => [key.clone()].into_iter().chain(owner(Kind::Machine)).collect(),
        Kind::Launcher => owner(Kind::Instance).into_iter().collect(),
        Kind::Claim => [key.clone()].into_iter().chain(owner(Kind::DataVolume)).collect(),
        Kind::Machine | Kind::Volume | Kind::Service => vec![key.clone()],
    }
}

/// Carries out a write for the object `key`.
// The answer of a deletion is of a type whose crate is not a dependency here, so its method cannot be named.
#[allow(clippy::redundant_closure_for_method_calls)]
async fn write(client: Client, key: &Key, write: Write) -> Outcome {
    let api = |kind: Kind, namespace: &str| -> Api<DynamicObject> {
        if namespace.is_empty() {
            Api::all_with(client.clone(), &kind.resource())
        } else {
            Api::namespaced_with(client.clone(), namespace, &kind.resource())
        }
    };
    let (target, result) = match write {
        Write::Create(kind, object) => {
            let target = Key::of(kind, &object);
            let created = api(kind, &target.namespace).create(&PostParams::default(), &object).await;
            (target, created.map(Some))
        }
        Write::Patch { status, patch } => {
            let (api, patch, params) =
                (api(key.kind, &key.namespace), Patch::Merge(patch), PatchParams::default());
            let patched = if status {
                api.patch_status(&key.name, &params, &patch).await
            } else {
                api.patch(&key.name, &params, &patch).await
            };
            (key.clone(), patched.map(Some))
        }
        Write::Delete(target, uid) => {
            let preconditions = Preconditions { uid: Some(uid), resource_version: None };
            let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            let deleted = api(target.kind, &target.namespace).delete(&target.name, &params).await;
            (target, deleted.map(|answer| answer.left()))
        }
    };
    match result {
        Ok(Some(object)) => Outcome::Written(target.kind, Box::new(object)),
        Ok(None) => Outcome::Gone(target),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Outcome::Failed(None),
        Err(kube::Error::Api(status)) => Outcome::Failed(Some((target, status.message))),
        Err(error) => Outcome::Failed(Some((target, error.to_string()))),
    }
}
