//! Assembles the webhooks: stores, rules, server and certificate. Every replica serves them, even without the lease;
//! only the leader renews the certificate.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::{Api, Client};
use rustls::server::ResolvesServerCert;
use rustls::server::danger::ClientCertVerifier;
use tokio::net::TcpListener;
use tokio::sync::watch as channel;
use tracing::{error, info};

use super::admission::Admission;
use super::certificate::clients::ClientVerifier;
use super::certificate::registration::Registration;
use super::certificate::rotator::{self, Rotator};
use super::instance::quota;
use super::lookup::{Lookup, Stores};
use super::requester::Bypass;
use super::{server, tenant};
use crate::api::Kind;
use crate::api::requirements::Settings as Requirements;
use crate::config::pool::Pool;
use crate::config::{Layout, Managers, Reader, SwitchedOff, WebhookConfig, read};
use crate::runtime::ObjectKey;
use crate::runtime::certificate::folder;
use crate::runtime::certificate::resolver::{CertificateResolver, Served};
use crate::runtime::cluster::{ClusterStores, MachineStores};
use crate::runtime::context::Connections;
use crate::runtime::control_loop::ControlLoop;
use crate::runtime::controller::ReconcileKey;
use crate::runtime::files::WatchedFile;
use crate::runtime::http_server::bind;
use crate::runtime::plan::KindInfo;
use crate::runtime::queue::Priority;
use crate::runtime::readiness::{LoopState, Need, Readiness, settled};
use crate::runtime::store::{ByNamespace, Store, StoreFactory};
use crate::runtime::store_set::StoreSet;
use crate::runtime::task::Task;
use crate::runtime::watch::Selection;

/// The name of the webhooks in readiness and in the configuration.
pub const NAME: &str = "webhook";
/// The key of the configuration that names the folder with the certificate.
const CERTIFICATE_DIR: &str = "server.webhook.certificateDir";
/// The use of the certificate.
pub(super) const SERVED: Served =
    Served { what: "the webhooks", gauge: "crownlabs_webhook_certificate_expiration_timestamp_seconds" };
/// How long reviews are accepted after the daemon was asked to stop: the Service takes a moment to stop sending
/// requests to this pod.
const LINGER: Duration = Duration::from_secs(3);
/// The time limit for requests in progress after that.
const DRAIN: Duration = Duration::from_secs(10);

/// The parts of the webhooks.
pub struct Webhooks {
    /// The tasks that serve, and that report the readiness.
    pub tasks: Vec<Task>,
    /// The files of the certificate, if it comes from a folder, and of the authorities of the clients.
    pub files: Vec<WatchedFile>,
    /// The loop that renews the certificate, unless it comes from a folder.
    pub rotator: Option<ControlLoop>,
    /// Stops the server.
    pub ending: Ending,
}

/// Stops the server.
pub struct Ending {
    stop: channel::Sender<bool>,
    ended: channel::Receiver<bool>,
}

impl Ending {
    /// Serves for another 3 s, then closes the port, and returns when the requests in progress are answered, after 10 s
    /// at the latest.
    pub async fn finish(mut self) {
        tokio::time::sleep(LINGER).await;
        self.stop.send_replace(true);
        let ended = self.ended.wait_for(|ended| *ended);
        if tokio::time::timeout(DRAIN, ended).await.is_err() {
            info!("some admission reviews did not end in time");
        }
    }
}

/// The configuration of the webhooks.
pub struct Settings<'a> {
    /// The section of the webhooks.
    webhook: &'a WebhookConfig,
    /// The namespace of the Lease, which is also the one of the Service and of the Secret.
    namespace: &'a str,
    /// The labels of the objects that this daemon manages.
    selector: &'a BTreeMap<String, String>,
    /// The Workspaces that every Tenant may join.
    base_workspaces: &'a [String],
    /// Whether Tenants may have personal workspaces.
    personal_workspaces: bool,
    /// Where managers have rights on Instances.
    managers: Managers,
    /// The format of Instances.
    layout: Layout,
    /// The addresses that public ports can have.
    pool: Pool,
    /// The features that are off.
    off: SwitchedOff,
    /// The required parts of a cluster.
    requirements: Requirements,
}

