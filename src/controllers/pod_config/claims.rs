//! Who may use which range and which bridge: of all attachments in the cluster, the older one. A pure function.
//!
//! Ranges that are granted are equal or disjoint: nodes route by them, so two bridges cannot share an address. A bridge
//! belongs to one namespace. What a former spec has claimed counts until the links are gone, so that an address of a live
//! link is in one pool only.

use std::collections::{BTreeMap, HashMap};

use ipnet::IpNet;

use super::ranges::Range;
use super::validate::{Attachment, Verdict, Verdicts, attachments, shown};
use crate::api::pod_config::PodConfig;
use crate::api::reason::{self, Reason};
use crate::api::text::Text;
use crate::runtime::ObjectKey;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// A range and a bridge of which the records have links, whichever `PodConfig` claims them now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InUse {
    /// The namespace.
    pub namespace: String,
    /// The range.
    pub range: Range,
    /// The bridge.
    pub bridge: String,
}

/// What was granted so far.
#[derive(Default)]
struct Granted<'a> {
    /// Disjoint ranges by their family and first address: the range, and whose it is, on which bridge.
    ranges: BTreeMap<(bool, u128), (Range, &'a ObjectKey, String)>,
    /// The namespaces of bridges, and a `PodConfig` that names them.
    bridges: HashMap<String, &'a ObjectKey>,
}

impl Granted<'_> {
    /// The range that overlaps this one, if there is one.
    fn overlapping(&self, range: &Range) -> Option<&(Range, &ObjectKey, String)> {
        let (family, _, last) = range.bounds();
        // Of disjoint ranges, the one that begins last before the end of this one is the only one that can reach into it,
        // or lies within it.
        let (_, found) = self.ranges.range(..=(family, last)).next_back()?;
        found.0.overlaps(&range.net()).then_some(found)
    }
}

/// Decides about the attachments of all `PodConfig`s.
pub fn decide(
    configs: &[(ObjectKey, &PodConfig)],
    reserved: &[IpNet],
    in_use: &[InUse],
) -> HashMap<ObjectKey, Verdicts> {
    let mut by_age: Vec<_> = configs.iter().map(|(key, config)| (age(config), key, *config)).collect();
    by_age.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    let mut granted = Granted::default();
    let decided = by_age.into_iter().map(|(_, key, config)| {
        let checked = attachments(&config.spec).into_iter();
        let verdicts = checked.enumerate().map(|(place, checked)| match checked {
            Err(problem) => Verdict::Refused(problem),
            Ok(attachment) => verdict(place, attachment, key, reserved, in_use, &mut granted),
        });
        (key.clone(), verdicts.collect())
    });
    decided.collect()
}

/// When it was made, in seconds; one that has no such time is the youngest.
fn age(config: &PodConfig) -> i64 {
    config.metadata.creation_timestamp.as_ref().map_or(i64::MAX, |time| time.0.as_second())
}

fn verdict<'a>(
    place: usize,
    attachment: Attachment,
    key: &'a ObjectKey,
    reserved: &[IpNet],
    in_use: &[InUse],
    granted: &mut Granted<'a>,
) -> Verdict {
    let path = format!("spec.networkAttachments[{place}]");
    let Attachment { range, bridge, .. } = &attachment;
    let overlap = |what: String| (reason::NETWORK_OVERLAP, format!("{path}.cidr {range} overlaps {what}"));
    let refused = |(reason, message): (Reason, String)| {
        Verdict::Refused(Problem::fault(Component::Whole, reason, message))
    };
    if let Some(reserved) = reserved.iter().find(|reserved| range.overlaps(reserved)) {
        let what = format!(
            "{reserved}, which the cluster uses (controllers.podConfig.reservedCidrs): choose another range"
        );
        return refused(overlap(what));
    }
    if let Some(other) = granted.bridges.get(bridge).filter(|other| other.namespace != key.namespace) {
        let message = format!(
            "{path}.master {} is the bridge of PodConfig {other} in another namespace: choose another name",
            shown(bridge)
        );
        return refused((reason::BRIDGE_CONFLICT, message));
    }
    if let Some((other, owner, on)) = granted.overlapping(range)
        && (other, on) != (range, bridge)
    {
        let what = format!(
            "{other} on the bridge {} of PodConfig {owner}, which is older: choose another range, or the same range and bridge",
            shown(on)
        );
        return refused(overlap(what));
    }
    let (family, first, _) = range.bounds();
    granted.ranges.entry((family, first)).or_insert_with(|| (*range, key, bridge.clone()));
    granted.bridges.entry(bridge.clone()).or_insert(key);
    match leftover(range, bridge, &key.namespace, in_use) {
        None => Verdict::Granted(attachment),
        Some(left) => {
            let InUse { namespace, range: other, bridge: on } = left;
            let (reason, message) = if left.range.overlaps(&range.net()) {
                overlap(format!("{other} of namespace {namespace}, whose links are still being removed"))
            } else {
                let on = shown(on);
                let message = format!(
                    "{path}.master {on} is a bridge of namespace {namespace}, whose links are still being removed"
                );
                (reason::BRIDGE_CONFLICT, message)
            };
            Verdict::Waiting(attachment, Problem::waiting(Component::Whole, reason, message))
        }
    }
}

