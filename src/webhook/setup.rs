//! Puts the webhooks together: stores, rules, server and certificate. Every replica serves them, also
//! without the lease; only the leader renews the certificate.

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
use super::certificate::rotator::{self, Rotator};
use super::instance::quota;
use super::lookup::{Lookup, Stores};
use super::requester::Bypass;
use super::server;
use super::tenant;
use crate::api::Kind;
use crate::config::{Config, WebhookConfig};
use crate::runtime::ObjectKey;
use crate::runtime::certificate::folder;
use crate::runtime::certificate::resolver::{CertificateResolver, Served};
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
/// What the certificate is for.
pub(super) const SERVED: Served =
    Served { what: "admission reviews", gauge: "crownlabs_webhook_certificate_expiration_timestamp_seconds" };
/// How long reviews are still accepted after the daemon was asked to stop: it takes a moment until the
/// Service sends none to this pod any more.
const LINGER: Duration = Duration::from_secs(3);
/// How long requests that have begun may take after that.
const DRAIN: Duration = Duration::from_secs(10);

/// The webhooks, put together.
pub struct Webhooks {
    /// The tasks that serve, and that report the readiness.
    pub tasks: Vec<Task>,
    /// The files of the certificate, if it comes from a folder, and of the authorities of the clients.
    pub files: Vec<WatchedFile>,
    /// The loop that renews the certificate, unless it comes from a folder.
    pub rotator: Option<ControlLoop>,
    /// How the server is stopped.
    pub ending: Ending,
}

/// Stops the server.
pub struct Ending {
    stop: channel::Sender<bool>,
    ended: channel::Receiver<bool>,
}

impl Ending {
    /// Serves for another 3 s, then closes the port, and returns when the requests that have begun are
    /// answered, after 10 s at the latest.
    pub async fn finish(mut self) {
        tokio::time::sleep(LINGER).await;
        self.stop.send_replace(true);
        let ended = self.ended.wait_for(|ended| *ended);
        if tokio::time::timeout(DRAIN, ended).await.is_err() {
            info!("some admission reviews did not end in time");
        }
    }
}

/// Puts the webhooks together. Nothing runs before the tasks are spawned. `ungated` is a client that sends
/// requests without the lease, by which the user name of this daemon is read.
///
/// # Errors
/// When the address cannot be bound, or the API server does not return the user name.
pub async fn set_up(
    config: &Config,
    connections: &Connections,
    factory: &mut StoreFactory,
    ungated: Client,
    readiness: Readiness,
) -> anyhow::Result<Webhooks> {
    let (whole, config) = (config, &config.server.webhook);
    let address = config.listen.address().context("server.webhook.listen is empty")?;
    let listener = bind("server.webhook.listen", address).await?;
    let own_user = own_user(ungated).await?;
    info!(address = %listener.local_addr().unwrap_or(address), user = own_user, "serving admission reviews");
    let (stores, needs) = stores(factory);
    let resolver = Arc::new(CertificateResolver::new(SERVED));
    let folder = Path::new(&config.certificate_dir);
    let (mut files, rotator) = if config.certificate_dir.is_empty() {
        (Vec::new(), Some(rotation(whole, connections, factory, &resolver, names(whole, address))))
    } else {
        (folder::watched(CERTIFICATE_DIR, folder, &resolver).into(), None)
    };
    let clients = Some(&config.client_ca_file).filter(|file| !file.is_empty()).map(|file| {
        let (clients, file) = ClientVerifier::watched(Path::new(file));
        files.push(file);
        clients as Arc<dyn ClientCertVerifier>
    });
    let tenants = &whole.controllers.tenant;
    let admission = Arc::new(Admission::new(
        tenant::Settings {
            selector: whole.selector.clone(),
            bypass: Bypass { groups: config.bypass_groups.clone(), own_user: own_user.clone() },
            base_workspaces: tenants.base_workspaces.clone(),
            personal_workspaces: tenants.personal_workspace.enabled,
        },
        quota::Settings {
            enabled: config.instance_quota,
            require_enrolment: config.require_enrolment,
            own_user,
            personal_workspaces: tenants.personal_workspace.enabled,
            layout: whole.controllers.instance.layout,
        },
        Lookup::new(stores.clone(), connections.client.clone()),
    ));
    let noting = Arc::clone(&admission);
    stores.instances.subscribe(move |change| noting.note(change));
    let (server, ending) = serve(listener, Arc::clone(&resolver), clients, admission, needs.clone());
    readiness.set(NAME, LoopState::Starting(needs.iter().map(|need| need.crd.clone()).collect()));
    let certificate = (resolver.watch(), LoopState::WaitingForCertificate);
    let announce = async |state: &LoopState| info!(?state, "the webhooks' state");
    let track = readiness.track(NAME, needs, certificate, || {}, announce);
    let tasks = vec![server, Task::new("readiness", track)];
    Ok(Webhooks { tasks, files, rotator, ending })
}

