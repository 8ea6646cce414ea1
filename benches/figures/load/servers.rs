//! The environment of the daemon under load: a configuration with every loop on, and the servers that the loops call.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::exam_server::{Answer, ExamServer};
use super::node::Node;
use super::world::World;
use crate::harness::{Bench, now, uses};
use cluster::prometheus::{PrometheusServer, Samples};
use cluster::reserve_port;
use cluster::smtp::SmtpSink;
use cluster::sshd::key_pair;

/// The path on the exam server that keeps an Instance.
const EXAM: &str = "kept";
/// The time between two samples of Prometheus, in seconds: two in each step of the daemon's queries.
const STEP: usize = 120;
/// The seconds for which Prometheus has samples: before the start, and after it. No run may take longer.
const SAMPLES_BEFORE: i64 = 3_600;
const SAMPLES_AFTER: i64 = 10 * 3_600;

/// The servers, which stop when this is dropped, and the configuration of a daemon that uses them.
pub struct Servers {
    /// It has usage data of all Instances whose Template needs it.
    pub prometheus: PrometheusServer,
    /// The whole configuration of the daemon.
    pub config: String,
    _mail: SmtpSink,
    exams: ExamServer,
    _node: Node,
    webhook_port: u16,
    /// The end of the samples.
    end: Instant,
}

impl Servers {
    /// Starts them for up to `instances` Instances. Keys and files of the daemon are in `folder`.
    pub async fn start(folder: &Path, world: &World, instances: usize) -> Result<Self> {
        eprintln!("Prometheus with the uses of {instances} Instances …");
        let prometheus = PrometheusServer::start(&samples(world, instances))?;
        let (mail, exams) = (SmtpSink::start()?, ExamServer::start());
        exams.set(EXAM, Answer::Body(200, "{}"));
        let node = Node::start().await?;
        let key = key_pair(&folder.join("web-ssh-key"))?;
        let host_keys = folder.join("host-keys");
        fs::create_dir_all(&host_keys)?;
        let [webhook_port, web_ssh_port] = [reserve_port()?, reserve_port()?];
        let config = format!(
            "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {{crownlabs.polito.it/operator-selector: bench}}
server:
  metrics: \"127.0.0.1:0\"
  health: \"127.0.0.1:0\"
  keycloakEvents: {{listen: \"127.0.0.1:0\"}}
  webhook: {{enabled: true, listen: \"127.0.0.1:{webhook_port}\"}}
controllers:
  tenant: {{quotaCaps: {{cpu: 0, memory: \"0\", instances: 0}}}}
  instance: {{websshMasterKeyFile: \"{key}.pub\"}}
  publicExposure: {{ipPool: [10.99.0.0/24]}}
  snapshot: {{vmRegistry: registry.example.org/snapshots, vmRegistrySecret: registry}}
  inactivity: {{enabled: true}}
  expiration: {{enabled: true}}
  termination: {{enabled: true, allowCidrs: [127.0.0.0/8]}}
  submission: {{enabled: true}}
  bastion: {{enabled: true, authorizedKeysFile: \"{folder}/authorized-keys\", hostKeys: {{folder: \"{host_keys}\"}}}}
  sshTracker: {{enabled: true}}
  webSsh: {{enabled: true, listen: \"127.0.0.1:{web_ssh_port}\", privateKeyFile: \"{key}\"}}
{of_node}integrations:
  mail: {{transport: smtp, host: 127.0.0.1, port: {mail}, tls: none, from: labs@example.org}}
  prometheus: {{url: \"{prometheus}\"}}
",
            key = key.display(),
            folder = folder.display(),
            host_keys = host_keys.display(),
            mail = mail.port(),
            prometheus = prometheus.url(),
            of_node = node.controllers(),
        );
        let end = Instant::now() + Duration::from_secs(SAMPLES_AFTER.unsigned_abs());
        Ok(Self { prometheus, config, _mail: mail, exams, _node: node, webhook_port, end })
    }

    /// The status URL of an exam that is in progress.
    pub fn exam_url(&self) -> String {
        self.exams.url(EXAM)
    }

    /// Fails if the samples of Prometheus have ended, because the Instances would count as unused.
    pub fn check(&self) -> Result<()> {
        anyhow::ensure!(Instant::now() < self.end, "the samples of Prometheus have ended: use fewer steps");
        Ok(())
    }

    /// Registers the webhooks in the API server, and waits until the API server calls the running daemon.
    pub async fn register_webhooks(&self, bench: &Bench) -> Result<()> {
        bench.cluster.apply(&self.webhooks()?)?;
        let begin = Instant::now();
        let probe = json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant", "metadata": {"name": "probe"},
            "spec": {"firstName": "A", "lastName": "B", "email": "probe@example.org"},
        });
        loop {
            let is_registered = bundles(bench)?.iter().all(|bundle| !bundle.is_empty());
            let path = "/apis/crownlabs.polito.it/v1alpha2/tenants?dryRun=All";
            let answer = bench.send("POST", path, &probe).await;
            if is_registered && answer.is_ok() {
                return Ok(());
            }
            let late = begin.elapsed() > Duration::from_mins(2);
            if late {
                answer.context("the webhooks do not answer")?;
                anyhow::bail!("the webhooks have no certificate authority");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The project's webhook configurations, for a server on this machine instead of a Service.
    fn webhooks(&self) -> Result<String> {
        let text =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/40-webhooks.yaml"))?;
        let service = "service: {name: crownlabs-webhook, namespace: crownlabs-system, path: ";
        let lines = text.lines().map(|line| match line.trim_start().strip_prefix(service) {
            Some(path) => {
                format!("    url: \"https://127.0.0.1:{}{}\"", self.webhook_port, path.trim_end_matches('}'))
            }
            None => line.replace("operator-selector=production", "operator-selector=bench"),
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        let is_wanted = |part: &&str| !part.contains("kind: Service\n");
        Ok(text.split("\n---\n").filter(is_wanted).collect::<Vec<_>>().join("\n---\n"))
    }
}

/// The certificate authorities in the webhook configurations; empty if the daemon has not written them yet.
fn bundles(bench: &Bench) -> Result<Vec<String>> {
    let mut bundles = Vec::new();
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let object = bench.cluster.get(kind, "default", "crownlabs-webhook")?.unwrap_or_default();
        let webhooks = object["webhooks"].as_array().cloned().unwrap_or_default();
        let bundle =
            |webhook: &Value| webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned();
        bundles.extend(webhooks.iter().map(bundle));
    }
    Ok(bundles)
}

/// All sources answer, and every Instance whose Template stops unused Instances is in use all the time.
fn samples(world: &World, instances: usize) -> Samples {
    let first = now().as_second() - SAMPLES_BEFORE;
    let times = (first..first + SAMPLES_BEFORE + SAMPLES_AFTER).step_by(STEP);
    let watched = (0..instances).filter(|n| world.is_watched(*n));
    uses(&times, first, watched.map(|n| (world.namespace(n), World::name(n))))
}
