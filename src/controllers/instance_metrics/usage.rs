//! The use of pods, from the samples of two rounds.

use std::collections::BTreeMap;

use super::select::Pod;
use crate::runtime::ObjectKey;

/// The processor time of a container at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// The time, in nanoseconds since 1970.
    pub at: i64,
    /// The processor time since the start of the container, in nanoseconds.
    pub used: u64,
}

/// The runtime's measurement of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The id of the container, which is never reused.
    pub container: String,
    /// Its pod.
    pub pod: Pod,
    /// Its processor time; `None` if the runtime does not know it.
    pub processor: Option<Processor>,
    /// Its working set of memory, in bytes.
    pub memory: u64,
    /// Its files outside volumes, in bytes.
    pub disk: u64,
}

/// The use of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The processor use, in thousandths of a percent of one core: 100,000 for one fully busy core.
    pub millipercent: u32,
    /// Memory, in bytes.
    pub memory: u64,
    /// Files, in bytes.
    pub disk: u64,
}

/// The use of all pods of Instances on a node, and the samples to compare with the next round.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usages {
    /// The last sample of each container, with its processor use at that time.
    containers: BTreeMap<String, (Option<Processor>, u32)>,
    pods: BTreeMap<ObjectKey, (Pod, Usage)>,
}

impl Usages {
    /// The use after another round. It contains only pods with samples in this round. The containers of a pod are added
    /// up.
    pub fn after(&self, samples: &[Sample]) -> Self {
        let mut next = Self::default();
        for Sample { container, pod, processor, memory, disk } in samples {
            let known = self.containers.get(container).copied();
            let (processor, millipercent) = match (known, *processor) {
                (Some((Some(before), last)), Some(now)) => (Some(now), share(before, now, last)),
                // Not measured in this round.
                (Some((before, last)), None) => (before, last),
                (Some((None, _)) | None, now) => (now, 0),
            };
            next.containers.insert(container.clone(), (processor, millipercent));
            let (_, usage) =
                next.pods.entry(pod.key.clone()).or_insert_with(|| (pod.clone(), Usage::default()));
            usage.millipercent = usage.millipercent.saturating_add(millipercent);
            usage.memory = usage.memory.saturating_add(*memory);
            usage.disk = usage.disk.saturating_add(*disk);
        }
        next
    }

    /// The use of the pod with this name; of the newest pod if several namespaces have one.
    pub fn of_pod(&self, name: &str) -> Option<Usage> {
        let named = self.pods.values().filter(|(pod, _)| *pod.key.name == *name);
        named.max_by_key(|(pod, _)| pod.created).map(|(_, usage)| *usage)
    }

    /// All pods with their use, sorted by namespace and name.
    pub fn pods(&self) -> impl Iterator<Item = (&Pod, &Usage)> {
        self.pods.values().map(|(pod, usage)| (pod, usage))
    }
}