/// The user name of this daemon.
async fn own_user(client: Client) -> anyhow::Result<String> {
    let review = Api::<SelfSubjectReview>::all(client)
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .context("the API server does not say which account this is")?;
    let user = review.status.and_then(|status| status.user_info).and_then(|user| user.username);
    user.filter(|name| !name.is_empty()).context("the API server knows no name for this account")
}

/// Creates the stores, and says which are waited for: all.
pub fn stores(factory: &mut StoreFactory) -> (Stores, Vec<Need>) {
    fn store<T: Kind>(of: &mut StoreFactory, needs: &mut Vec<Need>, verbs: &'static str) -> Arc<Store<T>> {
        of.allow(NAME, (KindInfo::of::<T>(), ""), verbs);
        let store = of.store(&Selection::ALL);
        needs.push(Need::of(&*store, true));
        store
    }
    let mut needs = Vec::new();
    // Some are read, if a rule would refuse a request because they are not in the store yet.
    let stores = Stores {
        tenants: store(factory, &mut needs, "get list watch"),
        workspaces: store(factory, &mut needs, "get list watch"),
        templates: store(factory, &mut needs, "get list watch"),
        instances: store(factory, &mut needs, "list watch"),
        namespaces: store(factory, &mut needs, "list watch"),
    };
    stores.instances.index::<ByNamespace>();
    (stores, needs)
}

/// The loop that renews the certificate, and the watch by which every replica receives it.
fn rotation(
    config: &Config,
    connections: &Connections,
    factory: &mut StoreFactory,
    resolver: &Arc<CertificateResolver>,
    names: Vec<String>,
) -> ControlLoop {
    let WebhookConfig { service_name, .. } = &config.server.webhook;
    let secret = ObjectKey::new(&config.leader_election.namespace, service_name);
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
    // On a new cluster none of the objects exists, and no watch event would start the first reconciliation.
    set.queue().add(secret.clone(), Priority::Change);
    let rotator = Rotator::new(stores, connections.writer.clone(), secret, names);
    ControlLoop::new(rotator, set.finish(), 1)
}

/// The names of the certificate: those of the Service, which API servers use, and the IP address of the
/// port unless it is `0.0.0.0` or `::`.
fn names(config: &Config, address: SocketAddr) -> Vec<String> {
    let service = format!("{}.{}", config.server.webhook.service_name, config.leader_election.namespace);
    let mut names = vec![format!("{service}.svc"), format!("{service}.svc.cluster.local"), service];
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    names
}

/// The task that serves as soon as the stores are filled, and how it is stopped.
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
        // The process is about to end. Until then, this task must not end, which would count as a failure.
        std::future::pending::<()>().await;
    };
    (Task::new(NAME, server), ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_is_for_the_service_and_its_address() {
        let names = |address: &str| names(&Config::default(), address.parse().expect("an address"));
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
