//! Mirrors: claims that give a namespace the volume of a claim in another namespace, their origin. A provisioner, such as
//! the mirror loop, creates their volumes if the origin permits it.

use serde_json::{Value, json};

use super::nfs_volume::shared_claim;
use crate::api::names::{CanonicalName, label_sized, short_digest};
use crate::api::reference::GenericRef;
use crate::api::{labels, reason};
use crate::kinds::{DataSource, MIRROR_SUFFIX};
use crate::runtime::ObjectKey;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// Annotation of an origin: a selector of the labels of the namespaces that may mirror it.
pub const PERMITTED: &str = "pmp.crownlabs.polito.it/required-target-ns-labels";
/// The kind of origins.
pub const CLAIM: &str = "PersistentVolumeClaim";
/// The length of the end of a claim's name in the Go operator's names of mirrors.
const FORMER_DRIVE: usize = 55;

/// The namespaces that may mirror a shared volume, as a value of [`PERMITTED`].
pub fn personal_namespaces() -> String {
    format!("{}={}", labels::TYPE, labels::TYPE_TENANT)
}

/// The namespace that may mirror the personal volume of a Tenant, as a value of [`PERMITTED`].
pub fn personal_namespace(tenant: &str) -> String {
    format!("{},{}={tenant}", personal_namespaces(), labels::NAME)
}

/// The possible names of the mirror of a personal volume with this claim: the name in this daemon, and the one in the Go
/// operator, which is the same unless the name of the claim is long.
pub fn drive_names(claim: &str) -> [String; 2] {
    let end = claim.get(claim.len().saturating_sub(FORMER_DRIVE)..).unwrap_or_default();
    [label_sized(claim, MIRROR_SUFFIX), format!("{end}{MIRROR_SUFFIX}")]
}

/// The name of the mirror of a shared volume for an Instance. It contains a digest of their full names, because equal names
/// of volumes in two namespaces, and the ends of long names, must not lead to the data of another volume.
pub fn volume_name(volume: &GenericRef, instance: &str) -> String {
    let digest = short_digest(&format!("{}/{}/{instance}", volume.namespace, volume.name));
    let base = format!("{}-{}", CanonicalName::of(&volume.name), CanonicalName::of(instance));
    label_sized(&base, &format!("-{digest}{MIRROR_SUFFIX}"))
}

/// The claim of a shared volume.
pub fn origin(volume: &GenericRef) -> ObjectKey {
    ObjectKey::new(&volume.namespace, shared_claim(&volume.name))
}

/// The spec of a new mirror. It requests the least storage, because its volume is the origin's.
pub fn spec(class: &str, origin: &ObjectKey) -> Value {
    json!({"spec": {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": class,
        "resources": {"requests": {"storage": "1"}},
        "dataSourceRef": {"kind": CLAIM, "name": origin.name, "namespace": origin.namespace},
    }})
}

/// The claim that a data source names, if it names one with its namespace.
pub fn origin_of(source: &DataSource) -> Option<ObjectKey> {
    let is_core = source.api_group.as_ref().is_none_or(|group| group.is_empty());
    let namespace = source.namespace.as_ref().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.filter(|_| is_core && source.kind == CLAIM)?;
    Some(ObjectKey::new(namespace.clone(), source.name.clone()))
}

/// Whether a claim with this data source is a mirror of `origin`.
pub fn is_of(source: Option<&DataSource>, origin: &ObjectKey) -> bool {
    source.and_then(origin_of).is_some_and(|found| found == *origin)
}

