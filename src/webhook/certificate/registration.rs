//! Reports missing webhook configurations. Without them, the API server calls no webhook, and only RBAC
//! restricts the writes of users.

use std::sync::atomic::{AtomicBool, Ordering};

use tracing::{info, warn};

use super::rotator::Stores;
use crate::runtime::readiness::Readiness;

/// The name in the readiness.
const NAME: &str = "webhook configurations";

/// Reports missing webhook configurations in the log and the readiness.
pub struct Registration {
    readiness: Readiness,
    /// Whether the last report was about a missing configuration.
    is_missing: AtomicBool,
}

impl Registration {
    /// Creates reports in this readiness.
    pub fn new(readiness: Readiness) -> Self {
        Self { readiness, is_missing: AtomicBool::new(false) }
    }

    /// Reports which configurations of this name do not exist. The log has one warning until all of them exist,
    /// and the readiness has a line until then.
    pub fn report(&self, stores: &Stores, name: &str) {
        let missing = missing(stores, name);
        let was_missing = self.is_missing.swap(missing.is_some(), Ordering::Relaxed);
        match &missing {
            Some(sentence) if !was_missing => warn!("{sentence}"),
            None if was_missing => info!(name, "the webhook configurations exist again"),
            _ => {}
        }
        self.readiness.set_notice(NAME, missing);
    }
}

/// Returns a sentence about the configurations of this name that do not exist, with the effect and the remedy;
/// `None` if all of them exist.
fn missing(stores: &Stores, name: &str) -> Option<String> {
    let (validating, mutating) =
        (stores.validating.get("", name).is_none(), stores.mutating.get("", name).is_none());
    let what = match (validating, mutating) {
        (false, false) => return None,
        (true, true) => {
            format!("ValidatingWebhookConfiguration and MutatingWebhookConfiguration {name} do not exist")
        }
        (true, false) => format!("ValidatingWebhookConfiguration {name} does not exist"),
        (false, true) => format!("MutatingWebhookConfiguration {name} does not exist"),
    };
    let effect = if validating {
        "the writes of users are not checked, and a student can become a manager"
    } else {
        "Tenants get no defaults"
    };
    Some(format!(
        "{what}, so {effect}; run `helm upgrade` for this release, or apply manifests/40-webhooks.yaml"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::runtime::store::Store;

    fn configuration() -> Value {
        json!({"metadata": {"name": "crownlabs-webhook", "uid": "u"}, "webhooks": []})
    }

    #[test]
    fn missing_configurations_are_reported_until_they_exist() {
        let stores = Stores {
            secrets: Arc::new(Store::new(true)),
            mutating: Arc::new(Store::new(true)),
            validating: Arc::new(Store::new(true)),
        };
        let (readiness, name) = (Readiness::default(), "crownlabs-webhook");
        readiness.complete();
        let registration = Registration::new(readiness.clone());
        let reported = || {
            registration.report(&stores, name);
            let (is_ready, text) = readiness.report();
            assert!(is_ready, "the replica stays ready: {text}");
            text
        };
        let begin = "[!] webhook configurations: ";
        let both = format!(
            "{begin}ValidatingWebhookConfiguration and MutatingWebhookConfiguration {name} do not exist, so the writes of users \
             are not checked, and a student can become a manager; run `helm upgrade`"
        );
        for _ in 0..2 {
            let text = reported();
            assert!(text.starts_with(&both) && text.matches(begin).count() == 1, "{text}");
            assert!(registration.is_missing.load(Ordering::Relaxed), "the warning is not repeated");
        }
        stores.validating.apply_event(serde_json::from_value(configuration()).expect("a configuration"));
        let text = reported();
        assert!(text.starts_with(&format!("{begin}MutatingWebhookConfiguration {name} does not")), "{text}");
        assert!(text.contains("so Tenants get no defaults; "), "{text}");
        stores.mutating.apply_event(serde_json::from_value(configuration()).expect("a configuration"));
        assert_eq!(reported(), "ready\n");
        assert!(!registration.is_missing.load(Ordering::Relaxed));
        stores.validating.delete_event(&serde_json::from_value(configuration()).expect("a configuration"));
        let text = reported();
        assert!(
            text.starts_with(&format!("{begin}ValidatingWebhookConfiguration {name} does not")),
            "{text}"
        );
    }
}
