//! The use of Instances in the text format of Prometheus.

use std::fmt::Write;

use super::shared::Shared;
use super::telemetry::FAMILIES;
use super::usage::{Usage, Usages};
use crate::api::shown;
use crate::runtime::metric::Metric;

/// The values of the metric families for a pod, in their order.
const VALUES: [fn(&Usage) -> String; 3] = [
    |usage| format!("{}.{:03}", usage.millipercent / 1_000, usage.millipercent % 1_000),
    |usage| usage.memory.to_string(),
    |usage| usage.disk.to_string(),
];

/// Appends the metric families; nothing while there is no result.
pub fn append(shared: &Shared, text: &mut String) {
    shared.read(|usages| families(usages, text));
}

fn families(usages: &Usages, text: &mut String) {
    for (Metric { name, help, .. }, value) in FAMILIES.iter().zip(VALUES) {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (pod, usage) in usages.pods() {
            let (namespace, instance) = (label(&pod.key.namespace), label(&pod.instance));
            let (pod, value) = (label(&pod.key.name), value(usage));
            let _ = writeln!(
                text,
                "{name}{{namespace=\"{namespace}\",pod=\"{pod}\",instance=\"{instance}\"}} {value}"
            );
        }
    }
}

/// Escapes the value of a label. Kubernetes names need no escaping, but these come from the runtime.
fn label(value: &str) -> String {
    shown::escaped(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::select::Pod;
    use super::super::usage::{Processor, Sample};
    use super::*;
    use crate::api::shown::is_control;
    use crate::properties::{cases, hostile};
    use crate::runtime::ObjectKey;

    /// The values of the labels of a series, as Prometheus reads them.
    fn labels(series: &str) -> Option<Vec<String>> {
        let mut rest = series.split_once('{')?.1;
        let mut values = Vec::new();
        while let Some((_, after)) = rest.split_once("=\"") {
            let (mut value, mut characters) = (String::new(), after.char_indices());
            let end = loop {
                match characters.next()? {
                    (end, '"') => break end,
                    (_, '\\') => value.push(characters.next()?.1),
                    (_, character) => value.push(character),
                }
            };
            values.push(value);
            rest = &after[end + 1..];
        }
        rest.strip_prefix("} ")?.parse::<f64>().ok().map(|_| values)
    }

    proptest! {
        #![proptest_config(cases(1_000))]

        #[test]
        fn no_name_adds_a_series_or_a_label(namespace in hostile(), name in hostile(), instance in hostile()) {
            let shared = Shared::default();
            let key = ObjectKey::new(&namespace, &name);
            let pod = Pod { key, instance: instance.clone(), created: 1 };
            let sample = |at| Sample {
                container: "one".to_owned(),
                pod: pod.clone(),
                processor: Some(Processor { at, used: 1_000 }),
                memory: 5_000,
                disk: 12,
            };
            for at in [0, 1_000] {
                shared.advance(&[sample(at)]);
            }
            let mut text = String::new();
            append(&shared, &mut text);
            let series: Vec<&str> = text.lines().filter(|line| !line.starts_with("# ")).collect();
            prop_assert_eq!((series.len(), text.lines().count()), (3, 9), "{}", text);
            prop_assert!(!text.contains(|c| is_control(c) && c != '\n'), "{:?}", text);
            let expected = [namespace, name, instance].map(|value| shown::escaped(&value).into_owned());
            for line in series {
                let read = labels(line);
                prop_assert_eq!(read.as_deref(), Some(&expected[..]), "{}", line);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_pod_has_a_series_until_its_result_is_too_old() {
        let shared = Shared::default();
        let text = || {
            let mut text = String::new();
            append(&shared, &mut text);
            text
        };
        assert_eq!(text(), "");
        let key = ObjectKey::new("tenant-a", "pod\"\\");
        let sample = |at, used| Sample {
            container: "one".to_owned(),
            pod: Pod { key: key.clone(), instance: "lab".to_owned(), created: 1 },
            processor: Some(Processor { at, used }),
            memory: 5_000,
            disk: 12,
        };
        shared.advance(&[sample(0, 0)]);
        shared.advance(&[sample(1_000, 1_255)]);
        let labels = r#"{namespace="tenant-a",pod="pod\"\\",instance="lab"}"#;
        for line in [
            format!("crownlabs_instance_cpu_percent{labels} 125.500\n"),
            format!("crownlabs_instance_memory_working_set_bytes{labels} 5000\n"),
            format!("crownlabs_instance_disk_bytes{labels} 12\n"),
            "# TYPE crownlabs_instance_cpu_percent gauge\n".to_owned(),
        ] {
            assert!(text().contains(&line), "{line}{}", text());
        }
        tokio::time::advance(super::super::shared::LIFETIME).await;
        assert!(shared.of_pod("pod\"\\").is_some());
        tokio::time::advance(std::time::Duration::from_millis(1)).await;
        assert_eq!((text().as_str(), shared.of_pod("pod\"\\")), ("", None));
        shared.advance(&[sample(2_000, 1_255)]);
        assert!(shared.of_pod("pod\"\\").is_some(), "it is there again");
        shared.advance(&[]);
        assert!(!text().contains("pod="), "{}", text());
    }
}