impl<'a> Settings<'a> {
    /// Reads the configuration.
    pub fn read(config: &mut Reader<'a>) -> Self {
        Self {
            webhook: read!(config, server.webhook),
            namespace: read!(config, leader_election.namespace),
            selector: read!(config, selector),
            base_workspaces: read!(config, controllers.tenant.base_workspaces),
            personal_workspaces: *read!(config, controllers.tenant.personal_workspace.enabled),
            managers: *read!(config, controllers.tenant.managers),
            layout: *read!(config, controllers.instance.layout),
            // The loop reports an invalid pool.
            pool: Pool::parse(read!(config, controllers.public_exposure.ip_pool)).unwrap_or_default().0,
            off: config.switched_off(),
            requirements: config.requirements(),
        }
    }
}

/// Assembles the webhooks. They start when the tasks are spawned. `ungated` is a client that sends requests without the
/// lease; it is used to read the user name of this daemon.
///
/// # Errors
/// When the address cannot be bound, or the API server does not return the user name.
pub async fn set_up(
    settings: Settings<'_>,
    connections: &Connections,
    factory: &mut StoreFactory,
    ungated: Client,
    readiness: Readiness,
) -> anyhow::Result<Webhooks> {
    let config = settings.webhook;
    let address = config.listen.address().context("server.webhook.listen is empty")?;
    let listener = bind("server.webhook.listen", address).await?;
    let own_user = own_user(ungated).await?;
    info!(address = %listener.local_addr().unwrap_or(address), user = own_user, "serving admission reviews");
    let (stores, needs) = stores(factory, settings.requirements.clone());
    let resolver = Arc::new(CertificateResolver::new(SERVED));
    let folder = Path::new(&config.certificate_dir);
    let (mut files, rotator) = if config.certificate_dir.is_empty() {
        let registration = Registration::new(readiness.clone());
        let names = names(&settings, address);
        (Vec::new(), Some(rotation(&settings, connections, factory, &resolver, names, registration)))
    } else {
        (vec![folder::watched(CERTIFICATE_DIR, folder, &resolver)], None)
    };
    let clients = Some(&config.client_ca_file).filter(|file| !file.is_empty()).map(|file| {
        let (clients, file) = ClientVerifier::watched(Path::new(file));
        files.push(file);
        clients as Arc<dyn ClientCertVerifier>
    });
    let admission = Arc::new(Admission::new(
        tenant::Settings {
            selector: settings.selector.clone(),
            bypass: Bypass { groups: config.bypass_groups.clone(), own_user: own_user.clone() },
            base_workspaces: settings.base_workspaces.to_vec(),
            personal_workspaces: settings.personal_workspaces,
        },
        quota::Settings {
            enabled: config.instance_quota,
            require_enrolment: config.require_enrolment,
            own_user,
            personal_workspaces: settings.personal_workspaces,
            layout: settings.layout,
        },
        settings.managers,
        settings.off,
        Lookup { stores: stores.clone(), client: connections.client.clone(), pool: settings.pool },
    ));
    let noting = Arc::clone(&admission);
    stores.instances.subscribe(move |change| noting.note(change));
    let (server, ending) = serve(listener, Arc::clone(&resolver), clients, admission, needs.clone());
    readiness.set(NAME, LoopState::Starting(needs.iter().map(|need| need.crd.clone()).collect()));
    let waiting = |why: &Option<String>| why.clone().map(LoopState::WaitingForCertificate);
    let announce = async |state: &LoopState| info!("the webhooks are {}", state.sentence());
    let track = readiness.track(NAME, needs, (resolver.watch(), waiting), || {}, announce);
    let tasks = vec![server, Task::new("readiness", track)];
    Ok(Webhooks { tasks, files, rotator, ending })
}

/// The user name of this daemon.
async fn own_user(client: Client) -> anyhow::Result<String> {
    let review = Api::<SelfSubjectReview>::all(client)
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .context("the API server did not return the name of this account")?;
    let user = review.status.and_then(|status| status.user_info).and_then(|user| user.username);
    user.filter(|name| !name.is_empty()).context("the API server returned an empty name for this account")
}

/// Creates the stores of the parts of the cluster that environments need, and the needs for them.
pub(super) fn cluster(factory: &mut StoreFactory, requirements: Requirements) -> (ClusterStores, Vec<Need>) {
    let mut set = StoreSet::new(NAME, factory);
    let of_machines = MachineStores::declare(&mut set);
    let cluster = ClusterStores::declare(&mut set, requirements, of_machines, |_| {});
    (cluster, set.finish().needs)
}

