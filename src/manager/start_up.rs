//! The prerequisites of the process: signals, the cluster, Keycloak, mail.

use std::env;
use std::error::Error as _;
use std::ffi::OsString;
#[cfg(feature = "daemon")]
use std::future::Future;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use futures::future::{BoxFuture, FutureExt};
use http::Uri;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
#[cfg(feature = "daemon")]
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::api::names::check_dns_label;
use crate::clients::keycloak::Keycloak;
use crate::clients::mail::Mailer;
use crate::clients::prometheus::Prometheus;
use crate::config::file::{self, FileError};
use crate::config::{Config, MailTransport};
use crate::controllers::accounts::Accounts;
use crate::runtime::cause::no_answer;
use crate::runtime::client::why;
use crate::runtime::error::with_sources;
use crate::runtime::gate::Gate;
use crate::runtime::readiness::Readiness;

/// An API server that has not responded for this long is reported.
const REPORTED_AFTER: Duration = Duration::from_secs(5);

/// Completes at the first SIGTERM or SIGINT.
#[cfg(feature = "daemon")]
pub fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate()).context("SIGTERM cannot be caught")?;
    let mut int = signal(SignalKind::interrupt()).context("SIGINT cannot be caught")?;
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

/// The cluster, and a namespace in it.
#[derive(Debug, Clone, Default)]
pub struct ClusterOptions {
    /// `--kubeconfig`; otherwise `KUBECONFIG`, the user's kubeconfig, or the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`; otherwise the current context of the kubeconfig.
    pub context: Option<String>,
    /// `--namespace`; otherwise the namespace of the context.
    pub namespace: Option<String>,
}

/// Returns the kubeconfig of the cluster that the options name.
pub fn kubeconfig(options: &ClusterOptions) -> BoxFuture<'_, anyhow::Result<kube::Config>> {
    // Boxed, so that the code is compiled once and not in each command.
    read_kubeconfig(options).boxed()
}

async fn read_kubeconfig(options: &ClusterOptions) -> anyhow::Result<kube::Config> {
    let ClusterOptions { kubeconfig, context, namespace } = options;
    if let Some(namespace) = namespace {
        check_dns_label(namespace)
            .with_context(|| format!("--namespace {namespace:?} is not a valid namespace name"))?;
    }
    let chosen = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
    // The texts of these errors repeat those of their sources, so the chain is not passed on.
    let mut config = match (kubeconfig, context) {
        (None, None) => kube::Config::infer().await.map_err(|error| {
            let own = error.source().and_then(|source| source.downcast_ref::<KubeconfigError>());
            let why = own.map(|own| no_cluster(own, &error, |name| env::var_os(name)));
            anyhow!("{}", why.unwrap_or_else(|| with_sources(&error)))
        })?,
        (None, Some(context)) => kube::Config::from_kubeconfig(&chosen)
            .await
            .map_err(|error| anyhow!("--context {context} cannot be used: {}", explained(&error, &[])))?,
        (Some(path), _) => {
            let shown = path.display();
            file::read(path).map_err(|error| anyhow!("--kubeconfig {shown} cannot be read: {error}"))?;
            let read = Kubeconfig::read_from(path).map_err(|error| {
                anyhow!("--kubeconfig {shown} cannot be read: {}", explained(&error, &[]))
            })?;
            let names: Vec<String> = read.contexts.iter().map(|context| context.name.clone()).collect();
            kube::Config::from_custom_kubeconfig(read, &chosen).await.map_err(|error| {
                anyhow!("--kubeconfig {shown} cannot be used: {}", explained(&error, &names))
            })?
        }
    };
    if let Some(namespace) = namespace {
        config.default_namespace.clone_from(namespace);
    }
    Ok(config)
}

/// Explains why neither a kubeconfig nor the service account of a pod can be used: the error of the kubeconfig, and the
/// error with both.
fn no_cluster(
    error: &KubeconfigError,
    both: &dyn std::error::Error,
    variable: impl Fn(&str) -> Option<OsString>,
) -> String {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    // The message of the parser may repeat a part of the file.
    if is_set("KUBERNETES_SERVICE_HOST") && !matches!(error, KubeconfigError::Parse(_)) {
        return format!("neither a kubeconfig nor the service account of this pod can be used: {both}");
    }
    let is_named = is_set("KUBECONFIG");
    match error {
        KubeconfigError::ReadConfig(error, path) if is_named || error.kind() != ErrorKind::NotFound => {
            format!("the kubeconfig {} cannot be read: {}", path.display(), FileError::of(error, path))
        }
        KubeconfigError::ReadConfig(..) | KubeconfigError::FindPath => {
            "no cluster is configured: pass --kubeconfig FILE, set KUBECONFIG, or run in a pod".to_owned()
        }
        other => {
            let place = if is_named { "KUBECONFIG" } else { "~/.kube/config" };
            format!("the kubeconfig in {place} cannot be used: {}", explained(other, &[]))
        }
    }
}

