//! Checks whether the Instances of a cluster have the names that new ones would get.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::labels;
use crate::config::Layout;

/// Reports that no Instance with one environment has the configured layout. The Instances are recognised by their
/// Services.
pub fn mismatch(services: &[Value], configured: Layout) -> Option<String> {
    let mut of_instances: BTreeMap<(&str, &str), Vec<Layout>> = BTreeMap::new();
    for service in services {
        let metadata = &service["metadata"];
        let labels = &metadata["labels"];
        let Some(instance) = labels[labels::INSTANCE].as_str() else { continue };
        let is_per_environment = labels[labels::ENVIRONMENT].is_string();
        let layout = if is_per_environment { Layout::PerEnvironment } else { Layout::Classic };
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        of_instances.entry((namespace, instance)).or_default().push(layout);
    }
    let alone: Vec<Layout> =
        of_instances.into_values().filter(|layouts| layouts.len() == 1).flatten().collect();
    let (name, other, other_name) = match configured {
        Layout::Classic => ("classic", Layout::PerEnvironment, "perEnvironment"),
        Layout::PerEnvironment => ("perEnvironment", Layout::Classic, "classic"),
    };
    let is_other = !alone.is_empty() && alone.iter().all(|layout| *layout == other);
    is_other.then(|| {
        format!(
            "controllers.instance.layout is {name}, but each of the {} Instances with one environment and a Service is {other_name}: \
             change the key to match, unless the dashboard of this cluster changes as well",
            alone.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(instance: &str, environment: Option<&str>) -> Value {
        let mut labels = json!({"crownlabs.polito.it/instance": instance});
        if let Some(environment) = environment {
            labels["crownlabs.polito.it/environment"] = environment.into();
        }
        json!({"metadata": {"name": instance, "namespace": "tenant-ada", "labels": labels}})
    }

    #[test]
    fn a_layout_that_no_instance_of_the_cluster_has_is_reported() {
        let classic = [service("a", None), service("b", None)];
        let suffixed = [service("a", Some("main")), service("b", Some("main"))];
        // Each of several environments has its own Service in either layout.
        let several = [service("a", Some("one")), service("a", Some("two"))];
        let mixed = [service("a", None), service("b", Some("main"))];
        let foreign = [json!({"metadata": {"name": "x", "namespace": "tenant-ada"}})];
        for (services, configured, is_told) in [
            (&classic[..], Layout::Classic, false),
            (&classic, Layout::PerEnvironment, true),
            (&suffixed, Layout::Classic, true),
            (&suffixed, Layout::PerEnvironment, false),
            (&several, Layout::Classic, false),
            (&mixed, Layout::Classic, false),
            (&mixed, Layout::PerEnvironment, false),
            (&foreign, Layout::Classic, false),
            (&[], Layout::Classic, false),
        ] {
            assert_eq!(mismatch(services, configured).is_some(), is_told, "{services:?} {configured:?}");
        }
        let told = mismatch(&classic, Layout::PerEnvironment).expect("told");
        assert!(told.contains("layout is perEnvironment") && told.contains("each of the 2"), "{told}");
    }
}
