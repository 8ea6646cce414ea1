//! Stores generated keys in Secrets. An existing Secret is used as it is, a missing one is created, and none is
//! overwritten. Several replicas may do this at the same time: the API server lets only one creation succeed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::{sleep, timeout};
use tracing::info;

use super::key_pairs::{HOST_KEYS, KeyPairs, host_keys, web_ssh_key};
use super::writer::RETRY;
use crate::config::BastionConfig;
use crate::runtime::error::with_sources;
use crate::runtime::replace::replace;
use crate::runtime::replica::Health;

/// The time limit of a request.
const REQUEST: Duration = Duration::from_secs(30);
/// The SSH server runs as a different user than the daemon and must be able to read its private keys. It rejects
/// private keys that others can read only if it owns the files itself.
const MODE: u32 = 0o444;

/// The content of a Secret as the API server returns it.
type Data = BTreeMap<String, ByteString>;

/// Ensures that the Secrets exist and that the host keys are in their folder.
pub struct Secrets {
    /// A client that sends writes without the lease; `None` without a cluster.
    pub client: Option<Client>,
    /// The names of the Secrets and the folder.
    pub config: BastionConfig,
}

impl Secrets {
    /// Retries until it succeeds. Never returns, because existing keys are never changed.
    pub async fn run(self, health: Health) {
        let mut failures = 0;
        let mut spares = [None, None];
        while let Err(failure) = self.ensure(&mut spares).await {
            health.failing(failure);
            failures += 1;
            sleep(RETRY.wait(failures)).await;
        }
        health.ready();
        std::future::pending::<()>().await;
    }

    /// `spares` are generated keys that could not be stored. They are kept, so that the next attempt need not generate
    /// them again.
    async fn ensure(&self, spares: &mut [Option<KeyPairs>; 2]) -> Result<(), String> {
        let [host_spare, web_spare] = spares;
        let BastionConfig { host_keys: host, web_ssh_key: web, .. } = &self.config;
        // Independently: a failure of one does not stop the other.
        let hosts = async {
            let Some(data) = self.secret(&host.namespace, &host.secret_name, host_keys, host_spare).await?
            else {
                return Ok(());
            };
            let secret = format!("Secret {}/{}", host.namespace, host.secret_name);
            write_host_keys(&host.folder, &data, &secret)
        };
        let web = self.secret(&web.namespace, &web.secret_name, web_ssh_key, web_spare);
        match futures::future::join(hosts, web).await {
            (Err(one), Err(other)) => Err(format!("{one}; {other}")),
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
            _ => Ok(()),
        }
    }

    /// The content of a Secret, which is created with new keys if it does not exist; `None` if no name is configured.
    async fn secret(
        &self,
        namespace: &str,
        name: &str,
        generate: fn() -> Result<KeyPairs, ssh_key::Error>,
        spare: &mut Option<KeyPairs>,
    ) -> Result<Option<Data>, String> {
        let Some(client) = self.client.clone().filter(|_| !name.is_empty()) else { return Ok(None) };
        let api = Api::<Secret>::namespaced(client, namespace);
        let failed = |verb: &str, reason: String| {
            format!(
                "cannot {verb} Secret {namespace}/{name}: {reason}; the daemon needs the rights to get and create it"
            )
        };
        let get = async || {
            let found = limited(api.get_opt(name)).await.map_err(|reason| failed("read", reason))?;
            Ok::<_, String>(found.map(|secret| secret.data.unwrap_or_default()))
        };
        if let Some(data) = get().await? {
            return Ok(Some(data));
        }
        let keys = match spare.take() {
            Some(keys) => keys,
            None => generated(generate).await?,
        };
        let secret = new_secret(name, spare.insert(keys));
        match limited(api.create(&PostParams::default(), &secret)).await {
            Ok(created) => Ok(Some(created.data.unwrap_or_default())),
            // Another replica was faster, or the right is missing. The next read shows which.
            Err(reason) => get().await?.map(Some).ok_or_else(|| failed("create", reason)),
        }
    }
}

/// New keys. The error is a sentence.
async fn generated(generate: fn() -> Result<KeyPairs, ssh_key::Error>) -> Result<KeyPairs, String> {
    info!("generating SSH keys");
    let keys = tokio::task::spawn_blocking(generate).await.map_err(|error| error.to_string());
    let keys = keys.and_then(|keys| keys.map_err(|error| error.to_string()));
    keys.map_err(|error| format!("cannot generate SSH keys: {error}"))
}

/// The response to a request. The error is the reason in words.
async fn limited<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match timeout(REQUEST, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(status.message),
        Ok(Err(error)) => Err(with_sources(&error)),
        Err(_) => Err(format!("the API server did not answer within {} s", REQUEST.as_secs())),
    }
}

fn new_secret(name: &str, keys: &KeyPairs) -> Secret {
    let data = keys.iter().map(|(name, key)| (name.clone(), ByteString(key.clone().into_bytes()))).collect();
    Secret {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        type_: Some("Opaque".to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}

/// Writes the host keys of a Secret into the folder, if a folder is configured.
fn write_host_keys(folder: &str, data: &Data, secret: &str) -> Result<(), String> {
    let needed = HOST_KEYS.last().copied().unwrap_or_default();
    if !data.contains_key(needed) {
        return Err(format!("{secret} has no {needed}: delete it to generate new keys"));
    }
    if folder.is_empty() {
        return Ok(());
    }
    for name in HOST_KEYS {
        let Some(key) = data.get(name) else { continue };
        let path = Path::new(folder).join(name);
        replace(&path, &key.0, MODE).map_err(|error| {
            format!(
                "cannot write {}: {error}; its folder has to exist and be writable for the daemon",
                path.display()
            )
        })?;
    }
    Ok(())
}