/// The processor use between two samples, in thousandths of a percent. It is `last`, the previous use, if no time has
/// passed or the clock was set back. It is 0 if the counter was reset because the container has restarted.
fn share(before: Processor, now: Processor, last: u32) -> u32 {
    let passed = now.at.checked_sub(before.at).and_then(|passed| u128::try_from(passed).ok());
    let Some(passed) = passed.filter(|passed| *passed > 0) else { return last };
    let Some(used) = now.used.checked_sub(before.used) else { return 0 };
    u32::try_from(u128::from(used) * 100_000 / passed).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pod(namespace: &str, name: &str, created: i64) -> Pod {
        let key = ObjectKey::new(namespace, name);
        Pod { key, instance: "lab".to_owned(), created }
    }

    fn sample(container: &str, pod: &Pod, at: i64, used: u64) -> Sample {
        let processor = Some(Processor { at, used });
        Sample { container: container.to_owned(), pod: pod.clone(), processor, memory: 10, disk: 3 }
    }

    /// The case, its samples, and the use after each sample.
    type Row = (&'static str, &'static [(i64, u64)], &'static [u32]);

    /// The processor use of one container after each of these samples, in thousandths of a percent.
    fn course(samples: &[(i64, u64)]) -> Vec<u32> {
        let pod = pod("a", "pod", 1);
        let mut usages = Usages::default();
        let mut found = Vec::new();
        for (at, used) in samples {
            usages = usages.after(&[sample("one", &pod, *at, *used)]);
            found.push(usages.of_pod("pod").expect("measured").millipercent);
        }
        found
    }

    #[test]
    fn processor_use_is_computed_between_two_samples() {
        let table: &[Row] = &[
            ("the first says nothing", &[(0, 5_000)], &[0]),
            ("half of one", &[(0, 0), (1_000_000_000, 500_000_000)], &[0, 50_000]),
            ("two and a half", &[(0, 7), (1_000_000_000, 2_500_000_007)], &[0, 250_000]),
            ("idle", &[(0, 9), (1_000_000_000, 9)], &[0, 0]),
            ("the same moment", &[(0, 0), (100, 50), (100, 50)], &[0, 50_000, 50_000]),
            ("the same moment, another count", &[(0, 0), (100, 50), (100, 90)], &[0, 50_000, 50_000]),
            ("the counter goes back", &[(0, 900), (100, 20), (200, 70)], &[0, 0, 50_000]),
            ("the clock goes back", &[(0, 0), (100, 50), (40, 60), (140, 85)], &[0, 50_000, 50_000, 25_000]),
            ("no such use", &[(0, 0), (1, u64::MAX)], &[0, u32::MAX]),
        ];
        for (what, samples, expected) in table {
            assert_eq!(course(samples), *expected, "{what}");
        }
        assert_eq!(course(&[(i64::MIN, 0), (i64::MAX, 5), (0, 9)]), [0, 0, 0]);
    }

    #[test]
    fn an_unmeasured_container_keeps_its_use() {
        let pod = pod("a", "pod", 1);
        let mut bare = sample("one", &pod, 0, 0);
        bare.processor = None;
        let usages = Usages::default().after(std::slice::from_ref(&bare));
        assert_eq!(usages.of_pod("pod"), Some(Usage { millipercent: 0, memory: 10, disk: 3 }));
        let usages = usages.after(&[sample("one", &pod, 0, 0)]).after(&[sample("one", &pod, 100, 30)]);
        let usages = usages.after(std::slice::from_ref(&bare));
        assert_eq!(usages.of_pod("pod").map(|usage| usage.millipercent), Some(30_000));
        let usages = usages.after(&[sample("one", &pod, 200, 40)]);
        assert_eq!(usages.of_pod("pod").map(|usage| usage.millipercent), Some(10_000));
    }

    #[test]
    fn the_containers_of_a_pod_are_added_up() {
        let pod = pod("a", "pod", 1);
        let round = |at, used: [u64; 2]| [sample("one", &pod, at, used[0]), sample("two", &pod, at, used[1])];
        let usages = Usages::default().after(&round(0, [0, 0])).after(&round(100, [10, 25]));
        assert_eq!(usages.of_pod("pod"), Some(Usage { millipercent: 35_000, memory: 20, disk: 6 }));
        // One container restarts and gets another id.
        let usages = usages.after(&[sample("one", &pod, 200, 20), sample("three", &pod, 200, 1)]);
        assert_eq!(usages.of_pod("pod").map(|usage| usage.millipercent), Some(10_000));
        assert_eq!(usages.containers.len(), 2, "the one that has gone is forgotten");
    }

    #[test]
    fn the_newest_of_pods_with_one_name_answers_and_both_are_shown() {
        let (old, new) = (pod("a", "pod", 1), pod("b", "pod", 2));
        let mut of_new = sample("two", &new, 0, 0);
        of_new.memory = 77;
        let usages = Usages::default().after(&[sample("one", &old, 0, 0), of_new]);
        assert_eq!(usages.of_pod("pod").map(|usage| usage.memory), Some(77));
        assert_eq!(usages.pods().count(), 2);
        assert_eq!(usages.of_pod("other"), None);
    }

    #[test]
    fn a_removed_pod_has_no_use() {
        let usages = Usages::default().after(&[sample("one", &pod("a", "pod", 1), 0, 0)]).after(&[]);
        assert_eq!(usages, Usages::default());
    }

    proptest! {
        #[test]
        fn a_container_never_uses_more_than_it_did(
            steps in prop::collection::vec((1_i64..10_000_000_000, 0_u64..64_000), 1..20),
        ) {
            // Each step: the time that passes, and the busy thousandths of a core in it.
            let (mut at, mut used, mut samples) = (1_700_000_000_000_000_000_i64, 0_u64, vec![(0, 0)]);
            samples[0] = (at, used);
            for (passed, busy) in &steps {
                at += passed;
                used += u64::try_from(i128::from(*passed) * i128::from(*busy) / 1_000).unwrap();
                samples.push((at, used));
            }
            let found = course(&samples);
            for ((passed, busy), found) in steps.iter().zip(&found[1..]) {
                let expected = u32::try_from(busy * 100).unwrap();
                // The rounding error of whole nanoseconds over the elapsed time.
                let rounding = u32::try_from(100_000 / passed).unwrap_or(0) + 1;
                prop_assert!(*found <= expected && expected - found <= rounding, "{found}, not {expected}");
            }
        }

        #[test]
        fn no_samples_cause_a_panic(
            rounds in prop::collection::vec(
                prop::collection::vec((0_u8..4, 0_u8..3, any::<Option<(i64, u64)>>(), any::<u64>()), 0..6),
                0..6,
            ),
        ) {
            let mut usages = Usages::default();
            for round in rounds {
                let samples: Vec<Sample> = round
                    .iter()
                    .map(|(container, of, processor, bytes)| Sample {
                        container: container.to_string(),
                        pod: pod(&of.to_string(), "pod", i64::from(*of)),
                        processor: processor.map(|(at, used)| Processor { at, used }),
                        memory: *bytes,
                        disk: *bytes,
                    })
                    .collect();
                usages = usages.after(&samples);
                prop_assert!(usages.containers.len() <= samples.len());
                prop_assert!(usages.pods().count() <= samples.len());
            }
        }
    }
}