/// The problem with an existing mirror that has this data source instead of `origin`. The spec of a claim is immutable.
pub fn fault(
    mirror: &ObjectKey,
    source: Option<&DataSource>,
    origin: &ObjectKey,
    component: Component,
) -> Option<Problem> {
    let message = match source {
        Some(_) if is_of(source, origin) => return None,
        Some(_) => format!("{CLAIM} {mirror} does not mirror {origin}: delete it, and it is created again"),
        None => format!(
            "{CLAIM} {mirror} has no dataSourceRef, which an API server drops without its feature gate \
             CrossNamespaceVolumeDataSource: enable the gate, then delete the claim, and it is created again"
        ),
    };
    Some(Problem::elsewhere(component, reason::MIRROR_UNUSABLE, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::names::check_dns_label;

    fn volume(namespace: &str, name: &str) -> GenericRef {
        GenericRef::new(namespace, name)
    }

    #[test]
    fn names_of_mirrors_are_valid_and_distinct() {
        let long = "a".repeat(60);
        let ends = ["b", "c"].map(|begin| format!("{begin}{long}"));
        let names = [
            volume_name(&volume("workspace-tea", "data.one"), "my.lab"),
            volume_name(&volume("workspace-milk", "data.one"), "my.lab"),
            volume_name(&volume("workspace-tea", "data.one"), "my-lab"),
            volume_name(&volume("workspace-tea", &ends[0]), &long),
            volume_name(&volume("workspace-tea", &ends[1]), &long),
        ];
        for (index, name) in names.iter().enumerate() {
            assert!(check_dns_label(name).is_ok() && name.ends_with("-mirror"), "{name}");
            assert!(!names[..index].contains(name), "{name}");
        }
        assert!(names[0].starts_with("data-one-my-lab-"), "{}", names[0]);
    }

    #[test]
    fn the_mirror_of_a_personal_volume_has_the_name_of_the_go_operator_unless_it_is_long() {
        let [ours, former] = drive_names("ada-rossi-drive");
        assert_eq!((&*ours, &*former), ("ada-rossi-drive-mirror", "ada-rossi-drive-mirror"));
        let claim = format!("{}-drive", "a".repeat(60));
        let [ours, former] = drive_names(&claim);
        assert_eq!(former, format!("{}-drive-mirror", "a".repeat(49)));
        assert!(ours != former && check_dns_label(&ours).is_ok(), "{ours}");
    }

    #[test]
    fn a_data_source_names_an_origin_only_in_another_namespace_and_of_the_core_group() {
        let of = |group: Option<&str>, kind: &str, namespace: Option<&str>| {
            let [group, namespace] = [group, namespace].map(|text| text.map(Into::into));
            origin_of(&DataSource { api_group: group, kind: kind.into(), name: "a".into(), namespace })
        };
        let found = Some(ObjectKey::new("n", "a"));
        assert_eq!((of(None, CLAIM, Some("n")), of(Some(""), CLAIM, Some("n"))), (found.clone(), found));
        for (group, kind, namespace) in [
            (None, CLAIM, None),
            (None, CLAIM, Some("")),
            (None, "VolumeSnapshot", Some("n")),
            (Some("example.org"), CLAIM, Some("n")),
        ] {
            assert_eq!(of(group, kind, namespace), None, "{group:?} {kind} {namespace:?}");
        }
    }

    #[test]
    fn a_mirror_of_another_origin_and_one_without_are_reported() {
        let (mirror, origin) = (ObjectKey::new("tenant-ada", "m"), ObjectKey::new("drives", "ada-drive"));
        let source = |namespace: &str| DataSource {
            kind: CLAIM.into(),
            name: "ada-drive".into(),
            namespace: Some(namespace.into()),
            ..DataSource::default()
        };
        let said = |source: Option<&DataSource>| {
            fault(&mirror, source, &origin, Component::Whole).map(|problem| problem.message)
        };
        assert_eq!(said(Some(&source("drives"))), None);
        let other = said(Some(&source("others"))).expect("a problem");
        assert!(other.contains("tenant-ada/m does not mirror drives/ada-drive"), "{other}");
        let none = said(None).expect("a problem");
        assert!(none.contains("CrossNamespaceVolumeDataSource: enable the gate"), "{none}");
    }
}
