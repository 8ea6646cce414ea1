//! Names of objects and values of labels: the rules of Kubernetes, and the names of the objects that the daemon
//! creates.

use std::fmt;

use derive_more::Deref;
use ring::digest;
use serde::Serialize;

use super::parts::Part;

/// Reports that a text is not a valid name: the text, and the rule that it breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(String);

/// The prefix of the names of user groups in the API server. It keeps groups from Keycloak apart from the API
/// server's own groups.
pub const GROUP_PREFIX: &str = "kubernetes:";

/// The RBAC group of the Tenants with a role in a Workspace.
pub fn course_group(workspace: &str, role: &str) -> String {
    format!("{GROUP_PREFIX}workspace-{workspace}:{role}")
}

/// The Workspace whose managers form an RBAC group; `None` for any other group.
pub fn managed_workspace(group: &str) -> Option<&str> {
    let of_course = group.strip_prefix(GROUP_PREFIX)?.strip_prefix("workspace-")?;
    of_course.strip_suffix(":manager").filter(|workspace| !workspace.is_empty())
}

/// The rule of Kubernetes for one type of name.
struct Rule {
    what: &'static str,
    limit: usize,
    matches: fn(&str) -> bool,
    must: &'static str,
}

impl Rule {
    fn check(&self, text: &str) -> Result<(), NameError> {
        let Self { what, limit, must, .. } = *self;
        let length = text.len();
        if length > limit {
            Err(NameError(format!("{what} {text:?} has {length} characters, at most {limit} are allowed")))
        } else if (self.matches)(text) {
            Ok(())
        } else {
            Err(NameError(format!("{what} {text:?} must {must}")))
        }
    }
}

/// Whether a text begins and ends with a byte of `ends` and contains only bytes of `ends` or `inside` in between.
fn is_word(text: &str, ends: fn(u8) -> bool, inside: fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => ends(*only),
        [first, middle @ .., last] => {
            ends(*first) && ends(*last) && middle.iter().all(|byte| ends(*byte) || inside(*byte))
        }
    }
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_dns_label(text: &str) -> bool {
    is_word(text, is_lower, |byte| byte == b'-')
}

/// A label of RFC 1123, as `IsDNS1123Label` of apimachinery checks it.
const DNS_LABEL: Rule = Rule {
    what: "name",
    limit: 63,
    matches: is_dns_label,
    must: "consist of lower-case letters, digits and dashes, and begin and end with a letter or digit",
};
/// A subdomain of RFC 1123, as `IsDNS1123Subdomain` of apimachinery checks it.
const OBJECT_NAME: Rule = Rule {
    what: "name",
    limit: 253,
    matches: |text| text.split('.').all(is_dns_label),
    must: "consist of lower-case letters, digits, dashes and dots, and begin and end with a letter or digit",
};
/// The value of a label, as `IsValidLabelValue` of apimachinery checks it.
const LABEL_VALUE: Rule = Rule {
    what: "label value",
    limit: 63,
    matches: |text| {
        let inside = |byte| matches!(byte, b'-' | b'_' | b'.');
        text.is_empty() || is_word(text, |byte| byte.is_ascii_alphanumeric(), inside)
    },
    must: "be empty, or consist of letters, digits, dashes, underscores and dots, and begin and end with a letter or digit",
};

/// Whether objects of most kinds can have this name: at most 253 characters, dots allowed.
pub fn check_object_name(text: &str) -> Result<(), NameError> {
    OBJECT_NAME.check(text)
}

/// Whether a namespace, Service, port or container can have this name: at most 63 characters, no dots.
pub fn check_dns_label(text: &str) -> Result<(), NameError> {
    DNS_LABEL.check(text)
}

/// Whether a text can be the value of a label: at most 63 characters, upper case and underscores allowed.
pub fn check_label_value(text: &str) -> Result<(), NameError> {
    LABEL_VALUE.check(text)
}

/// Joins `base` and `suffix`, and shortens the name to the length of a label value. The name is used for values of
/// labels, for Jobs (whose name becomes a label of their pods) and for Services. A shortened name contains a digest
/// of `base`.
pub fn label_sized(base: &str, suffix: &str) -> String {
    let name = format!("{base}{suffix}");
    if name.len() <= LABEL_VALUE.limit {
        return name;
    }
    let tag = short_digest(base);
    let length = LABEL_VALUE.limit - suffix.len() - tag.len() - 1;
    // Names of objects are ASCII, so every index is a character boundary.
    let kept = base.get(..length).unwrap_or_default().trim_end_matches(['-', '.']);
    format!("{kept}-{tag}{suffix}")
}

/// The first eight hexadecimal digits of the SHA-256 digest of a text.
pub fn short_digest(text: &str) -> String {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    let number = u32::from_be_bytes(digest.as_ref().first_chunk().copied().unwrap_or_default());
    format!("{number:08x}")
}

/// Checks that the name of an Instance is short enough for its objects. They have the name of the Instance, alone or
/// followed by the name of an environment.
///
/// # Errors
/// When the name would be too long for a Service. The error contains the longest possible length of the name of the
/// Instance.
pub fn check_instance(instance: &str, environment: Option<&str>) -> Result<(), NameError> {
    let (limit, length) = (DNS_LABEL.limit, instance.len());
    let most = limit.saturating_sub(environment.map_or(0, |environment| environment.len() + 1));
    if length <= most {
        return Ok(());
    }
    Err(NameError(match environment {
        None => format!(
            "the name of the Instance has {length} characters, but its objects have the same name, which can have at \
             most {limit}: create the Instance again with a shorter name"
        ),
        Some(environment) => format!(
            "the name of the Instance has {length} characters, and the name of its environment {environment} has {}: joined by \
             a dash, they name its objects, which allow {limit}; create it again with a name of at most {most} characters",
            environment.len()
        ),
    }))
}