/// Describes the fault of a kubeconfig with these contexts, and how to correct it.
fn explained(error: &KubeconfigError, contexts: &[String]) -> String {
    let known = match contexts {
        [] => "list them with `kubectl config get-contexts`".to_owned(),
        names => format!("it has {}", names.join(", ")),
    };
    match error {
        KubeconfigError::CurrentContextNotSet => {
            format!("it has no current-context; pass --context NAME ({known})")
        }
        KubeconfigError::LoadContext(name) => {
            format!("there is no context {name}; pass the name of another one with --context ({known})")
        }
        KubeconfigError::LoadClusterOfContext(name) => {
            format!("its context names the cluster {name}, which does not exist; add it to clusters")
        }
        KubeconfigError::MissingClusterUrl => {
            "the cluster of its context has no server; add the URL of the API server".to_owned()
        }
        KubeconfigError::ReadConfig(error, path) => {
            format!("{} cannot be read: {}", path.display(), FileError::of(error, path))
        }
        KubeconfigError::Parse(error) => {
            // The message of the parser may repeat a part of the file, which may be a secret.
            let line = error.location().map_or_else(String::new, |place| format!(" (line {})", place.line()));
            format!("it is not a kubeconfig{line}; expected YAML, as `kubectl config view --raw` prints it")
        }
        other => with_sources(other),
    }
}

/// Returns the client for accounts and roles, if Keycloak is configured. Sends nothing.
pub fn accounts(config: &Config, gate: &Gate) -> anyhow::Result<Option<Accounts>> {
    let keycloak = &config.integrations.keycloak;
    let made = || Keycloak::new(keycloak, gate.clone()).context("Keycloak cannot be used");
    Ok(keycloak.enabled.then(made).transpose()?.map(Accounts::new))
}

/// Returns the client for mail to tenants, if a transport is configured. Sends nothing.
pub fn mailer(config: &Config, gate: &Gate) -> anyhow::Result<Option<Mailer>> {
    let mail = &config.integrations.mail;
    let is_on = mail.transport != MailTransport::None;
    is_on.then(|| Mailer::new(mail, gate.clone())).transpose()
}

/// Returns the client for the metrics that show when Instances were used, if a URL is configured. Sends nothing.
pub fn prometheus(config: &Config) -> anyhow::Result<Option<Prometheus>> {
    let prometheus = &config.integrations.prometheus;
    (!prometheus.url.is_empty()).then(|| Prometheus::new(prometheus)).transpose()
}

/// Returns the version of the API server at `url`.
///
/// # Errors
/// When it rejects the account, or does not answer within the limit.
pub async fn version(client: &kube::Client, url: &str, limit: Duration) -> anyhow::Result<String> {
    match timeout(limit, client.apiserver_version()).await {
        Ok(Ok(version)) => Ok(version.git_version),
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => {
            bail!(
                "the API server {url} rejects this account: {}; check the credentials in the kubeconfig",
                status.message
            )
        }
        Ok(Err(kube::Error::Api(status))) => {
            bail!("the API server {url} rejects the request: {}", status.message)
        }
        Ok(Err(error)) => bail!("{}", with_sources(&error)),
        Err(_) => bail!("the API server {url} cannot be reached: {}", no_answer(limit)),
    }
}

