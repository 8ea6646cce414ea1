//! Access to the API server of a cluster for tests: clients, kubeconfigs, `kubectl`, and requests as the administrator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::PropagationPolicy;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use super::Cluster;
use super::direct::{Direct, User};
use super::kubeconfig::{self, Credentials};

impl Cluster {
    /// A client with the administrator's rights. It belongs to the runtime that creates it.
    pub async fn client(&self) -> Result<Client> {
        client_of(&self.admin_kubeconfig, "crownlabs-tests").await
    }

    /// A client for the administrator that impersonates a user. It belongs to the runtime that creates it.
    pub async fn client_as(&self, user: &str) -> Result<Client> {
        let mut config = config_of(&self.admin_kubeconfig, "crownlabs-tests").await?;
        config.auth_info.impersonate = Some(user.to_owned());
        Ok(Client::try_from(config)?)
    }

    /// A client with the rights of a service account.
    pub async fn service_account_client(&self, namespace: &str, service_account: &str) -> Result<Client> {
        client_of(&self.service_account_kubeconfig(namespace, service_account)?, "crownlabs-tests").await
    }

    /// `kubectl` as the administrator; the caller adds the arguments.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.programs.assets.kubectl);
        command.env("KUBECONFIG", &self.admin_kubeconfig);
        // Other clusters will use the same ports, so each cluster has its own discovery cache.
        command.env("KUBECACHEDIR", self.dir().join("kubectl-cache"));
        command
    }

    /// An object, or `None` if it does not exist. `kind` is a plural name, followed by a dot and the group if the
    /// plural name alone is ambiguous.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        let (direct, [kind, namespace, name]) = (self.direct()?, [kind, namespace, name].map(str::to_owned));
        self.background.run(async move { direct.get(&kind, &namespace, &name).await })?
    }

    /// The objects of some kinds (separated by commas) in a namespace; the empty namespace stands for all namespaces.
    pub fn list(&self, kinds: &str, namespace: &str) -> Result<Vec<Value>> {
        let (direct, [kinds, namespace]) = (self.direct()?, [kinds, namespace].map(str::to_owned));
        self.background.run(async move { direct.list(&kinds, &namespace).await })?
    }

    /// Applies the objects in a YAML text (server-side). Their CRDs must be installed already.
    pub fn apply(&self, yaml: &str) -> Result<()> {
        let (direct, yaml) = (self.direct()?, yaml.to_owned());
        self.background.run(async move { direct.apply(&yaml).await })?
    }

    /// Merge-patches an object, or a subresource such as its status.
    pub fn patch(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        subresource: Option<&str>,
        patch: &str,
    ) -> Result<()> {
        let direct = self.direct()?;
        let [kind, namespace, name, patch] = [kind, namespace, name, patch].map(str::to_owned);
        let part = subresource.map(str::to_owned);
        self.background
            .run(async move { direct.patch(&kind, &namespace, &name, part.as_deref(), &patch).await })?
    }

    /// Deletes an object. Returns its uid if it is still there: see [`Direct::delete`].
    pub fn delete(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        policy: PropagationPolicy,
    ) -> Result<Option<String>> {
        let (direct, [kind, namespace, name]) = (self.direct()?, [kind, namespace, name].map(str::to_owned));
        self.background.run(async move { direct.delete(&kind, &namespace, &name, policy).await })?
    }

    /// Deletes all objects of a kind in a namespace, and their dependents according to `policy`.
    pub fn delete_all(&self, kind: &str, namespace: &str, policy: PropagationPolicy) -> Result<()> {
        let (direct, [kind, namespace]) = (self.direct()?, [kind, namespace].map(str::to_owned));
        self.background.run(async move { direct.delete_all(&kind, &namespace, policy).await })?
    }

    /// Whether the authorizer allows a user a request: see [`Direct::may`].
    pub fn may(&self, user: User, verb: &str, resource: &str, namespace: &str, name: &str) -> Result<bool> {
        let direct = self.direct()?;
        let [verb, resource, namespace, name] = [verb, resource, namespace, name].map(str::to_owned);
        self.background.run(async move { direct.may(&user, &verb, &resource, &namespace, &name).await })?
    }

    fn direct(&self) -> Result<Arc<Direct>> {
        let mut direct = self.direct.lock();
        if let Some(direct) = &*direct {
            return Ok(Arc::clone(direct));
        }
        let admin = self.admin_kubeconfig.clone();
        let client = self.background.run(async move { client_of(&admin, "crownlabs-tests").await })??;
        Ok(Arc::clone(direct.insert(Arc::new(Direct::new(client)))))
    }

    /// Applies manifest files (server-side). Their CRDs must be installed already.
    pub fn apply_files(&self, files: &[&Path]) -> Result<()> {
        files.iter().try_for_each(|file| {
            let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
            self.apply(&text).with_context(|| file.display().to_string())
        })
    }

    /// The kubeconfig of another administrator, whose requests appear in the audit log under this name.
    pub fn administrator(&self, name: &str) -> Result<PathBuf> {
        self.programs.kubeconfig(name, Some("system:masters"))
    }

    /// The kubeconfig of a user who is a member of a group.
    pub fn kubeconfig(&self, user: &str, group: &str) -> Result<PathBuf> {
        self.programs.kubeconfig(user, Some(group))
    }

    /// A token of a service account, valid for a day.
    pub fn token(&self, namespace: &str, service_account: &str) -> Result<String> {
        let (direct, [namespace, account]) =
            (self.direct()?, [namespace, service_account].map(str::to_owned));
        self.background.run(async move { direct.token(&namespace, &account).await })?
    }

    /// A token of a user, as Keycloak would issue it, valid for this many seconds from now. The API server takes the
    /// user's name and groups from it.
    pub fn user_token(&self, name: &str, groups: &[&str], seconds: i64) -> Result<String> {
        self.issuer.token(name, groups, seconds)
    }

    /// The URL of the issuer of these tokens, which accepts each of them as a refresh token, too. Its certificate is
    /// signed by [`Cluster::ca_file`].
    pub fn issuer_url(&self) -> &str {
        self.issuer.url()
    }

    /// Writes a kubeconfig with a token to `path`.
    pub fn write_kubeconfig(&self, path: &Path, token: &str) -> Result<()> {
        kubeconfig::write(path, &self.server(), &self.ca_file(), &Credentials::Token(token))
    }

    /// Writes a kubeconfig with a token of a service account that exists.
    pub fn service_account_kubeconfig(&self, namespace: &str, service_account: &str) -> Result<PathBuf> {
        self.kubeconfig_via(&self.server(), namespace, service_account)
    }

    /// The same for another server in front of the API server, such as [`Proxy::url`](super::proxy::Proxy::url).
    pub fn kubeconfig_via(&self, server: &str, namespace: &str, service_account: &str) -> Result<PathBuf> {
        let port = server.rsplit(':').next().unwrap_or_default();
        let path = self.dir().join(format!("{namespace}-{service_account}-{port}.kubeconfig"));
        // Some tests start many daemons one after the other. They all use the token of the first.
        if path.exists() {
            return Ok(path);
        }
        let token = self.token(namespace, service_account)?;
        kubeconfig::write(&path, server, &self.ca_file(), &Credentials::Token(&token))?;
        Ok(path)
    }
}

/// A client made from a kubeconfig, which sends `user_agent` with every request.
pub async fn client_of(kubeconfig: &Path, user_agent: &'static str) -> Result<Client> {
    Ok(Client::try_from(config_of(kubeconfig, user_agent).await?)?)
}

async fn config_of(kubeconfig: &Path, user_agent: &'static str) -> Result<kube::Config> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static(user_agent)));
    Ok(config)
}
