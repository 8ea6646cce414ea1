//! Whether the Instances of a cluster are named as new ones would be.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::labels;
use crate::config::Layout;

/// The sentence that none of the Instances with one environment, which have these Services, has the configured layout.
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
    let alone: Vec<Layout> = of_instances
        .into_values()
        .filter_map(|layouts| match layouts[..] {
            [only] => Some(only),
            _ => None,
        })
        .collect();
    let other = match configured {
        Layout::Classic => Layout::PerEnvironment,
        Layout::PerEnvironment => Layout::Classic,
    };
    let is_other = !alone.is_empty() && alone.iter().all(|layout| *layout == other);
    is_other.then(|| {
        format!(
            "controllers.instance.layout is {}, and each of the {} Instances with one environment that have a Service is {}: \
             set it so, unless the dashboard of this cluster has changed, too",
            word(configured),
            alone.len(),
            word(other)
        )
    })
}

/// A layout as the configuration has it.
fn word(layout: Layout) -> &'static str {
    match layout {
        Layout::Classic => "classic",
        Layout::PerEnvironment => "perEnvironment",
    }
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
    fn a_layout_that_no_instance_of_the_cluster_has_is_told() {
        let classic = [service("a", None), service("b", None)];
        let suffixed = [service("a", Some("main")), service("b", Some("main"))];
        // Of several environments, each has its own, whatever is configured.
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