/// Whether a text is the key of a label, as `IsQualifiedName` of apimachinery checks it: a name, optionally
/// after a DNS name and a slash.
pub fn is_label_key(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && check_label_value(name).is_ok();
    match text.split_once('/') {
        Some((prefix, name)) => check_object_name(prefix).is_ok() && is_name(name),
        None => is_name(text),
    }
}

/// A name in canonical form, with dashes instead of dots. The names of an object's children are formed from it. It is
/// a separate type because the name of the object itself and the values of labels keep their dots.
///
/// The text, `<c>` below, is also the name of the children of an Instance with one environment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deref, Serialize)]
#[deref(forward)]
pub struct CanonicalName(String);

impl CanonicalName {
    /// The canonical form of an object's name.
    pub fn of(name: &str) -> Self {
        Self(name.replace('.', "-"))
    }

    /// `<c>-<environment>`: the name of the children of an Instance with several environments.
    #[must_use]
    pub fn environment(&self, environment: &str) -> Self {
        Self(format!("{}-{environment}", self.0))
    }

    /// `<c>-gui`: the name of the Ingress of a desktop.
    pub fn gui(&self) -> String {
        format!("{}-gui", self.0)
    }

    /// `<c>-app`: the name of the Ingress of a web application.
    pub fn app(&self) -> String {
        format!("{}-app", self.0)
    }

    /// `<c>-<suffix>`: the name of the objects of a part, shortened to what a label value allows.
    pub fn part(&self, part: &Part) -> String {
        label_sized(&self.0, &format!("-{}", part.suffix))
    }

    /// `tenant-<c>`: the name of the personal namespace of a Tenant.
    pub fn tenant_namespace(&self) -> String {
        format!("tenant-{}", self.0)
    }

    /// `sandbox-<c>`: the name of the sandbox namespace of a Tenant.
    pub fn sandbox_namespace(&self) -> String {
        format!("sandbox-{}", self.0)
    }

    /// `<c>-drive`: the name of the claim of a Tenant's personal volume.
    pub fn drive(&self) -> String {
        format!("{}-drive", self.0)
    }
}

impl fmt::Display for CanonicalName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::parts;

    #[test]
    fn only_the_group_of_managers_names_a_managed_workspace() {
        assert_eq!(course_group("tea", "user"), "kubernetes:workspace-tea:user");
        assert_eq!(managed_workspace(&course_group("tea", "manager")), Some("tea"));
        for other in [
            "kubernetes:workspace-tea:user",
            "kubernetes:workspace-:manager",
            "kubernetes:tea:manager",
            "workspace-tea:manager",
            "kubernetes:workspace-tea:manager ",
            "",
        ] {
            assert_eq!(managed_workspace(other), None, "{other:?}");
        }
    }

    #[test]
    fn children_are_named_after_the_canonical_form() {
        let name = CanonicalName::of("green-tea.6831");
        assert_eq!(&*name, "green-tea-6831");
        assert_eq!(name.gui(), "green-tea-6831-gui");
        assert_eq!(name.app(), "green-tea-6831-app");
        assert_eq!(name.part(&parts::PUBLIC_EXPOSURE), "green-tea-6831-pe");
        assert_eq!(name.part(&parts::SUBMITTER), "green-tea-6831-submitter");
        assert_eq!(&*name.environment("db"), "green-tea-6831-db");
        assert_eq!(name.environment("db").gui(), "green-tea-6831-db-gui");
        let tenant = CanonicalName::of("john.doe");
        assert_eq!(tenant.tenant_namespace(), "tenant-john-doe");
        assert_eq!(tenant.sandbox_namespace(), "sandbox-john-doe");
        assert_eq!(tenant.drive(), "john-doe-drive");
    }

    #[test]
    fn names_follow_the_rules_of_kubernetes() {
        // Text, and whether it is a valid object name, DNS label and label value.
        let cases = [
            ("", false, false, true),
            ("a", true, true, true),
            ("0a", true, true, true),
            ("a.b", true, false, true),
            ("a..b", false, false, true),
            ("a.-b", false, false, true),
            ("a-.b", false, false, true),
            ("-a", false, false, false),
            ("a-", false, false, false),
            ("a--b", true, true, true),
            ("A", false, false, true),
            ("a_b", false, false, true),
            ("_a", false, false, false),
            ("a b", false, false, false),
            ("é", false, false, false),
        ];
        for (text, object, label, value) in cases {
            assert_eq!(check_object_name(text).is_ok(), object, "object {text:?}");
            assert_eq!(check_dns_label(text).is_ok(), label, "label {text:?}");
            assert_eq!(check_label_value(text).is_ok(), value, "value {text:?}");
        }
    }

    #[test]
    fn names_have_a_limit() {
        let long = "a".repeat(64);
        assert!(check_dns_label(&long[1..]).is_ok());
        assert!(check_label_value(&long[1..]).is_ok());
        assert!(check_object_name(&"a".repeat(253)).is_ok());
        assert!(check_object_name(&"a".repeat(254)).is_err());
        let error = check_label_value(&long).unwrap_err().to_string();
        assert_eq!(error, format!("label value {long:?} has 64 characters, at most 63 are allowed"));
        let error = check_dns_label("A").unwrap_err().to_string();
        assert!(error.starts_with("name \"A\" must consist of lower-case letters"), "{error}");
    }
}
