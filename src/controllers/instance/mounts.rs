//! The volumes that an environment mounts over NFS or through mirrors: the personal volume of the user (`MyDrive`) and
//! shared volumes.

use super::mirrors;
use super::observe::Observed;
use crate::api::condition::{Condition, MY_DRIVE_READY};
use crate::api::environment::{Environment, SharedVolumeMount};
use crate::api::reason;
use crate::api::requirements::of_volume;
use crate::api::tenancy::is_tenant_namespace;
use crate::config::StorageMode;
use crate::controllers::shared::references::{MY_DRIVE_SECRET, volume_state};
use crate::kinds::SHARED_VOLUME_NAME;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The path where `MyDrive` is mounted.
const MY_DRIVE_PATH: &str = "/media/mydrive";

/// A volume to mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Name of the volume in a Pod or a virtual machine.
    pub volume: String,
    /// The source of the volume.
    pub source: Source,
    /// The path where it is mounted.
    pub path: String,
    /// Whether it is mounted read-only.
    pub read_only: bool,
}

/// The source of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An export of an NFS server.
    Nfs {
        /// The server.
        server: String,
        /// The exported path.
        export: String,
    },
    /// A mirror. Its claim has the name of the volume.
    Mirror,
}

/// The mounts of an environment, or the problem of the first volume that cannot be mounted yet.
pub fn resolve(observed: &Observed, environment: &Environment) -> Result<Vec<Mount>, Problem> {
    let mut mounts = Vec::new();
    if environment.mount_my_drive_volume {
        mounts.push(my_drive(observed, environment)?);
    }
    for (index, mount) in environment.shared_volume_mounts.iter().enumerate() {
        let reference = &mount.shared_volume;
        let volume = observed.shared_volume(reference);
        let state = volume_state(volume.map(AsRef::as_ref), observed.storage());
        if let Some(obstacle) = of_volume(environment, reference, &state) {
            return Err(obstacle.into());
        }
        mounts.extend(volume.map(|volume| Mount {
            volume: match observed.storage() {
                StorageMode::Nfs => format!("{SHARED_VOLUME_NAME}{index}"),
                StorageMode::Mirror => mirrors::name(observed, reference),
            },
            source: match observed.storage() {
                StorageMode::Nfs => Source::Nfs {
                    server: volume.status.server_address.clone(),
                    export: volume.status.export_path.clone(),
                },
                StorageMode::Mirror => Source::Mirror,
            },
            path: mount.mount_path.clone(),
            read_only: is_read_only(observed, mount),
        }));
    }
    Ok(mounts)
}

/// Whether a shared volume is mounted read-only. Managers of the Workspace may always write, because they maintain its
/// material. A Template that a Tenant has written in their own namespace does not grant write access to volumes of
/// others.
fn is_read_only(observed: &Observed, mount: &SharedVolumeMount) -> bool {
    let own = observed.template.as_ref().map_or("", |template| template.namespace());
    let is_foreign = is_tenant_namespace(own) && mount.shared_volume.namespace != own;
    is_foreign || mount.read_only && !observed.owner_is_manager()
}

fn my_drive(observed: &Observed, environment: &Environment) -> Result<Mount, Problem> {
    let namespace = observed.instance.namespace();
    let problem = |message: String| {
        Problem::elsewhere(Component::environment(&environment.name), reason::MY_DRIVE_NOT_FOUND, message)
    };
    let missing = |what: &str| {
        problem(format!("Secret {namespace}/{MY_DRIVE_SECRET} {what}; the environment starts when it exists"))
    };
    let absent = || format!("not found{}", absence(observed));
    if let Some(mirrors) = &observed.mirrors {
        let Some(volume) = mirrors.my_drive.clone() else {
            let message = format!(
                "the mirror of the personal volume in namespace {namespace} {}; the environment starts when it exists",
                absent()
            );
            return Err(problem(message));
        };
        let path = MY_DRIVE_PATH.to_owned();
        return Ok(Mount { volume, source: Source::Mirror, path, read_only: false });
    }
    let Some(secret) = &observed.my_drive else { return Err(missing(&absent())) };
    let field = |key: &str| {
        let value = secret.spec.get(key).and_then(decoded).filter(|value| !value.is_empty());
        value.ok_or_else(|| missing(&format!("has no key {key}")))
    };
    Ok(Mount {
        volume: "mydrive".to_owned(),
        source: Source::Nfs { server: field("server-name")?, export: field("path")? },
        path: MY_DRIVE_PATH.to_owned(),
        read_only: false,
    })
}