/// What is in use in another pool and stands in the way.
fn leftover<'a>(range: &Range, bridge: &str, namespace: &Text, in_use: &'a [InUse]) -> Option<&'a InUse> {
    in_use.iter().find(|used| {
        let is_own_pool = used.range == *range && *namespace == *used.namespace;
        let has_bridge = used.bridge == *bridge && *namespace != *used.namespace;
        !is_own_pool && (used.range.overlaps(&range.net()) || has_bridge)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// A `PodConfig` of that age with attachments, each as `bridge range`.
    fn config(key: &str, created: u32, attachments: &[&str]) -> PodConfig {
        let (namespace, name) = key.split_once('/').expect("namespace/name");
        let list: Vec<Value> = attachments
            .iter()
            .enumerate()
            .map(|(place, text)| {
                let (bridge, cidr) = text.split_once(' ').expect("a bridge and a range");
                json!({"name": format!("a{place}"), "linkType": "veth", "parent": "", "master": bridge, "cidr": cidr})
            })
            .collect();
        let created = format!("2026-01-01T00:00:{created:02}Z");
        serde_json::from_value(json!({
            "metadata": {"namespace": namespace, "name": name, "uid": key, "creationTimestamp": created},
            "spec": {"networkAttachments": list},
        }))
        .expect("a PodConfig")
    }

    /// The verdicts, as words.
    fn decided(configs: &[PodConfig], reserved: &[&str], in_use: &[InUse]) -> Vec<String> {
        let all: Vec<_> = configs.iter().map(|config| (ObjectKey::of(config), config)).collect();
        let reserved: Vec<IpNet> = reserved.iter().map(|text| text.parse().expect("a network")).collect();
        let verdicts = decide(&all, &reserved, in_use);
        all.iter()
            .flat_map(|(key, _)| &verdicts[key])
            .map(|verdict| match verdict {
                Verdict::Granted(_) => "granted".to_owned(),
                Verdict::Waiting(_, problem) => format!("waiting {}", problem.reason),
                Verdict::Refused(problem) => format!("{} {}", problem.reason, problem.message),
            })
            .collect()
    }

    fn used(namespace: &str, range: &str, bridge: &str) -> InUse {
        InUse {
            namespace: namespace.to_owned(),
            range: Range::parse(range).expect("a range"),
            bridge: bridge.to_owned(),
        }
    }

    /// Asserts what the verdicts begin with, or contain.
    fn assert_decided(found: &[String], expected: &[&str]) {
        let is_so = |(found, expected): (&String, &&str)| found.contains(expected);
        let all = found.len() == expected.len() && found.iter().zip(expected).all(is_so);
        assert!(all, "{found:#?}\ninstead of {expected:#?}");
    }

    #[test]
    fn the_older_one_has_the_range_and_the_bridge() {
        let shared = [
            config("a/one", 1, &["br0 10.1.0.0/24", "br1 10.2.0.0/24"]),
            config("a/two", 2, &["br0 10.1.0.5/24"]),
        ];
        assert_decided(&decided(&shared, &[], &[]), &["granted", "granted", "granted"]);
        let overlapping = [
            config("a/young", 3, &["br0 10.1.0.0/24", "br9 10.9.0.0/24"]),
            config("a/old", 1, &["br0 10.1.0.0/16"]),
            config("b/same", 3, &["br0 10.9.0.0/24", "br2 10.9.0.0/25", "br2 10.8.0.0/24"]),
        ];
        let expected = [
            "10.1.0.0/24 overlaps 10.1.0.0/16 on the bridge \"br0\" of PodConfig a/old",
            "granted",
            "granted",
            "BridgeConflict",
            "NetworkOverlap",
            "granted",
        ];
        assert_decided(&decided(&overlapping, &[], &[]), &expected);
        let unequal = [config("a/one", 1, &["br0 10.1.0.0/24", "br0 10.1.0.128/25", "br0 10.2.0.0/24"])];
        assert_decided(&decided(&unequal, &[], &[]), &["granted", "NetworkOverlap", "granted"]);
        let refused = [
            config("a/one", 1, &["br0 10.1.0.0/24"]),
            config("a/two", 2, &["br1 10.1.0.0/25"]),
            config("a/three", 3, &["br1 fd00::/64"]),
        ];
        assert_decided(&decided(&refused, &[], &[]), &["granted", "NetworkOverlap", "granted"]);
    }

    #[test]
    fn the_ranges_of_the_cluster_are_refused() {
        let configs =
            [config("a/one", 1, &["br0 10.96.0.0/24", "br1 10.0.0.0/8", "br2 fd01::/64", "br3 10.1.0.0/24"])];
        let found = decided(&configs, &["10.96.0.0/12", "fd00::/16"], &[]);
        assert_decided(
            &found,
            &["overlaps 10.96.0.0/12, which the cluster uses", "NetworkOverlap", "granted", "granted"],
        );
    }

    #[test]
    fn what_is_left_of_a_former_spec_is_waited_for() {
        let configs = [config("a/one", 1, &["br0 10.1.0.0/24"]), config("a/two", 2, &["br1 10.1.0.0/25"])];
        for (in_use, expected) in [
            (used("a", "10.1.0.0/24", "br0"), "granted"),
            (used("a", "10.1.0.0/24", "br7"), "granted"),
            (used("a", "10.1.0.0/25", "br0"), "waiting NetworkOverlap"),
            (used("b", "10.1.0.0/24", "br0"), "waiting NetworkOverlap"),
            (used("b", "10.2.0.0/24", "br0"), "waiting BridgeConflict"),
            (used("a", "10.2.0.0/24", "br0"), "granted"),
        ] {
            let found = decided(&configs, &[], std::slice::from_ref(&in_use));
            // The younger one does not get the range while the older one waits for it.
            assert_decided(&found, &[expected, "NetworkOverlap"]);
        }
    }

    proptest! {
        /// Of what is granted, ranges are equal or disjoint, equal ones have one bridge, and a bridge has one namespace;
        /// and the order in which the objects are given does not matter.
        #[test]
        fn what_is_granted_fits_together(
            made in proptest::collection::vec((0..3u8, 0..4u32, proptest::collection::vec((0..4u8, 0..8u8, 20..31u8), 1..4)), 1..8),
        ) {
            let configs: Vec<PodConfig> = made.iter().enumerate().map(|(number, (namespace, age, list))| {
                let list: Vec<String> = list.iter().map(|(bridge, host, prefix)| format!("br{bridge} 10.0.{host}.0/{prefix}")).collect();
                config(&format!("n{namespace}/c{number}"), *age, &list.iter().map(String::as_str).collect::<Vec<_>>())
            }).collect();
            let mut all: Vec<_> = configs.iter().map(|config| (ObjectKey::of(config), config)).collect();
            let verdicts = decide(&all, &[], &[]);
            all.reverse();
            prop_assert_eq!(&verdicts, &decide(&all, &[], &[]));
            let granted: Vec<_> = verdicts.iter().flat_map(|(key, list)| {
                list.iter().filter_map(move |verdict| match verdict {
                    Verdict::Granted(attachment) | Verdict::Waiting(attachment, _) => Some((&key.namespace, attachment)),
                    Verdict::Refused(_) => None,
                })
            }).collect();
            for (place, (namespace, one)) in granted.iter().enumerate() {
                for (other_namespace, other) in &granted[place + 1..] {
                    prop_assert!(one.bridge != other.bridge || namespace == other_namespace);
                    let is_same = one.range == other.range && one.bridge == other.bridge;
                    prop_assert!(is_same || !one.range.overlaps(&other.range.net()));
                }
            }
        }
    }
}