/// Waits until the API server at `url` answers, and reports why it does not.
pub async fn connect(client: &kube::Client, url: &Uri, readiness: &Readiness) -> anyhow::Result<()> {
    let mut wait = Duration::from_millis(500);
    let url = url.to_string();
    let say = |why: String| {
        warn!("the API server {url} cannot be reached; trying again: {why}");
        readiness.set_start(format!("{url}: {why}"));
    };
    loop {
        let mut asked = pin!(client.apiserver_version());
        let answer = if let Ok(answer) = timeout(REPORTED_AFTER, &mut asked).await {
            answer
        } else {
            say(no_answer(REPORTED_AFTER));
            asked.await
        };
        match answer {
            Ok(version) => {
                info!(version = version.git_version, "connected to the API server");
                return Ok(());
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
                bail!(
                    "the API server rejects this account: {}; check the credentials for {url}",
                    status.message
                )
            }
            Err(error) => {
                say(why(&error));
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(Duration::from_secs(10));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{MailConfig, MailTls, PrometheusConfig};

    #[tokio::test]
    async fn the_fault_of_a_kubeconfig_is_named_once_with_its_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kubeconfig");
        let shown = path.display();
        let whole = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n\
                     contexts: [{name: a, context: {cluster: c, user: u}}, {name: b, context: {cluster: d, user: u}}]\n\
                     users: [{name: u, user: {token: s3cret}}]\n";
        for (content, context, expected) in [
            (None, None, "read: it does not exist; create it, or correct the path"),
            (Some("users: [s3cret"), None, "read: it is not a kubeconfig"),
            (Some("users: s3cret"), None, "read: it is not a kubeconfig"),
            (Some(whole), None, "used: it has no current-context; pass --context NAME (it has a, b)"),
            (
                Some(whole),
                Some("z"),
                "used: there is no context z; pass the name of another one with --context (it has a, b)",
            ),
            (
                Some(whole),
                Some("b"),
                "used: its context names the cluster d, which does not exist; add it to clusters",
            ),
        ] {
            if let Some(content) = content {
                std::fs::write(&path, content).expect("written");
            }
            let context = context.map(str::to_owned);
            let options = ClusterOptions { kubeconfig: Some(path.clone()), context, namespace: None };
            let error = kubeconfig(&options).await.expect_err("it is wrong");
            let text = format!("{error:#}");
            assert!(text.starts_with(&format!("--kubeconfig {shown} cannot be {expected}")), "{text}");
            assert!(!text.contains("s3cret") && text.lines().count() == 1, "{text}");
            assert_eq!(text.matches(&shown.to_string()).count(), 1, "{text}");
        }
        let namespace = Some("A b".to_owned());
        let error = kubeconfig(&ClusterOptions { namespace, ..ClusterOptions::default() }).await;
        let text = error.expect_err("it is wrong").to_string();
        assert_eq!(text, "--namespace \"A b\" is not a valid namespace name");
    }

    #[test]
    fn a_missing_cluster_is_explained_by_the_file_that_was_meant() {
        let read = |kind: ErrorKind| KubeconfigError::ReadConfig(kind.into(), "/nowhere/config".into());
        let missing = "no cluster is configured: pass --kubeconfig FILE, set KUBECONFIG, or run in a pod";
        let no_folder = "the kubeconfig /nowhere/config cannot be read: its folder does not exist; create it, or correct the path";
        let denied = "the kubeconfig /nowhere/config cannot be read: this process has no permission to read it; make it readable for \
                      the user of this process";
        let context = "the kubeconfig in KUBECONFIG cannot be used: it has no current-context; pass --context NAME (list them \
                       with `kubectl config get-contexts`)";
        let pod = "neither a kubeconfig nor the service account of this pod can be used: both";
        for (error, set, expected) in [
            (read(ErrorKind::NotFound), "", missing),
            (KubeconfigError::FindPath, "", missing),
            (read(ErrorKind::NotFound), "KUBECONFIG", no_folder),
            (read(ErrorKind::PermissionDenied), "", denied),
            (KubeconfigError::CurrentContextNotSet, "KUBECONFIG", context),
            (read(ErrorKind::NotFound), "KUBERNETES_SERVICE_HOST", pod),
        ] {
            let both = std::io::Error::other("both");
            let variable = |name: &str| (name == set).then(|| OsString::from("x"));
            assert_eq!(no_cluster(&error, &both, variable), expected, "{error} {set}");
        }
    }

    #[test]
    fn the_error_of_a_server_names_its_key_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        let smtp = || MailConfig {
            transport: MailTransport::Smtp,
            host: "smtp.example.com".to_owned(),
            from: "labs@example.com".to_owned(),
            tls: MailTls::None,
            ..MailConfig::default()
        };
        let empty = file("empty", "");
        file("smtp-config.yaml", "smtpServer: [");
        let here = folder.path().display().to_string();
        let wrong = [
            MailConfig { from: "nobody".to_owned(), ..smtp() },
            MailConfig { username: "u".to_owned(), password_file: "/nowhere".to_owned(), ..smtp() },
            MailConfig { username: "u".to_owned(), password_file: empty.clone(), ..smtp() },
            MailConfig { ca_file: empty.clone(), ..smtp() },
            MailConfig { config_dir: "/nowhere".to_owned(), ..smtp() },
            MailConfig { config_dir: here.clone(), ..smtp() },
            MailConfig { template_dir: here.clone(), ..smtp() },
            MailConfig { time_zone: "Europe/Atlantis".to_owned(), ..smtp() },
            MailConfig { transport: MailTransport::File, folder: empty.clone(), ..smtp() },
            MailConfig { transport: MailTransport::File, folder: here, from: String::new(), ..smtp() },
        ];
        for mail in wrong {
            let mut config = Config::default();
            config.integrations.mail = mail.clone();
            let error = format!("{:#}", mailer(&config, &Gate::open()).expect_err("it is wrong"));
            assert!(error.starts_with("integrations.mail"), "{error}");
            assert_eq!(error.matches("integrations.").count(), 1, "{error}");
            for text in [&mail.password_file, &mail.ca_file].into_iter().filter(|text| !text.is_empty()) {
                assert_eq!(error.matches(text.as_str()).count(), 1, "{error}");
            }
        }
        for prometheus in [
            PrometheusConfig { url: "http://[".to_owned(), ..PrometheusConfig::default() },
            PrometheusConfig { url: "https://p".to_owned(), ca_file: empty, ..PrometheusConfig::default() },
        ] {
            let mut config = Config::default();
            config.integrations.prometheus = prometheus;
            let error = format!("{:#}", super::prometheus(&config).expect_err("it is wrong"));
            assert!(error.starts_with("integrations.prometheus"), "{error}");
            assert_eq!(error.matches("integrations.").count(), 1, "{error}");
        }
    }
}
