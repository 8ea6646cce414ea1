//! The cluster objects that objects in files refer to, for `crownlabs plan -f FILE --kubeconfig FILE`.

use kube::Client;
use serde_json::{Value, json};

use crate::api::Kind;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::workspace::WorkspaceKind;
use crate::controllers::shared::references::MY_DRIVE_SECRET;
use crate::kinds::SecretKind;
use crate::offline::Surroundings;
use crate::runtime::client::each_listed;
use crate::runtime::error::with_sources;
use crate::runtime::merge;
use crate::runtime::plan::KindInfo;

/// Reads these objects. A message reports kinds that cannot be read or are not served.
///
/// # Errors
/// When the API server does not answer.
pub async fn read(client: &Client, namespace: Option<String>) -> anyhow::Result<Surroundings> {
    let mut found = Surroundings { namespace, cluster: Some(Vec::new()), messages: Vec::new() };
    add::<WorkspaceKind>(&mut found, client, "").await?;
    add::<TenantKind>(&mut found, client, "").await?;
    add::<TemplateKind>(&mut found, client, "").await?;
    add::<SharedVolumeKind>(&mut found, client, "").await?;
    // The Tenant loop or an administrator creates this Secret.
    let drives = format!("&fieldSelector=metadata.name%3D{MY_DRIVE_SECRET}");
    add::<SecretKind>(&mut found, client, &drives).await?;
    Ok(found)
}

async fn add<K: Kind>(found: &mut Surroundings, client: &Client, query: &str) -> anyhow::Result<()> {
    let kind = KindInfo::of::<K>();
    let objects = found.cluster.get_or_insert_default();
    let read = |mut object: Value| {
        merge::apply(&mut object, &json!({"apiVersion": kind.api_version(), "kind": K::KIND}));
        objects.push(object);
    };
    match each_listed(client, &kind.path(""), query, read).await {
        Err(kube::Error::Api(status)) => {
            let (plural, message) = (K::PLURAL, &status.message);
            let known = "only the objects in the files are known";
            found.messages.push(format!("the {plural} of the cluster cannot be read, so {known}: {message}"));
            Ok(())
        }
        Err(error) => {
            anyhow::bail!("the {} of the cluster cannot be read: {}", K::PLURAL, with_sources(&error))
        }
        Ok(()) => Ok(()),
    }
}
