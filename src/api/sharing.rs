//! The people with whom the owner of an Instance shares it: its annotation [`SHARED_WITH`], a list in JSON such as
//! `[{"user": "kim", "access": "view", "until": "2026-03-04T23:00:00Z"}]`.
//!
//! The webhook accepts only valid lists. Stored lists are read leniently, because they may have been written without
//! it: an invalid entry counts for no one. [`super::connection`] has the record of their connections.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::environment::EnvironmentMode;
use super::labels::SHARED_WITH;
use super::names::check_object_name;
use super::shown::{MOST as MOST_SHOWN, cut};
use super::tenancy::is_tenant_namespace;
use super::tenant::Role;
use super::{Kind, Object, Template, Tenant};

/// The maximum number of people.
pub const MOST: usize = 10;
/// The maximum length of the annotation, in bytes.
pub const MOST_BYTES: usize = 4 << 10;
/// The maximum time until the end.
pub const LONGEST: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What a peer may do on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Look on: the terminal without input.
    View,
    /// Work: the terminal and the desktop.
    Control,
}

impl Access {
    /// Returns the text in the annotation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Control => "control",
        }
    }
}

/// A person with whom an Instance is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The name of the Tenant.
    pub user: String,
    /// What the person may do.
    pub access: Access,
    /// The end.
    pub until: Timestamp,
}

/// An entry of the annotation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    user: String,
    access: Access,
    until: String,
}

/// Why an annotation is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharingFault {
    /// It is too long.
    #[error("it has {0} bytes: the maximum is {MOST_BYTES}")]
    TooLong(usize),
    /// It is not a list of entries.
    #[error(
        "expected a list in JSON such as [{{\"user\": \"kim\", \"access\": \"view\", \"until\": \"2026-03-04T23:00:00Z\"}}], \
         where access is view or control: {0}"
    )]
    Unreadable(String),
    /// It has too many entries.
    #[error("it names {0} people: the maximum is {MOST}")]
    TooMany(usize),
    /// A name is invalid.
    #[error("{0:?} is not the name of a Tenant")]
    Name(String),
    /// An end is not a time.
    #[error("the end {0:?} is not a time such as 2026-03-04T23:00:00Z")]
    End(String),
    /// A person is named twice.
    #[error("it names {0} twice")]
    Twice(String),
}

impl Peer {
    /// Whether the Instance is shared with the person at this time. An end that the webhook would refuse counts for no
    /// one.
    pub fn is_current(&self, now: Timestamp) -> bool {
        now < self.until && self.until.duration_since(now) <= LONGEST
    }

    fn of(entry: Entry) -> Result<Self, SharingFault> {
        let Entry { user, access, until } = entry;
        if check_object_name(&user).is_err() {
            return Err(SharingFault::Name(cut(&user, MOST_SHOWN).into_owned()));
        }
        match until.parse::<Timestamp>() {
            Ok(until) => Ok(Self { user, access, until }),
            Err(_) => Err(SharingFault::End(cut(&until, MOST_SHOWN).into_owned())),
        }
    }
}

/// Returns the people with whom an Instance is shared, including those whose time is over.
pub fn peers<T: Kind>(instance: &Object<T>) -> Vec<Peer> {
    instance.annotation(SHARED_WITH).map(lenient).unwrap_or_default()
}

/// Reads the valid entries. Of several entries of a person, the first one counts.
fn lenient(text: &str) -> Vec<Peer> {
    if text.len() > MOST_BYTES {
        return Vec::new();
    }
    let entries: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let mut peers: Vec<Peer> = Vec::new();
    for entry in entries.into_iter().take(MOST) {
        let Ok(entry) = serde_json::from_value(entry) else { continue };
        let Ok(peer) = Peer::of(entry) else { continue };
        if peers.iter().all(|known| known.user != peer.user) {
            peers.push(peer);
        }
    }
    peers
}

/// Reads an annotation whose entries must all be valid.
///
/// # Errors
/// When an entry is invalid, or there are too many.
pub fn read(text: &str) -> Result<Vec<Peer>, SharingFault> {
    if text.len() > MOST_BYTES {
        return Err(SharingFault::TooLong(text.len()));
    }
    let entries: Vec<Entry> =
        serde_json::from_str(text).map_err(|error| SharingFault::Unreadable(error.to_string()))?;
    if entries.len() > MOST {
        return Err(SharingFault::TooMany(entries.len()));
    }
    let mut peers: Vec<Peer> = Vec::new();
    for entry in entries {
        let peer = Peer::of(entry)?;
        if peers.iter().any(|known| known.user == peer.user) {
            return Err(SharingFault::Twice(peer.user));
        }
        peers.push(peer);
    }
    Ok(peers)
}

/// Returns the annotation for these people.
pub fn written(peers: &[Peer]) -> String {
    let entry = |Peer { user, access, until }: &Peer| json!({"user": user, "access": access, "until": until.to_string()});
    Value::Array(peers.iter().map(entry).collect()).to_string()
}

/// Returns the course whose people can be peers on the machines of a Template; `None` for a Template of a personal
/// workspace, which its Tenant writes, and for a Template of an exam, where nobody helps.
pub fn course(template: &Template) -> Option<&str> {
    let course = template.spec.workspace_ref.name.as_str();
    let is_exam = template.spec.environment_list.iter().any(|one| one.mode == EnvironmentMode::Exam);
    (!course.is_empty() && !is_exam && !is_tenant_namespace(template.namespace())).then_some(course)
}

