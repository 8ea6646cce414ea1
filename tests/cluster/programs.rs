//! The programs of the control plane and their arguments.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::assets::{Assets, is_oldest};
use super::certificates::Certificates;
use super::kubeconfig::{self, Credentials};
use super::options::TrustedIssuer;
use super::ports::Ports;
use super::processes::Process;
use super::{audit, issuer};

/// Controllers that have nothing to do on a test cluster, but watch many objects.
const IDLE_CONTROLLERS: [&str; 16] = [
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "cronjob-controller",
    "daemonset-controller",
    "endpointslice-mirroring-controller",
    "ephemeral-volume-controller",
    "horizontal-pod-autoscaler-controller",
    "legacy-serviceaccount-token-cleaner-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller",
    "replicationcontroller-controller",
    "resourceclaim-controller",
    "statefulset-controller",
    "ttl-controller",
    "validatingadmissionpolicy-status-controller",
];

/// More idle controllers, which the oldest supported Kubernetes does not have.
const NEWER_IDLE_CONTROLLERS: [&str; 3] = [
    "podcertificaterequest-cleaner-controller",
    "selinux-warning-controller",
    "volumeattributesclass-protection-controller",
];

/// The settings for the programs of one cluster.
pub struct Programs {
    /// The paths of the programs.
    pub assets: Assets,
    /// The folder of the cluster.
    pub dir: PathBuf,
    /// Its certificates.
    pub certificates: Certificates,
    /// Its ports.
    pub ports: Ports,
    /// Whether the API server guards owner references.
    pub owner_references_guarded: bool,
    /// Whether the API server keeps the data sources of claims in other namespaces.
    pub cross_namespace_volumes: bool,
    /// Whether they save processor time.
    pub spare: bool,
    /// More issuers of user tokens.
    pub issuers: Vec<TrustedIssuer>,
    /// The interval at which quotas are checked again.
    pub quota_period: Duration,
    /// Whether webhooks are called at the addresses of their pods.
    pub node: bool,
}

