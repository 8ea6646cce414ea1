//! The key of the host names of machines with `controllers.instance.urls: host`. It is in a Secret in the namespace of
//! the daemon, which the first reconcile that needs it creates, and which is never changed.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;

use super::children::wave;
use super::plan::Plan;
use crate::api::{labels, reason};
use crate::controllers::shared::children::Parent;
use crate::controllers::shared::machine_host::{ENTRY, HostKey, KEY_LENGTH};
use crate::kinds::{Secret, SecretKind};
use crate::runtime::ObjectKey;
use crate::runtime::component::Component;
use crate::runtime::plan::{Desired, Ownership};
use crate::runtime::problem::Problem;

/// The component of the Secret in the plan.
const COMPONENT: Component = Component::Part(PART);
/// The name of this component.
pub const PART: &str = "machine-hosts";

/// The key of the host names, as observed.
#[derive(Debug, Clone, Default)]
pub enum Hosts {
    /// Environments have no host names of their own.
    #[default]
    Common,
    /// The key.
    Known(HostKey),
    /// The Secret does not exist.
    Missing(ObjectKey),
    /// The Secret has no valid key, for this reason.
    Invalid(ObjectKey, String),
}

impl Hosts {
    /// The key in a Secret, which has the name `key` if it exists.
    pub fn of(key: &ObjectKey, secret: Option<&Secret>) -> Self {
        let Some(secret) = secret else { return Self::Missing(key.clone()) };
        let content = secret.spec.get(ENTRY).ok_or_else(|| "it is missing".to_owned());
        let content =
            content.and_then(|text| STANDARD.decode(text).map_err(|_| "it is not base64".to_owned()));
        match content.and_then(|content| HostKey::parse(&content)) {
            Ok(key) => Self::Known(key),
            Err(problem) => Self::Invalid(key.clone(), problem),
        }
    }

    /// The key, if it is known.
    pub fn known(&self) -> Option<&HostKey> {
        match self {
            Self::Known(key) => Some(key),
            Self::Common | Self::Missing(_) | Self::Invalid(..) => None,
        }
    }

    /// Plans the Secret if it does not exist, and reports that the web interface waits for the key.
    pub fn wait(&self, plan: &mut Plan) {
        let message = match self {
            Self::Common | Self::Known(_) => return,
            Self::Missing(key) => {
                let Some(secret) = secret(key) else {
                    return plan.problems.push(waiting("the system of the daemon has no random numbers"));
                };
                // The environments of an Instance share the key.
                if plan.ensure.iter().all(|desired| desired.component != COMPONENT) {
                    plan.ensure.push(secret);
                }
                format!("Secret {key} with the key of host names does not exist yet; the daemon creates it")
            }
            Self::Invalid(key, problem) => format!(
                "entry {ENTRY} of Secret {key} is invalid: {problem}. Restore the Secret; if it is lost, delete it, and \
                 the daemon creates another one, which changes the host names of all machines"
            ),
        };
        let problem = waiting(&message);
        if !plan.problems.contains(&problem) {
            plan.problems.push(problem);
        }
    }
}

/// The problem that no host name can be computed.
fn waiting(why: &str) -> Problem {
    let message = format!("the web interface waits: {why}");
    Problem::waiting(COMPONENT, reason::HOST_KEY_WAITS, message)
}

/// A new Secret with a random key; `None` if the system has no random numbers. It has no owner, and none of its fields
/// is enforced.
fn secret(key: &ObjectKey) -> Option<Desired> {
    let mut content = [0; KEY_LENGTH];
    SystemRandom::new().fill(&mut content).ok()?;
    let parent = Parent {
        owner: OwnerReference::default(),
        namespace: key.namespace.to_string(),
        // The store of the loop's Secrets selects this label.
        labels: BTreeMap::from([(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_INSTANCE.to_owned())]),
        seen: None,
    };
    let body = move || json!({"type": "Opaque", "data": {ENTRY: STANDARD.encode(content)}});
    let mut child = parent.child::<SecretKind>(&key.name, &COMPONENT, wave::SERVICE, body);
    child.desired.ownership = Ownership::Unowned;
    child.desired.identity.clear();
    Some(child.made())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::object;

    fn key() -> ObjectKey {
        ObjectKey::new("crownlabs-system", "crownlabs-machine-hosts")
    }

    /// The key in a Secret with this data.
    fn hosts(data: &serde_json::Value) -> Hosts {
        let secret: std::sync::Arc<Secret> = object(json!({
            "metadata": {"name": "crownlabs-machine-hosts", "namespace": "crownlabs-system"}, "data": data,
        }));
        Hosts::of(&key(), Some(&secret))
    }

    /// The plan of two environments that need host names.
    fn waited(hosts: &Hosts) -> Plan {
        let mut plan = Plan::default();
        hosts.wait(&mut plan);
        hosts.wait(&mut plan);
        plan
    }

    #[test]
    fn a_missing_key_is_created_once_and_without_an_owner() {
        let plan = waited(&Hosts::of(&key(), None));
        let [secret] = &*plan.ensure else { panic!("{:?}", plan.ensure) };
        assert_eq!((&secret.key, secret.kind.kind), (&key(), "Secret"));
        let manifest = secret.manifest.as_ref().expect("a new Secret").json();
        assert_eq!(manifest["metadata"].get("ownerReferences"), None, "no Instance takes the key with it");
        let content = manifest["data"]["key"].as_str().expect("base64");
        assert_eq!(STANDARD.decode(content).expect("base64").len(), 32);
        let [problem] = &*plan.problems else { panic!("{:?}", plan.problems) };
        assert_eq!((&*problem.reason, problem.waiting), ("HostKeyWaits", true));
        // The stored Secret is the key, and nothing is written any more.
        let known = hosts(&manifest["data"]);
        let plan = waited(&known);
        assert!(known.known().is_some() && plan.ensure.is_empty() && plan.problems.is_empty());
        // Another key is generated each time.
        let other = waited(&Hosts::of(&key(), None));
        let other = other.ensure[0].manifest.as_ref().expect("a new Secret").json();
        assert_ne!(other["data"]["key"], content);
    }

    #[test]
    fn an_invalid_key_is_reported_and_never_replaced() {
        for (data, problem) in [
            (json!({}), "it is missing"),
            (json!({"key": "AAAA"}), "it has 3 bytes; expected 32 random bytes"),
            (json!({"key": STANDARD.encode([7; 33])}), "it has 33 bytes; expected 32 random bytes"),
        ] {
            let plan = waited(&hosts(&data));
            assert!(plan.ensure.is_empty(), "{data}");
            let [found] = &*plan.problems else { panic!("{:?}", plan.problems) };
            let begin = "the web interface waits: entry key of Secret crownlabs-system/crownlabs-machine-hosts is invalid: ";
            assert!(
                found.message.starts_with(&format!("{begin}{problem}. Restore the Secret")),
                "{}",
                found.message
            );
        }
    }

    #[test]
    fn without_host_names_no_key_is_needed() {
        let plan = waited(&Hosts::Common);
        assert!(plan.ensure.is_empty() && plan.problems.is_empty());
    }
}