/// The reason why the personal volume is absent, as the end of a sentence; empty if it is not known.
fn absence(observed: &Observed) -> String {
    let of = &observed.instance.spec.tenant_ref.name;
    let is_cause = |found: &&Condition| found.type_ == MY_DRIVE_READY && found.status == "False";
    match &observed.tenant {
        Some(tenant) => {
            let cause = tenant.status.conditions.iter().find(is_cause);
            cause.map(|cause| format!(": {}", cause.message)).unwrap_or_default()
        }
        None => format!(": Tenant {of}, the owner of the volume, does not exist"),
    }
}

/// Decodes a base64 value of a Secret to text.
pub fn decoded(value: &str) -> Option<String> {
    // `ByteString` is the wire format of a Secret's values.
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

    fn condition(type_: &str, message: &str) -> Value {
        json!({"type": type_, "status": "False", "reason": "StorageClassNotFound", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn a_waiting_environment_names_the_cause_of_the_missing_volume() {
        let cause =
            "PersistentVolumeClaim drives/ada-drive is not bound: storageclass \"rook-nfs\" not found";
        let environment = json!({"name": "main", "mountMyDriveVolume": true});
        let mut observed = observed(json!([environment]));
        let environment: Environment = object(environment);
        let message = |observed: &Observed| resolve(observed, &environment).expect_err("it waits").message;
        let secret = "Secret tenant-ada/mydrive-info not found";
        assert_eq!(message(&observed), format!("{secret}; the environment starts when it exists"));
        let status =
            json!({"conditions": [condition("Reconciled", "more"), condition("MyDriveReady", cause)]});
        let tenant = json!({"metadata": {"name": "ada"}, "spec": {}, "status": status});
        observed.tenant = Some(Arc::new(object(tenant)));
        assert_eq!(message(&observed), format!("{secret}: {cause}; the environment starts when it exists"));
        observed.tenant = None;
        let absent = ": Tenant ada, the owner of the volume, does not exist; ";
        assert_eq!(message(&observed), format!("{secret}{absent}the environment starts when it exists"));

        let reference = json!({"name": "data", "namespace": "workspace-w"});
        let mount = json!({"sharedVolume": reference, "mountPath": "/mnt/data"});
        let environment = json!({"name": "main", "mountMyDriveVolume": false, "sharedVolumeMounts": [mount]});
        let mut observed = crate::controllers::instance::plan::tests::observed(json!([environment]));
        let status = json!({"conditions": [condition("Reconciled", cause)]});
        let metadata = json!({"name": "data", "namespace": "workspace-w"});
        observed.shared_volumes = vec![Arc::new(object(json!({"metadata": metadata, "status": status})))];
        let problem = resolve(&observed, &object(environment)).expect_err("it waits");
        let expected = format!(
            "environment main: the SharedVolume workspace-w/data that it mounts is not exported yet: {cause}; the \
             environment waits for it"
        );
        assert_eq!(problem.message, expected);
    }

    #[test]
    fn managers_may_write_to_a_shared_volume_and_others_according_to_the_template() {
        let manager: crate::api::tenant::Tenant = object(json!({"metadata": {"name": "ada"}, "spec": {}}));
        // The namespaces of Template and volume, readOnly, whether the owner manages the Workspace, and whether the
        // volume is mounted read-only.
        for (template, volume, read_only, is_manager, expected) in [
            ("workspace-w", "workspace-w", true, false, true),
            ("workspace-w", "workspace-w", false, false, false),
            ("workspace-w", "workspace-w", true, true, false),
            // A Template may mount the volume of another course, even if its manager does not manage that course.
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