/// Creates the stores, and returns the needs: all of them must be filled.
pub fn stores(factory: &mut StoreFactory, requirements: Requirements) -> (Stores, Vec<Need>) {
    fn store<T: Kind>(of: &mut StoreFactory, needs: &mut Vec<Need>, verbs: &'static str) -> Arc<Store<T>> {
        of.allow(NAME, (KindInfo::of::<T>(), ""), verbs);
        let store = of.store(&Selection::ALL);
        needs.push(Need::of(&*store, true));
        store
    }
    let (cluster, mut needs) = cluster(factory, requirements);
    // Some are read directly if a rule would refuse a request because an object is not in the store yet.
    let stores = Stores {
        tenants: store(factory, &mut needs, "get list watch"),
        workspaces: store(factory, &mut needs, "get list watch"),
        templates: store(factory, &mut needs, "get list watch"),
        instances: store(factory, &mut needs, "list watch"),
        namespaces: store(factory, &mut needs, "list watch"),
        cluster: Arc::new(cluster),
    };
    stores.instances.index::<ByNamespace>();
    (stores, needs)
}

/// Returns the loop that renews the certificate, and the watch that delivers it to every replica.
fn rotation(
    settings: &Settings<'_>,
    connections: &Connections,
    factory: &mut StoreFactory,
    resolver: &Arc<CertificateResolver>,
    names: Vec<String>,
    registration: Registration,
) -> ControlLoop {
    let WebhookConfig { service_name, .. } = settings.webhook;
    let secret = ObjectKey::new(settings.namespace, service_name);
    let of_name = Selection::named(service_name);
    let of_secret = Selection::named(service_name.clone()).within(secret.namespace.to_string());
    let mut set = StoreSet::new(Rotator::NAME, factory);
    let (served, key) = (Arc::clone(resolver), secret.clone());
    let (of_mutating, of_validating) = (secret.clone(), secret.clone());
    let stores = rotator::Stores {
        secrets: set
            .store(&of_secret)
            .on_change(move |change, queue| {
                if let Some(secret) = &change.new {
                    rotator::serve(secret, &served);
                }
                queue.add(key.clone(), Priority::Change);
            })
            .get(),
        mutating: set
            .store(&of_name)
            .on_change(move |_, queue| queue.add(of_mutating.clone(), Priority::Change))
            .get(),
        validating: set
            .store(&of_name)
            .on_change(move |_, queue| queue.add(of_validating.clone(), Priority::Change))
            .get(),
    };
    // On a new cluster, none of the objects exists, so no watch event would start the first reconciliation.
    set.queue().add(secret.clone(), Priority::Change);
    let rotator = Rotator::new(stores, connections.writer.clone(), secret, names, registration);
    ControlLoop::new(rotator, set.finish(), 1)
}

/// The names of the certificate: the names of the Service, which API servers use, and the IP address of the port unless
/// it is `0.0.0.0` or `::`.
fn names(settings: &Settings<'_>, address: SocketAddr) -> Vec<String> {
    let service = format!("{}.{}", settings.webhook.service_name, settings.namespace);
    let mut names = vec![format!("{service}.svc"), format!("{service}.svc.cluster.local"), service];
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    names
}

/// Returns the task that serves once the stores are filled, and the handle that stops it.
fn serve(
    listener: TcpListener,
    resolver: Arc<CertificateResolver>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    admission: Arc<Admission>,
    needs: Vec<Need>,
) -> (Task, Ending) {
    let (stop, ended) = (channel::Sender::new(false), channel::Sender::new(false));
    let ending = Ending { stop: stop.clone(), ended: ended.subscribe() };
    let certificate: Arc<dyn ResolvesServerCert> = resolver;
    let server = async move {
        settled(&needs).await;
        let asked = stop.subscribe();
        let served =
            server::serve(listener, certificate, clients, admission.rules(), server::LIMITS, asked).await;
        if let Err(error) = served {
            error!(%error, "admission reviews cannot be served");
            return;
        }
        ended.send_replace(true);
        // The process is about to end. This task must not end first, because its end would count as a failure.
        std::future::pending::<()>().await;
    };
    (Task::new(NAME, server), ending)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_certificate_is_for_the_service_and_its_address() {
        let config = Config::default();
        let settings = Settings::read(&mut Reader::new(&config));
        let names = |address: &str| names(&settings, address.parse().expect("an address"));
        let service = [
            "crownlabs-webhook.crownlabs-system.svc",
            "crownlabs-webhook.crownlabs-system.svc.cluster.local",
            "crownlabs-webhook.crownlabs-system",
        ];
        assert_eq!(names("0.0.0.0:9443"), service);
        assert_eq!(names("[::]:9443"), service);
        assert_eq!(names("127.0.0.1:9443")[3..], ["127.0.0.1"]);
    }
}
