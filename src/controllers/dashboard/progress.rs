//! The progress of the start of a machine.

use jiff::{SignedDuration, Timestamp};

use super::standing::Standing;
use super::texts::template::table_key;
use crate::api::Instance;
use crate::api::condition::READY;
use crate::api::instance::{EnvironmentStatus, InstancePhase as Phase, StartStep};
use crate::api::reason;

/// The longest time from the creation of an Instance until it is ready that counts as a start. An Instance that took
/// longer was not running at first, or waited for resources.
const LONGEST: SignedDuration = SignedDuration::from_mins(30);

table_key! {
    /// A step of a start.
    pub enum Step {
        /// The disk is imported.
        Disk,
        /// No server is chosen yet.
        Scheduling,
        /// The server prepares volumes and network.
        Preparing,
        /// The server downloads the image.
        Pulling,
        /// The program or operating system starts.
        Booting,
    }
}

/// The progress of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// When the start began; `None` while the daemon has not processed it.
    pub since: Option<Timestamp>,
    /// The usual time of the first start of such a machine; `None` if none is known, or for a later start.
    pub usual: Option<SignedDuration>,
    /// The step of the part that is the furthest behind, if it is known.
    pub step: Option<Step>,
    /// The imported part of the disk, such as `41.5%`.
    pub imported: Option<String>,
}

impl Progress {
    /// Returns the progress of an Instance that starts. `others` are the Instances that the user can read.
    pub fn of<'a>(instance: &Instance, others: impl Iterator<Item = &'a Instance>) -> Option<Self> {
        if !Standing::of(instance).is_start() {
            return None;
        }
        let status = &instance.status;
        let ready = status.conditions.iter().find(|condition| condition.type_ == READY);
        let since = match ready {
            Some(ready) => Some(&ready.last_transition_time).filter(|_| ready.status == "False"),
            None => instance.metadata.creation_timestamp.as_ref(),
        };
        let importing = ready.filter(|ready| ready.reason == reason::IMPORTING);
        let is_first = status.initial_ready_time.is_empty();
        Some(Self {
            since: since.map(|since| since.0),
            usual: usual(instance, others).filter(|_| is_first),
            step: status.environments.iter().filter_map(step).min(),
            imported: importing.and_then(|ready| imported(&ready.message)),
        })
    }
}

/// Returns the step of an environment.
fn step(environment: &EnvironmentStatus) -> Option<Step> {
    if environment.phase == Phase::Importing {
        return Some(Step::Disk);
    }
    match environment.step {
        StartStep::Scheduling => Some(Step::Scheduling),
        StartStep::Preparing => Some(Step::Preparing),
        StartStep::Pulling => Some(Step::Pulling),
        StartStep::Booting => Some(Step::Booting),
        StartStep::Unset | StartStep::Other(_) => None,
    }
}

/// Returns the part of a disk that is imported, from the message of the condition.
fn imported(message: &str) -> Option<String> {
    let part = message.strip_suffix(" imported")?.rsplit(' ').next()?;
    part.strip_suffix('%')?.parse::<f32>().ok()?;
    Some(part.to_owned())
}

