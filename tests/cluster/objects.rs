//! The requests that the test cluster itself sends: readiness checks, CRDs, nodes.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, Secret, ServiceAccount};
use k8s_openapi::api::networking::v1::IngressClass;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::standin::PROVISIONER;

/// The label of nodes that run virtual machines.
const RUNS_MACHINES: &str = "kubevirt.io/schedulable";

/// Whether etcd reports that it can be read and written.
pub fn etcd_healthy(address: SocketAddr) -> bool {
    let limit = Duration::from_secs(2);
    let ask = || -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_read_timeout(Some(limit))?;
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(4_096).read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(r#""health":"true""#))
}

/// Succeeds when the API server reports that it is ready.
pub async fn apiserver_ready(client: Client) -> Result<()> {
    client.request_text(http::Request::get("/readyz").body(Vec::new())?).await?;
    Ok(())
}

/// Succeeds when the controller manager works, that is, when it has created the service account that pods need.
pub async fn service_accounts_work(client: Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
    accounts.get("default").await.context("no default service account yet")?;
    Ok(())
}

/// Succeeds when every node is ready for pods.
pub async fn nodes_ready(client: Client) -> Result<()> {
    let nodes = Api::<Node>::all(client).list(&ListParams::default()).await?;
    for node in nodes {
        let tainted = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).next().is_some();
        let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        if tainted || !conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True") {
            bail!("node {} is not ready", node.name_any());
        }
    }
    Ok(())
}

/// Creates the storage classes and the Ingress class of a cluster, and the import Secret of CDI.
pub async fn furnish(client: &Client) -> Result<()> {
    let params = PostParams::default();
    let storage: Api<StorageClass> = Api::all(client.clone());
    for (name, is_default) in [("standard", true), ("rook-nfs", false)] {
        let default = json!({"storageclass.kubernetes.io/is-default-class": is_default.to_string()});
        let class = json!({
            "metadata": {"name": name, "annotations": default}, "provisioner": PROVISIONER,
        });
        storage.create(&params, &serde_json::from_value(class)?).await?;
    }
    let ingress: Api<IngressClass> = Api::all(client.clone());
    let default = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    let class = json!({
        "metadata": {"name": "test", "annotations": default}, "spec": {"controller": "example.org/test"},
    });
    ingress.create(&params, &serde_json::from_value(class)?).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secret = json!({"metadata": {"name": "registry-credentials-cdi"}});
    secrets.create(&params, &serde_json::from_value(secret)?).await?;
    Ok(())
}

/// Gives all nodes the label of nodes that run virtual machines.
pub async fn mark_nodes(client: &Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let label = json!({"metadata": {"labels": {(RUNS_MACHINES): "true"}}});
    for node in nodes.list(&ListParams::default()).await? {
        nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(&label)).await?;
    }
    Ok(())
}

/// Creates the nodes that kwok simulates. `machines` is whether they have the label of nodes that run virtual machines.
pub async fn create_nodes(client: &Client, count: usize, machines: bool) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in 0..count {
        let name = format!("node-{number}");
        let mut labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"});
        if machines {
            labels[RUNS_MACHINES] = "true".into();
        }
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        }))?;
        nodes.create(&PostParams::default(), &node).await.with_context(|| format!("creating {name}"))?;
    }
    Ok(())
}

/// Applies the CRDs in some files and waits until they are established.
pub async fn install_crds(client: &Client, files: &[PathBuf]) -> Result<()> {
    let mut crds: Vec<CustomResourceDefinition> = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        let parsed = serde_saphyr::from_multiple(&text);
        crds.extend(parsed.map_err(|error| anyhow!("{} holds no CRDs: {error}", file.display()))?);
    }
    try_join_all(crds.iter().map(|crd| install_crd(client, crd))).await?;
    Ok(())
}

async fn install_crd(client: &Client, crd: &CustomResourceDefinition) -> Result<()> {
    let (api, name) = (Api::<CustomResourceDefinition>::all(client.clone()), crd.name_any());
    let params = PatchParams::apply("test-cluster").force();
    api.patch(&name, &params, &Patch::Apply(crd))
        .await
        .with_context(|| format!("applying the CRD {name}"))?;
    let established = await_condition(api, &name, conditions::is_crd_established());
    let in_time = tokio::time::timeout(Duration::from_secs(30), established).await;
    in_time.map_err(|_| anyhow!("the CRD {name} is not served after 30 s"))??;
    Ok(())
}