/// Whether a Tenant is enrolled in a course. A request to join does not count.
pub fn is_enrolled(tenant: &Tenant, course: &str) -> bool {
    matches!(tenant.spec.role_in(course), Some(Role::User | Role::Manager))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Instance;
    use crate::api::instance::InstanceSpec;
    use crate::api::meta::TextMap;
    use crate::fixtures::time;

    const END: &str = "2026-03-04T23:00:00Z";

    fn entry(user: &str) -> Value {
        json!({"user": user, "access": "view", "until": END})
    }

    fn kim(access: Access) -> Peer {
        Peer { user: "kim".to_owned(), access, until: time(END) }
    }

    /// Returns the people of an Instance with this annotation.
    fn of_instance(text: &str) -> Vec<Peer> {
        let mut instance = Instance::new(Some("tenant-ada"), "vm", InstanceSpec::default());
        instance.metadata.annotations = TextMap::from_iter([(SHARED_WITH, text)]);
        peers(&instance)
    }

    #[test]
    fn an_annotation_is_read_as_it_is_written() {
        let other = Peer { user: "lee.2".to_owned(), ..kim(Access::View) };
        for peers in [vec![], vec![kim(Access::Control)], vec![kim(Access::View), other]] {
            let text = written(&peers);
            assert_eq!(read(&text), Ok(peers.clone()), "{text}");
            assert_eq!(of_instance(&text), peers, "{text}");
        }
        let text = written(&[kim(Access::Control)]);
        assert_eq!(text, r#"[{"user":"kim","access":"control","until":"2026-03-04T23:00:00Z"}]"#);
    }

    #[test]
    fn an_invalid_annotation_is_refused_with_the_reason_and_its_valid_entries_count() {
        let mut long = entry("kim");
        long["user"] = "x".repeat(MOST_BYTES).into();
        let people: Vec<Value> = (0..=MOST).map(|number| entry(&format!("p{number}"))).collect();
        let with = |more: Value| json!([entry("kim"), more]);
        let controlling = json!({"user": "kim", "access": "control", "until": END});
        for (value, words, valid) in [
            (json!([long]), "the maximum is 4096", 0),
            (json!({"user": "kim"}), "expected a list in JSON", 0),
            (with(json!({"user": "lee", "access": "write", "until": END})), "unknown variant `write`", 1),
            (with(json!({"user": "lee", "access": "view"})), "missing field `until`", 1),
            (with(json!({"user": "lee", "access": "view", "until": END, "x": 1})), "unknown field `x`", 1),
            (with(json!({"user": "lee", "access": "view", "until": "soon"})), "\"soon\" is not a time", 1),
            (with(entry("../lee")), "\"../lee\" is not the name of a Tenant", 1),
            (with(controlling), "it names kim twice", 1),
            (json!(people), "it names 11 people: the maximum is 10", MOST),
        ] {
            let text = value.to_string();
            let fault = read(&text).expect_err(words).to_string();
            assert!(fault.contains(words), "{fault}");
            let found = of_instance(&text);
            assert_eq!(found.len(), valid, "{words}");
            assert!(found.iter().all(|peer| peer.access == Access::View), "{words}: the first entry counts");
        }
        assert!(of_instance("nonsense").is_empty());
    }

    #[test]
    fn an_end_that_is_over_or_too_far_away_counts_for_no_one() {
        for (now, is_current) in [
            ("2026-03-04T22:59:59Z", true),
            ("2026-03-04T23:00:00Z", false),
            ("2026-03-05T00:00:00Z", false),
            ("2026-02-02T23:00:00Z", true),
            ("2026-02-02T22:59:59Z", false),
        ] {
            assert_eq!(kim(Access::View).is_current(time(now)), is_current, "{now}");
        }
    }

    #[test]
    fn a_template_of_a_personal_workspace_has_no_course() {
        let template = |namespace: &str, workspace: &str| -> Template {
            let spec = json!({"workspace.crownlabs.polito.it/WorkspaceRef": {"name": workspace}});
            let object = json!({"metadata": {"name": "lab", "namespace": namespace}, "spec": spec});
            serde_json::from_value(object).expect("a Template")
        };
        assert_eq!(course(&template("workspace-tea", "tea")), Some("tea"));
        assert_eq!(course(&template("tenant-ada", "tea")), None);
        assert_eq!(course(&template("workspace-tea", "")), None);
    }

    #[test]
    fn a_template_of_an_exam_has_no_peers() {
        let template = |modes: &[&str]| -> Template {
            let environment = |mode: &&str| json!({"name": "main", "image": "i", "mode": mode});
            let environments: Vec<Value> = modes.iter().map(environment).collect();
            let reference = json!({"name": "tea"});
            let spec = json!({"workspace.crownlabs.polito.it/WorkspaceRef": reference, "environmentList": environments});
            let metadata = json!({"name": "lab", "namespace": "workspace-tea"});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a Template")
        };
        for (modes, expected) in [
            (&["Standard"][..], Some("tea")),
            (&["Exercise"], Some("tea")),
            (&["Exam"], None),
            (&["Standard", "Exam"], None),
        ] {
            assert_eq!(course(&template(modes)), expected, "{modes:?}");
        }
    }
}