/// Returns the median of the times of the first starts of other Instances of the same Template.
fn usual<'a>(instance: &Instance, others: impl Iterator<Item = &'a Instance>) -> Option<SignedDuration> {
    let is_same = |other: &&Instance| other.spec.template_ref == instance.spec.template_ref;
    let time = |other: &Instance| other.status.initial_ready_time.parse::<SignedDuration>().ok();
    let is_start = |time: &SignedDuration| (SignedDuration::ZERO..=LONGEST).contains(time);
    let mut times: Vec<SignedDuration> = others.filter(is_same).filter_map(time).filter(is_start).collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "JSON literals read better as they are")]

    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::time;

    fn instance(template: &str, running: bool, status: Value) -> Instance {
        let spec = json!({"template.crownlabs.polito.it/TemplateRef": {"name": template, "namespace": "w"}, "running": running});
        let metadata =
            json!({"name": "vm", "namespace": "tenant-ada", "creationTimestamp": "2026-01-01T00:00:00Z"});
        let object = json!({"metadata": metadata, "spec": spec, "status": status});
        serde_json::from_value(object).expect("an Instance")
    }

    fn of(running: bool, status: Value) -> Option<Progress> {
        Progress::of(&instance("a", running, status), std::iter::empty())
    }

    fn ready(status: &str, reason: &str, message: &str) -> Value {
        json!([{"type": "Ready", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T01:00:00Z"}])
    }

    #[test]
    fn a_start_began_with_the_creation_or_when_the_machine_was_no_longer_off() {
        let (created, changed) = (time("2026-01-01T00:00:00Z"), time("2026-01-01T01:00:00Z"));
        for (status, since) in [
            (json!({}), Some(created)),
            (json!({"phase": "Starting", "conditions": ready("False", "Starting", "")}), Some(changed)),
            // The daemon has not processed the start yet.
            (json!({"phase": "Off", "conditions": ready("True", "Off", "")}), None),
        ] {
            assert_eq!(of(true, status.clone()).expect("it starts").since, since, "{status}");
        }
        for (running, phase) in [(true, "Ready"), (false, "Off"), (false, "Starting"), (true, "Failed")] {
            assert_eq!(of(running, json!({"phase": phase})), None, "{running} {phase}");
        }
    }

    #[test]
    fn the_part_that_is_furthest_behind_decides_the_step() {
        let step = |environments: Value| {
            let status = json!({"phase": "Starting", "environments": environments});
            of(true, status).expect("it starts").step
        };
        let at = |phase: &str, step: &str| json!({"name": "e", "phase": phase, "step": step});
        for (environments, expected) in [
            (json!([]), None),
            (json!([at("Starting", "")]), None),
            (json!([at("Importing", "")]), Some(Step::Disk)),
            (json!([at("Starting", "Scheduling")]), Some(Step::Scheduling)),
            (json!([at("Starting", "Pulling"), at("Starting", "Preparing")]), Some(Step::Preparing)),
            (json!([at("Ready", ""), at("Running", "Booting")]), Some(Step::Booting)),
            (json!([at("Starting", "Dancing")]), None),
        ] {
            assert_eq!(step(environments.clone()), expected, "{environments}");
        }
    }

    #[test]
    fn the_imported_part_is_read_from_the_condition() {
        for (reason, message, part) in [
            ("Importing", "DataVolume vm: 41.5% imported", Some("41.5%")),
            ("Importing", "The disk is being filled", None),
            ("Importing", "DataVolume vm: <b>% imported", None),
            ("ImportFailed", "DataVolume vm: 41.5% imported", None),
        ] {
            let status = json!({"phase": "Importing", "conditions": ready("False", reason, message)});
            let found = of(true, status).expect("it starts").imported;
            assert_eq!(found.as_deref(), part, "{message}");
        }
    }

    #[test]
    fn the_usual_time_is_the_median_of_other_first_starts() {
        let made = |template: &str, time: &str| instance(template, true, json!({"initialReadyTime": time}));
        let seconds = |time: Option<SignedDuration>| time.map(|time| time.as_secs());
        let first = instance("a", true, json!({"phase": "Starting"}));
        for (others, expected) in [
            (vec![], None),
            (vec![made("a", "1m30s")], Some(90)),
            (vec![made("a", "20s"), made("a", "2m0s"), made("a", "1m30s")], Some(90)),
            (vec![made("b", "20s"), made("a", "72h0m0s"), made("a", ""), made("a", "soon")], None),
        ] {
            let progress = Progress::of(&first, others.iter()).expect("it starts");
            assert_eq!(seconds(progress.usual), expected, "{others:?}");
        }
        let later = instance("a", true, json!({"phase": "Starting", "initialReadyTime": "50s"}));
        let others = [made("a", "1m30s")];
        assert_eq!(Progress::of(&later, others.iter()).expect("it starts").usual, None, "its disk exists");
    }
}
