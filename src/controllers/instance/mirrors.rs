//! The mirrors of shared volumes in the namespace of an Instance. Its environments share them. The mirror of a personal
//! volume belongs to the tenant loop.

use std::collections::BTreeSet;

use super::children::wave;
use super::environment::EnvironmentContext;
use super::observe::Observed;
use super::plan::Plan;
use super::workload::Workload;
use crate::api::labels;
use crate::api::names::check_dns_label;
use crate::api::reference::GenericRef;
use crate::config::StorageMode;
use crate::controllers::shared::children::{Child, Parent};
use crate::controllers::shared::mirrors::{fault, is_of, origin, spec, volume_name};
use crate::kinds::{DeploymentKind, PersistentVolumeClaimKind, VirtualMachineKind};
use crate::runtime::ObjectKey;
use crate::runtime::plan::{Desired, KindInfo};

/// How the volumes of an Instance are mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrors {
    /// The storage class of new mirrors.
    pub class: String,
    /// The name of the mirror of the personal volume in the namespace of the Instance, if it exists.
    pub my_drive: Option<String>,
}

impl Observed {
    /// How volumes are mounted into new workloads.
    pub fn storage(&self) -> StorageMode {
        if self.mirrors.is_some() { StorageMode::Mirror } else { StorageMode::Nfs }
    }
}

/// The name of the mirror of a shared volume. An existing one keeps its name, as a Go operator has made it.
pub fn name(observed: &Observed, volume: &GenericRef) -> String {
    let (instance, origin) = (&observed.instance, origin(volume));
    let existing = observed.children.of::<PersistentVolumeClaimKind>().filter(|claim| {
        // The name is also the name of a volume in a pod.
        let is_valid = check_dns_label(claim.name()).is_ok();
        is_valid && claim.is_controlled_by(instance) && is_of(claim.spec.data_source_ref.as_ref(), &origin)
    });
    let existing = existing.map(|claim| claim.name().to_owned()).min();
    existing.unwrap_or_else(|| volume_name(volume, instance.name()))
}

/// The mirrors that the workload of an environment mounts, and their origins. A workload that exists keeps its volumes.
fn needed(context: &EnvironmentContext<'_>) -> Vec<(String, ObjectKey)> {
    let mounts = &context.environment.shared_volume_mounts;
    // A virtual machine of an exam has no cloud-init document, which mounts the volumes.
    let has_mounts = context.is_standard() || !context.is_machine();
    let volumes: BTreeSet<&GenericRef> =
        mounts.iter().map(|mount| &mount.shared_volume).filter(|_| has_mounts).collect();
    let mirrors = volumes.into_iter().map(|volume| (name(context.observed, volume), origin(volume)));
    let exists = context.workload(None).is_own();
    mirrors.filter(|(name, _)| !exists || mounts_mirror(context, name)).collect()
}

/// Whether the existing workload of an environment mounts the mirror with this name. A `VirtualMachineInstance` is not
/// started again with the same volumes.
fn mounts_mirror(context: &EnvironmentContext<'_>, name: &str) -> bool {
    match Workload::of(context.environment) {
        Workload::Deployment => context.own::<DeploymentKind>().is_some_and(|deployment| {
            let volumes = &deployment.spec.template.spec.volumes;
            volumes.iter().any(|volume| volume.name == name)
        }),
        Workload::VirtualMachine => context.own::<VirtualMachineKind>().is_some_and(|machine| {
            let filesystems = &machine.spec.template.spec.domain.devices.filesystems;
            filesystems.iter().any(|filesystem| filesystem.name == name)
        }),
        Workload::VirtualMachineInstance => false,
    }
}

/// The mirror of a claim.
fn mirror<'a>(context: &EnvironmentContext<'a>, class: &'a str, name: &str, origin: ObjectKey) -> Child<'a> {
    let parent = Parent { labels: [].into(), ..context.parent.clone() }.with(&[
        (labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE),
        (labels::VOLUME_TYPE, labels::VOLUME_TYPE_MIRROR),
    ]);
    let body = move || spec(class, &origin);
    parent.child::<PersistentVolumeClaimKind>(name, &context.component(), wave::DEPENDENCIES, body)
}

