//! Decides which attachment may use which range and which bridge. The older `PodConfig` has priority across the whole
//! cluster. A pure function.
//!
//! Granted ranges are equal or disjoint: nodes route by them, so two bridges cannot share an address. A bridge belongs
//! to one namespace. The ranges and bridges of a former spec count until its links are gone, so that the address of a
//! live link is in one pool only.

use std::collections::{BTreeMap, HashMap};

use ipnet::IpNet;

use super::ranges::Range;
use super::validate::{Attachment, Decisions, Verdict, attachments, shown};
use crate::api::pod_config::PodConfig;
use crate::api::reason::{self, Reason};
use crate::api::text::Text;
use crate::runtime::ObjectKey;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The end of the message about a range that overlaps a reserved one.
const RESERVED: &str = "which the cluster uses (controllers.podConfig.reservedCidrs): choose another range";

/// A range and a bridge with recorded links, independent of the `PodConfig` that claims them now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InUse {
    /// The namespace.
    pub namespace: String,
    /// The range.
    pub range: Range,
    /// The bridge.
    pub bridge: String,
}

/// The ranges and bridges granted so far, and those that they must not conflict with.
struct Granted<'a> {
    reserved: &'a [IpNet],
    in_use: &'a [InUse],
    /// Disjoint ranges by family and first address, each with its `PodConfig` and bridge.
    ranges: BTreeMap<(bool, u128), (Range, &'a ObjectKey, String)>,
    /// The bridges, each with a `PodConfig` that names it.
    bridges: HashMap<String, &'a ObjectKey>,
}

impl<'a> Granted<'a> {
    /// The granted range that overlaps this one, if any.
    fn overlapping(&self, range: &Range) -> Option<&(Range, &'a ObjectKey, String)> {
        let (family, _, last) = range.bounds();
        // The granted ranges are disjoint. Only the last one that begins before the end of this range can overlap it.
        let (_, found) = self.ranges.range(..=(family, last)).next_back()?;
        found.0.overlaps(range).then_some(found)
    }

    /// Decides about an attachment, and grants it if nothing conflicts with it.
    fn verdict(&mut self, place: usize, attachment: Attachment, key: &'a ObjectKey) -> Verdict {
        let path = format!("spec.networkAttachments[{place}]");
        let Attachment { range, bridge, .. } = &attachment;
        let overlap =
            |what: String| (reason::NETWORK_OVERLAP, format!("{path}.cidr {range} overlaps {what}"));
        let refused = |(reason, message): (Reason, String)| {
            Verdict::Refused(Problem::fault(Component::Whole, reason, message))
        };
        let reserved = self.reserved.iter().find(|reserved| range.overlaps(reserved));
        let reserved = reserved.map(|reserved| overlap(format!("{reserved}, {RESERVED}")));
        let links = InUse { namespace: key.namespace.to_string(), range: *range, bridge: bridge.clone() };
        // Existing links stay: a range that the configuration reserves later does not remove links.
        if let Some(reserved) = reserved.clone().filter(|_| !self.in_use.contains(&links)) {
            return refused(reserved);
        }
        if let Some(other) = self.bridges.get(bridge).filter(|other| other.namespace != key.namespace) {
            let message = format!(
                "{path}.master {} is the bridge of PodConfig {other} in another namespace: choose another name",
                shown(bridge)
            );
            return refused((reason::BRIDGE_CONFLICT, message));
        }
        if let Some((other, owner, on)) = self.overlapping(range)
            && (other, on) != (range, bridge)
        {
            let what = format!(
                "{other} on the bridge {} of PodConfig {owner}, which is older: choose another range, or the same range and bridge",
                shown(on)
            );
            return refused(overlap(what));
        }
        let (family, first, _) = range.bounds();
        self.ranges.entry((family, first)).or_insert_with(|| (*range, key, bridge.clone()));
        self.bridges.entry(bridge.clone()).or_insert(key);
        if let Some((reason, message)) = reserved {
            return Verdict::Waiting(attachment, Problem::fault(Component::Whole, reason, message));
        }
        let Some(left) = leftover(range, bridge, &key.namespace, self.in_use) else {
            return Verdict::Granted(attachment);
        };
        let InUse { namespace, range: other, bridge: on } = left;
        let (reason, message) = if other.overlaps(range) {
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

/// Decides about the attachments of all `PodConfig`s.
pub fn decide(configs: &[(ObjectKey, &PodConfig)], reserved: &[IpNet], in_use: &[InUse]) -> Decisions {
    let mut by_age: Vec<_> = configs.iter().map(|(key, config)| (age(config), key, *config)).collect();
    by_age.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    let (ranges, bridges) = (BTreeMap::new(), HashMap::new());
    let mut granted = Granted { reserved, in_use, ranges, bridges };
    let decided = by_age.into_iter().map(|(_, key, config)| {
        let checked = attachments(&config.spec).into_iter();
        let verdicts = checked.enumerate().map(|(place, checked)| match checked {
            Err(problem) => Verdict::Refused(problem),
            Ok(attachment) => granted.verdict(place, attachment, key),
        });
        (key.clone(), verdicts.collect())
    });
    decided.collect()
}

/// The creation time in seconds. A `PodConfig` without a creation time counts as the youngest.
fn age(config: &PodConfig) -> i64 {
    config.metadata.creation_timestamp.as_ref().map_or(i64::MAX, |time| time.0.as_second())
}

/// A range or bridge of another pool that is still in use and conflicts with this one.
fn leftover<'a>(range: &Range, bridge: &str, namespace: &Text, in_use: &'a [InUse]) -> Option<&'a InUse> {
    in_use.iter().find(|used| {
        let is_own_pool = used.range == *range && *namespace == *used.namespace;
        let has_bridge = used.bridge == *bridge && *namespace != *used.namespace;
        !is_own_pool && (used.range.overlaps(range) || has_bridge)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// A `PodConfig` with this creation time and these attachments, each as `bridge range`.
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

    /// Asserts that each verdict contains the expected text.
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
    fn an_attachment_waits_for_the_remaining_links_of_a_former_spec() {
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
        /// Granted ranges are equal or disjoint, equal ranges have the same bridge, and a bridge has one namespace. The
        /// order of the objects does not matter.
        #[test]
        fn granted_ranges_and_bridges_do_not_conflict(
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
                    prop_assert!(is_same || !one.range.overlaps(&other.range));
                }
            }
        }
    }
}
