//! Names of objects and label values that derive from a Tenant.

use crate::api::names::CanonicalName;
use crate::controllers::shared::nfs_volume::job_name;

/// The longest value of a label, in characters.
const LABEL_LIMIT: usize = 63;

/// A first or last name as a label value. Spaces become underscores, and all characters except ASCII letters and digits
/// are dropped.
pub fn clean(name: &str) -> String {
    let kept = name.chars().map(|c| if c == ' ' { '_' } else { c });
    let kept: String = kept.filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let trimmed = kept.trim_matches('_');
    trimmed.get(..trimmed.len().min(LABEL_LIMIT)).unwrap_or_default().trim_end_matches('_').to_owned()
}

/// The names of the objects of a Tenant. `<c>` is its canonical name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The personal namespace, `tenant-<c>`.
    pub namespace: String,
    /// The sandbox namespace, `sandbox-<c>`.
    pub sandbox: String,
    /// The `ClusterRole` and its binding, `crownlabs-manage-tenant-<c>`.
    pub cluster_role: String,
    /// The `PersistentVolumeClaim` of the personal volume, `<c>-drive`.
    pub claim: String,
    /// The Job that prepares the volume, `<c>-drive-provision`, shortened if it is too long for a Job.
    pub provision: String,
}

impl Names {
    /// The names of the objects of a Tenant.
    pub fn of(tenant: &str) -> Self {
        let canonical = CanonicalName::of(tenant);
        let namespace = canonical.tenant_namespace();
        Self {
            sandbox: canonical.sandbox_namespace(),
            cluster_role: format!("crownlabs-manage-{namespace}"),
            claim: canonical.drive(),
            provision: job_name(&canonical.drive()),
            namespace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::names::check_dns_label;

    #[test]
    fn names_of_people_become_labels() {
        let cases = [
            ("__John @#$ Doe__", "John__Doe"),
            ("D'Angiò", "DAngi"),
            ("D'Angelo Bianchi", "DAngelo_Bianchi"),
            ("李", ""),
            ("", ""),
            (" ", ""),
            ("Ada", "Ada"),
        ];
        for (name, label) in cases {
            assert_eq!(clean(name), label, "{name:?}");
        }
        let long = clean(&format!("{} b", "a".repeat(62)));
        assert_eq!(long, "a".repeat(62), "no underscore at the end of what is cut");
        assert_eq!(clean(&"a".repeat(200)).len(), 63);
    }

    #[test]
    fn everything_is_named_after_the_canonical_form() {
        let names = Names::of("john.doe");
        assert_eq!(names.namespace, "tenant-john-doe");
        assert_eq!(names.sandbox, "sandbox-john-doe");
        assert_eq!(names.cluster_role, "crownlabs-manage-tenant-john-doe");
        assert_eq!(names.claim, "john-doe-drive");
        assert_eq!(names.provision, "john-doe-drive-provision");
        let (a, b) = (Names::of(&"a".repeat(55)).provision, Names::of(&"a".repeat(56)).provision);
        assert!(a.len() <= 63 && b.len() <= 63 && a != b, "{a} {b}");
        assert!(a.ends_with("-provision") && Names::of(&"a".repeat(47)).provision.len() == 63);
        assert!(check_dns_label(&names.namespace).is_ok());
        assert!(check_dns_label(&Names::of(&"a".repeat(57)).namespace).is_err());
    }
}
