//! temporary
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigDuration(pub Duration);
impl From<ConfigDuration> for Duration {
    fn from(d: ConfigDuration) -> Self {
        d.0
    }
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    pub selector: BTreeMap<String, String>,
    pub resync: Resync,
    pub leader_election: LeaderElection,
    pub server: Server,
    pub log: Log,
    pub controllers: Controllers,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resync {
    pub min: ConfigDuration,
    pub max: ConfigDuration,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderElection {
    pub enabled: bool,
    pub namespace: String,
    pub name: String,
    pub lease_duration: ConfigDuration,
    pub renew_deadline: ConfigDuration,
    pub retry_period: ConfigDuration,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Server {
    pub metrics: ListenAddress,
    pub health: ListenAddress,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ListenAddress(pub Option<SocketAddr>);
impl ListenAddress {
    pub fn address(&self) -> Option<SocketAddr> {
        self.0
    }
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LogFormat {
    Text,
    Json,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Log {
    pub format: LogFormat,
    pub filter: String,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Controllers {
    pub instance: InstanceConfig,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceConfig {
    pub enabled: bool,
    pub concurrency: usize,
    pub website_base_url: String,
    pub instances_auth_url: String,
    pub webssh_master_key_file: String,
    pub container_images: ContainerImages,
    pub access: Access,
    pub vm_login: VmLogin,
    pub gateway_api: GatewayApi,
    pub local_vm: LocalVm,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerImages {
    pub tag: String,
    pub x_vnc: String,
    pub websockify: String,
    pub content_downloader: String,
    pub content_uploader: String,
    pub instmetrics_server_endpoint: String,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AccessMode {
    Shared,
    None,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Access {
    pub mode: AccessMode,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VmLogin {
    pub password_hash: String,
    pub ssh_password: bool,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayApi {
    pub enabled: bool,
    pub parent_refs: Vec<ParentRef>,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ParentRef {
    pub name: String,
    pub namespace: String,
}
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalVm {
    pub enabled: bool,
    pub namespaces: Vec<String>,
}

impl<'de> Deserialize<'de> for ConfigDuration {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let s = String::deserialize(d)?;
        let n: u64 = s[..s.len() - 1].parse().unwrap();
        Ok(Self(Duration::from_secs(match s.chars().last() {
            Some('s') => n,
            Some('m') => n * 60,
            _ => n * 3600,
        })))
    }
}
fn s(n: u64) -> ConfigDuration {
    ConfigDuration(Duration::from_secs(n))
}
impl Default for Config {
    fn default() -> Self {
        Self {
            selector: BTreeMap::from([("crownlabs.polito.it/operator-selector".into(), "production".into())]),
            resync: Resync::default(),
            leader_election: LeaderElection::default(),
            server: Server::default(),
            log: Log::default(),
            controllers: Controllers::default(),
        }
    }
}
impl Default for Resync {
    fn default() -> Self {
        Self { min: s(3600), max: s(7200) }
    }
}
impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            enabled: true,
            namespace: "crownlabs-system".into(),
            name: "crownlabs-controller-manager".into(),
            lease_duration: s(15),
            renew_deadline: s(10),
            retry_period: s(2),
        }
    }
}
impl Default for Server {
    fn default() -> Self {
        Self {
            metrics: ListenAddress(Some(([0, 0, 0, 0], 8080).into())),
            health: ListenAddress(Some(([0, 0, 0, 0], 8081).into())),
        }
    }
}
impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Text, filter: "info".into() }
    }
}
impl Default for Controllers {
    fn default() -> Self {
        Self { instance: InstanceConfig::default() }
    }
}
impl Default for InstanceConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            concurrency: 16,
            website_base_url: "crownlabs.example.com".into(),
            instances_auth_url: "https://crownlabs.example.com/auth".into(),
            webssh_master_key_file: String::new(),
            container_images: ContainerImages::default(),
            access: Access::default(),
            vm_login: VmLogin::default(),
            gateway_api: GatewayApi::default(),
            local_vm: LocalVm::default(),
        }
    }
}
impl Default for ContainerImages {
    fn default() -> Self {
        Self {
            tag: "latest".into(),
            x_vnc: "crownlabs/tigervnc".into(),
            websockify: "crownlabs/websockify".into(),
            content_downloader: "crownlabs/content-downloader".into(),
            content_uploader: "crownlabs/content-uploader".into(),
            instmetrics_server_endpoint: "instmetrics:9090".into(),
        }
    }
}
impl Default for Access {
    fn default() -> Self {
        Self { mode: AccessMode::Shared }
    }
}
impl Default for VmLogin {
    fn default() -> Self {
        Self{password_hash:"$6$rounds=4096$tBS1sNBpnw6feehB$lS9b7VKH6WMAFOB0SrHCgjD2BKs9CegDe51EiMRWbxQeCVnoGL4u0jNaRsYhvVoBFaRlXZkNsxfFhXvCBaNeQ.".into(),ssh_password:false}
    }
}
impl Default for GatewayApi {
    fn default() -> Self {
        Self { enabled: false, parent_refs: vec![] }
    }
}
impl Default for LocalVm {
    fn default() -> Self {
        Self { enabled: false, namespaces: vec![] }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct ConfigError;
impl Config {
    pub fn load(p: &std::path::Path) -> Result<Self, ConfigError> {
        Self::parse("", &std::fs::read_to_string(p).unwrap())
    }
    pub fn parse(_: &str, t: &str) -> Result<Self, ConfigError> {
        Ok(serde_saphyr::from_str(t).unwrap())
    }
    pub fn selector_string(&self) -> String {
        self.selector.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",")
    }
}
pub fn default_document() -> String {
    todo!()
}
pub fn schema() -> serde_json::Value {
    todo!()
}
