//! The prerequisites of the process: signals, the cluster, Keycloak, mail.

#[cfg(feature = "daemon")]
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use futures::future::{BoxFuture, FutureExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
#[cfg(feature = "daemon")]
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use crate::clients::keycloak::Keycloak;
use crate::clients::mail::Mailer;
use crate::clients::prometheus::Prometheus;
use crate::config::{Config, MailTransport};
use crate::controllers::accounts::Accounts;
use crate::runtime::gate::Gate;

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
    let chosen = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
    let mut config = match (kubeconfig, context) {
        (None, None) => kube::Config::infer()
            .await
            .context("no cluster is configured: pass --kubeconfig FILE, set KUBECONFIG, or run in a pod")?,
        (None, Some(context)) => kube::Config::from_kubeconfig(&chosen)
            .await
            .with_context(|| format!("--context {context} cannot be used"))?,
        (Some(file), _) => {
            let read = Kubeconfig::read_from(file)
                .with_context(|| format!("--kubeconfig {} cannot be read", file.display()))?;
            kube::Config::from_custom_kubeconfig(read, &chosen)
                .await
                .with_context(|| format!("--kubeconfig {} cannot be used", file.display()))?
        }
    };
    if let Some(namespace) = namespace {
        config.default_namespace.clone_from(namespace);
    }
    Ok(config)
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

/// Waits until the API server answers.
pub async fn connect(client: &kube::Client) -> anyhow::Result<()> {
    let mut wait = Duration::from_millis(500);
    loop {
        match client.apiserver_version().await {
            Ok(version) => {
                info!(version = version.git_version, "connected to the API server");
                return Ok(());
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
                anyhow::bail!("the API server rejects this account: {}", status.message)
            }
            Err(error) => {
                let error = crate::runtime::error::with_sources(&error);
                warn!(error, "the API server does not answer; trying again");
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
