//! NFS mounts of an environment: the personal volume of the user (`MyDrive`) and shared volumes.

use super::observe::Observed;
use crate::api::environment::{Environment, SharedVolumeMount};
use crate::api::reason;
use crate::api::tenancy::is_tenant_namespace;
use crate::controllers::shared::references::MY_DRIVE_SECRET;
use crate::kinds::SHARED_VOLUME_NAME;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The path at which `MyDrive` is mounted.
const MY_DRIVE_PATH: &str = "/media/mydrive";

/// An NFS export to mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Name of the volume in a Pod.
    pub volume: String,
    /// NFS server.
    pub server: String,
    /// Exported path.
    pub export: String,
    /// The path at which it is mounted.
    pub path: String,
    /// Whether it is mounted read-only.
    pub read_only: bool,
}

/// The mounts of an environment, or the problem of the first one that cannot be mounted yet.
pub fn resolve(observed: &Observed, environment: &Environment) -> Result<Vec<Mount>, Problem> {
    let mut mounts = Vec::new();
    if environment.mount_my_drive_volume {
        mounts.push(my_drive(observed, environment)?);
    }
    for (index, mount) in environment.shared_volume_mounts.iter().enumerate() {
        let reference = &mount.shared_volume;
        let name = format!("{}/{}", reference.namespace, reference.name);
        let Some(volume) = observed.shared_volume(reference) else {
            let message = format!("SharedVolume {name} not found; the environment starts when it exists");
            return Err(Problem::elsewhere(
                Component::environment(&environment.name),
                reason::SHARED_VOLUME_NOT_FOUND,
                message,
            ));
        };
        let (server, export) = (&volume.status.server_address, &volume.status.export_path);
        if server.is_empty() || export.is_empty() {
            let message = format!("SharedVolume {name} is not exported yet; the environment waits for it");
            return Err(Problem::waiting(
                Component::environment(&environment.name),
                reason::SHARED_VOLUME_NOT_READY,
                message,
            ));
        }
        mounts.push(Mount {
            volume: format!("{SHARED_VOLUME_NAME}{index}"),
            server: server.clone(),
            export: export.clone(),
            path: mount.mount_path.clone(),
            read_only: is_read_only(observed, mount),
        });
    }
    Ok(mounts)
}

/// Whether a shared volume is mounted read-only. Managers of the Workspace may always write: they maintain its material. A
/// Template that a Tenant has written, in the own namespace, gives nobody a right to write to volumes of others.
fn is_read_only(observed: &Observed, mount: &SharedVolumeMount) -> bool {
    let own = observed.template.as_ref().map_or("", |template| template.namespace());
    if is_tenant_namespace(own) && mount.shared_volume.namespace != own {
        return true;
    }
    mount.read_only && !observed.owner_is_manager()
}

fn my_drive(observed: &Observed, environment: &Environment) -> Result<Mount, Problem> {
    let read = |key: &str| observed.my_drive.as_ref().and_then(|secret| decoded(secret.spec.get(key)?));
    let namespace = observed.instance.namespace();
    let missing = |what: String| {
        let message = format!("{what}; the environment starts when it exists");
        Problem::elsewhere(Component::environment(&environment.name), reason::MY_DRIVE_NOT_FOUND, message)
    };
    if observed.my_drive.is_none() {
        return Err(missing(format!("Secret {namespace}/{MY_DRIVE_SECRET} not found")));
    }
    let field = |key: &str| {
        let missing = || missing(format!("Secret {namespace}/{MY_DRIVE_SECRET} has no key {key}"));
        read(key).filter(|value| !value.is_empty()).ok_or_else(missing)
    };
    Ok(Mount {
        volume: "mydrive".to_owned(),
        server: field("server-name")?,
        export: field("path")?,
        path: MY_DRIVE_PATH.to_owned(),
        read_only: false,
    })
}

/// The text of a value of a Secret, which is base64.
pub fn decoded(value: &str) -> Option<String> {
    // `ByteString` is the wire form of a Secret's values.
    let bytes: k8s_openapi::ByteString = serde_json::from_value(value.into()).ok()?;
    String::from_utf8(bytes.0).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::controllers::instance::plan::tests::observed;

    fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn who_may_write_to_a_shared_volume() {
        let manager: crate::api::tenant::Tenant = object(json!({"metadata": {"name": "ada"}, "spec": {}}));
        // The namespaces of Template and volume, readOnly, whether the owner manages the Workspace, and whether it is
        // mounted read-only.
        for (template, volume, read_only, is_manager, expected) in [
            ("workspace-w", "workspace-w", true, false, true),
            ("workspace-w", "workspace-w", false, false, false),
            ("workspace-w", "workspace-w", true, true, false),
            // A Template may mount the volume of another course, whoever manages that.
            ("workspace-x", "workspace-w", false, false, false),
            ("workspace-x", "workspace-w", true, false, true),
            ("tenant-ada", "workspace-w", false, false, true),
            ("tenant-ada", "workspace-w", false, true, true),
            ("tenant-ada", "tenant-ada", false, false, false),
            ("tenant-ada", "tenant-ada", true, false, true),
        ] {
            let reference = json!({"name": "data", "namespace": volume});
            let mount = json!({"sharedVolume": reference, "mountPath": "/mnt/data", "readOnly": read_only});
            let environment =
                json!({"name": "main", "mountMyDriveVolume": false, "sharedVolumeMounts": [mount]});
            let mut observed = observed(json!([environment]));
            if let Some(found) = observed.template.as_mut().map(Arc::make_mut) {
                found.metadata.namespace = template.into();
            }
            observed.managers.extend(is_manager.then(|| Arc::new(manager.clone())));
            observed.shared_volumes = vec![Arc::new(object(json!({
                "metadata": {"name": "data", "namespace": volume},
                "status": {"serverAddress": "nfs", "exportPath": "/data"},
            })))];
            let environment: Environment = object(environment);
            let mounts = resolve(&observed, &environment).expect("it can be mounted");
            let case = format!("{template} {volume} {read_only} {is_manager}");
            assert_eq!(mounts.iter().map(|mount| mount.read_only).collect::<Vec<_>>(), [expected], "{case}");
        }
    }
}