/// Plans the mirrors of an environment, if volumes are mirrored.
pub fn plan_mirrors(context: &EnvironmentContext<'_>, plan: &mut Plan) {
    let observed = context.observed;
    let Some(Mirrors { class, .. }) = &observed.mirrors else { return };
    for (name, origin) in needed(context) {
        let kind = KindInfo::of::<PersistentVolumeClaimKind>();
        let is_planned = |made: &Desired| made.kind == kind && made.key.name == name;
        if plan.ensure.iter().any(is_planned) {
            continue;
        }
        if let Some(existing) = observed.own::<PersistentVolumeClaimKind>(&name) {
            let source = existing.spec.data_source_ref.as_ref();
            plan.problems.extend(fault(&ObjectKey::of(existing), source, &origin, context.component()));
        }
        mirror(context, class, &name, origin).ensure(plan);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::shared_volume::SharedVolume;
    use crate::config::InstanceConfig;
    use crate::controllers::instance::plan::tests::{environment, observed, owned, plan};
    use crate::fixtures::object;
    use crate::kinds::{PersistentVolumeClaim, VirtualMachineInstanceKind};
    use crate::runtime::merge;

    /// The name of the mirror of the shared volume of [`mirrored`] for its Instance.
    fn ours() -> String {
        volume_name(&GenericRef::new("workspace-w", "data"), "my.lab")
    }

    /// An Instance that mounts `MyDrive`, and a shared volume twice, with mirrors.
    fn mirrored(kind: &str, more: &Value) -> Observed {
        let reference = json!({"name": "data", "namespace": "workspace-w"});
        let mount = |path: &str, read_only| json!({"sharedVolume": reference, "mountPath": path, "readOnly": read_only});
        let mut environment = environment(
            "main",
            kind,
            json!({
                "mountMyDriveVolume": true,
                "sharedVolumeMounts": [mount("/mnt/data", true), mount("/mnt/more", false)],
            }),
        );
        merge::apply(&mut environment, more);
        let volume: Arc<SharedVolume> = object(json!({
            "metadata": {"name": "data", "namespace": "workspace-w"}, "status": {"pvName": "pv"},
        }));
        let mirrors =
            Mirrors { class: "pvc-mirror".to_owned(), my_drive: Some("ada-drive-mirror".to_owned()) };
        Observed { mirrors: Some(mirrors), shared_volumes: vec![volume], ..observed(json!([environment])) }
    }

    fn planned(observed: &Observed) -> Plan {
        plan(observed, &InstanceConfig::classic(), Timestamp::UNIX_EPOCH)
    }

    fn made(plan: &Plan, kind: &str) -> Value {
        let found = plan.ensure.iter().find(|desired| desired.kind.kind == kind).expect("planned");
        found.manifest.as_ref().expect("new").json().clone()
    }

    #[test]
    fn a_container_mounts_mirrors_and_gets_the_mirror_of_a_shared_volume_once() {
        let plan = planned(&mirrored("Standalone", &json!({})));
        assert_eq!(plan.problems, []);
        let name = ours();
        let claims = plan.ensure.iter().filter(|desired| desired.kind.kind == "PersistentVolumeClaim");
        assert_eq!(claims.count(), 1);
        let claim = made(&plan, "PersistentVolumeClaim");
        assert_eq!(
            (&claim["metadata"]["name"], &claim["metadata"]["namespace"]),
            (&json!(name), &json!("tenant-ada"))
        );
        let labels = json!({
            "crownlabs.polito.it/managed-by": "instance", "crownlabs.polito.it/volume-type": "mirror",
        });
        assert_eq!(claim["metadata"]["labels"], labels);
        let source = json!({
            "kind": "PersistentVolumeClaim", "name": "shvol-data", "namespace": "workspace-w",
        });
        assert_eq!(claim["spec"]["dataSourceRef"], source);
        let pod = &made(&plan, "Deployment")["spec"]["template"]["spec"];
        let of = |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        assert_eq!(pod["volumes"].as_array().expect("volumes")[1..], [of("ada-drive-mirror"), of(&name)]);
        let mounts = json!([
            {"name": "ada-drive-mirror", "mountPath": "/media/mydrive"},
            {"name": name, "mountPath": "/mnt/data", "readOnly": true},
            {"name": name, "mountPath": "/mnt/more"},
        ]);
        let found = pod["containers"][0]["volumeMounts"].as_array().expect("mounts");
        assert_eq!(Value::from(&found[1..]), mounts);
    }

    #[test]
    fn a_virtual_machine_mounts_mirrors_over_virtiofs() {
        let plan = planned(&mirrored("VirtualMachine", &json!({"persistent": true})));
        assert_eq!(plan.problems, []);
        let name = ours();
        let machine = &made(&plan, "VirtualMachine")["spec"]["template"]["spec"];
        let filesystem = |name: &str| json!({"name": name, "virtiofs": {}});
        let expected = json!([filesystem("ada-drive-mirror"), filesystem(&name)]);
        assert_eq!(machine["domain"]["devices"]["filesystems"], expected);
        let of = |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        assert_eq!(machine["volumes"].as_array().expect("volumes")[2..], [of("ada-drive-mirror"), of(&name)]);
    }

    #[test]
    fn a_machine_of_an_exam_has_no_mirror() {
        let plan = planned(&mirrored("VirtualMachine", &json!({"mode": "Exam"})));
        assert!(!plan.ensure.iter().any(|desired| desired.kind.kind == "PersistentVolumeClaim"));
    }

    /// A mirror of this claim that the Instance owns.
    fn claim(name: &str, source: &Value) -> Arc<PersistentVolumeClaim> {
        owned::<PersistentVolumeClaimKind>(name, json!({"dataSourceRef": source}))
    }

    fn source(claim: &str) -> Value {
        json!({"kind": "PersistentVolumeClaim", "name": claim, "namespace": "workspace-w"})
    }

    #[test]
    fn an_existing_mirror_keeps_its_name_if_it_has_the_right_origin() {
        for (existing, of, kept) in [
            ("data-my.lab-mirror", "shvol-data", false),
            ("data-my-lab-mirror", "shvol-data", true),
            ("data-my-lab-mirror", "shvol-other", false),
        ] {
            let mut observed = mirrored("Standalone", &json!({}));
            observed.children.set::<PersistentVolumeClaimKind>([claim(existing, &source(of))]);
            let found = name(&observed, &GenericRef::new("workspace-w", "data"));
            assert_eq!(found == existing, kept, "{existing} {of}");
            assert_eq!(planned(&observed).problems, [], "{existing} {of}");
        }
    }

    #[test]
    fn a_mirror_without_its_origin_is_reported() {
        let mut observed = mirrored("Standalone", &json!({}));
        observed.children.set::<PersistentVolumeClaimKind>([claim(&ours(), &Value::Null)]);
        let plan = planned(&observed);
        let reasons: Vec<&str> = plan.problems.iter().map(|problem| problem.reason.as_str()).collect();
        assert_eq!(reasons, ["MirrorUnusable"]);
    }

    #[test]
    fn an_existing_workload_gets_only_the_mirrors_that_it_mounts() {
        let has_mirror = |observed: &Observed| {
            planned(observed).ensure.iter().any(|desired| desired.kind.kind == "PersistentVolumeClaim")
        };
        for (volume, expected) in [("nfs0", false), (ours().as_str(), true)] {
            let mut observed = mirrored("Standalone", &json!({}));
            let volumes = json!([{"name": volume, "nfs": {"server": "s", "path": "/p"}}]);
            let spec = json!({"template": {"spec": {"volumes": volumes}}});
            observed.children.set::<DeploymentKind>([owned::<DeploymentKind>("my-lab", spec)]);
            assert_eq!(has_mirror(&observed), expected, "a container with {volume}");
            let mut observed = mirrored("VirtualMachine", &json!({"persistent": true}));
            let devices = json!({"filesystems": [{"name": volume, "virtiofs": {}}]});
            let spec = json!({"template": {"spec": {"domain": {"devices": devices}}}});
            observed.children.set::<VirtualMachineKind>([owned::<VirtualMachineKind>("my-lab", spec)]);
            assert_eq!(has_mirror(&observed), expected, "a machine with {volume}");
        }
        let mut observed = mirrored("VirtualMachine", &json!({}));
        let running = owned::<VirtualMachineInstanceKind>("my-lab", json!({}));
        observed.children.set::<VirtualMachineInstanceKind>([running]);
        assert!(!has_mirror(&observed), "it runs with the volumes of its start");
    }
}