impl Programs {
    /// The URL of the API server.
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.kube_apiserver.number())
    }

    /// The address of etcd for the API server.
    pub fn etcd_address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.ports.etcd.number()).into()
    }

    /// The authority of the certificates.
    pub fn authority(&self) -> PathBuf {
        self.certificates.file("ca.crt")
    }

    /// The audit log of the API server.
    pub fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }

    /// Issues a client certificate for `user` and writes a kubeconfig for it, named after the user.
    pub fn kubeconfig(&self, user: &str, group: Option<&str>) -> Result<PathBuf> {
        let files = self.certificates.client(user, group)?;
        let path = self.dir.join(format!("{}.kubeconfig", user.trim_start_matches("system:")));
        let ca = self.certificates.file("ca.crt");
        kubeconfig::write(&path, &self.server(), &ca, &Credentials::Certificate(&files))?;
        Ok(path)
    }

    fn start(&self, name: &'static str, program: &Path, args: &[String]) -> Result<Process> {
        let environment: &[(&str, &str)] = if self.spare { &[("GOGC", "400")] } else { &[] };
        Process::start_with(name, program, args, environment, self.dir.join(format!("{name}.log")))
    }

    /// Starts etcd, without fsync: the data need not survive a power failure.
    pub fn etcd(&self) -> Result<Process> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd.number());
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer.number());
        let args = [
            "--name=test".to_owned(),
            format!("--data-dir={}", self.dir.join("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=test={peer}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        self.start("etcd", &self.assets.etcd, &args)
    }

    /// Starts the API server; it listens on loopback only and appends to the same audit log at each start.
    pub fn kube_apiserver(&self) -> Result<Process> {
        let policy = self.dir.join("audit-policy.yaml");
        fs::write(&policy, audit::POLICY)?;
        let file = |name: &str| self.certificates.file(name).display().to_string();
        let admission = self.dir.join("admission.yaml");
        let shown = self.certificates.client("kube-apiserver-webhook-client", None)?;
        let users = self.dir.join("webhook-users.kubeconfig");
        let user = json!({"client-certificate": shown.certificate, "client-key": shown.key});
        let of_every_server =
            json!({"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]});
        fs::write(&users, of_every_server.to_string())?;
        fs::write(&admission, admission_configuration(&users))?;
        let gates = if self.cross_namespace_volumes { "CrossNamespaceVolumeDataSource=true" } else { "" };
        let plugins = if self.owner_references_guarded { "OwnerReferencesPermissionEnforcement" } else { "" };
        let args = [
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd.number()),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            // The API refuses a loopback address as an endpoint of the `kubernetes` Service.
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--secure-port={}", self.ports.kube_apiserver.number()),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--tls-cert-file={}", file("apiserver.crt")),
            format!("--tls-private-key-file={}", file("apiserver.key")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("service-accounts.pub")),
            format!("--service-account-signing-key-file={}", file("service-accounts.key")),
            format!("--authentication-config={}", self.authentication()?.display()),
            "--authorization-mode=RBAC".to_owned(),
            format!("--enable-admission-plugins={plugins}"),
            format!("--feature-gates={gates}"),
            format!("--admission-control-config-file={}", admission.display()),
            // Enough for more than 60,000 Services, which use the first family unless they request the other.
            "--service-cluster-ip-range=10.0.0.0/16,fd00:10::/112".to_owned(),
            "--allow-privileged=true".to_owned(),
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", self.audit_log().display()),
            // In MB: the reader follows one file, so it must not be rotated.
            "--audit-log-maxsize=1000000".to_owned(),
            "--profiling=false".to_owned(),
            format!("--enable-aggregator-routing={}", self.node),
        ];
        self.start("kube-apiserver", &self.assets.kube_apiserver, &args)
    }

    /// The authentication configuration: the API server accepts user tokens of `issuer.rs` (in place of Keycloak) and
    /// of `issuers`.
    fn authentication(&self) -> Result<PathBuf> {
        let own = TrustedIssuer {
            url: issuer::url(&self.ports),
            authority: self.certificates.file("ca.crt"),
            client: issuer::CLIENT.to_owned(),
        };
        let mut authenticators = Vec::new();
        for TrustedIssuer { url, authority, client } in [own].iter().chain(&self.issuers) {
            let authority = fs::read_to_string(authority)?;
            authenticators.push(json!({
                "issuer": {"url": url, "certificateAuthority": authority, "audiences": [client]},
                "claimMappings": {
                    // No prefix: the user name equals the name of the Tenant.
                    "username": {"claim": issuer::NAME, "prefix": ""},
                    "groups": {"claim": issuer::GROUPS, "prefix": ""},
                },
            }));
        }
        let version = if is_oldest() { "v1beta1" } else { "v1" };
        let configuration = json!({
            "apiVersion": format!("apiserver.config.k8s.io/{version}"),
            "kind": "AuthenticationConfiguration",
            "jwt": authenticators,
        });
        let path = self.dir.join("authentication.yaml");
        fs::write(&path, configuration.to_string())?;
        Ok(path)
    }

    /// Starts the controller manager with its default controllers, or only with those that have something to do here.
    pub fn kube_controller_manager(&self) -> Result<Process> {
        let kubeconfig = self.kubeconfig("system:kube-controller-manager", None)?;
        let file = |name: &str| self.certificates.file(name).display().to_string();
        let newer: &[&str] = if is_oldest() { &[] } else { &NEWER_IDLE_CONTROLLERS };
        let idle: &[&str] = if self.spare { &[&IDLE_CONTROLLERS, newer].concat() } else { &[] };
        let without: String = idle.iter().flat_map(|name| [",-", *name]).collect();
        let args = [
            format!("--controllers=*{without}"),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--root-ca-file={}", file("ca.crt")),
            format!("--service-account-private-key-file={}", file("service-accounts.key")),
            "--use-service-account-credentials=true".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=2000".to_owned(),
            // By default the controllers start one after the other with a pause.
            "--controller-start-interval=0s".to_owned(),
            // Simulated nodes renew no lease.
            "--node-monitor-grace-period=24h".to_owned(),
            "--concurrent-resource-quota-syncs=10".to_owned(),
            format!("--resource-quota-sync-period={}s", self.quota_period.as_secs()),
            "--concurrent-deployment-syncs=10".to_owned(),
            "--concurrent-replicaset-syncs=10".to_owned(),
        ];
        self.start("kube-controller-manager", &self.assets.kube_controller_manager, &args)
    }

    /// Starts the scheduler.
    pub fn kube_scheduler(&self) -> Result<Process> {
        let kubeconfig = self.kubeconfig("system:kube-scheduler", None)?;
        let args = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=2000".to_owned(),
        ];
        self.start("kube-scheduler", &self.assets.kube_scheduler, &args)
    }

    /// Starts kwok with the stages of `stages.yaml`.
    pub fn kwok(&self) -> Result<Process> {
        let kubeconfig = self.kubeconfig("kwok", Some("system:masters"))?;
        let stages = self.dir.join("stages.yaml");
        fs::write(&stages, include_str!("stages.yaml"))?;
        let args = [
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--config={}", stages.display()),
            "--manage-all-nodes=true".to_owned(),
            "--node-lease-duration-seconds=0".to_owned(),
            "--cidr=10.64.0.0/12".to_owned(),
        ];
        self.start("kwok", &self.assets.kwok, &args)
    }
}

/// The admission configuration. It makes the API server present to webhooks the client certificate that a kubeconfig
/// has for their server.
fn admission_configuration(kubeconfig: &Path) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
{}",
        ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"]
            .map(|plugin| format!(
                "- name: {plugin}
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: {}
",
                kubeconfig.display()
            ))
            .concat()
    )
}
