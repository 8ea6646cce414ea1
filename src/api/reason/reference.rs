//! Generates the reference of conditions and reasons, and checks that the table matches the reasons that the loops
//! write.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::{CauseRow, Declared, Reason, Row, Source};
use crate::api::condition::{self, TYPES};
use crate::api::instance::InstancePhase;
use crate::reference::{HEADER, check, code, table};

/// The place of reasons that are used in events.
const EVENT: &str = "Event";
/// The roles that may have to act.
const PEOPLE: [&str; 4] = ["Student", "Teacher", "Administrator", "Nobody"];
/// The folders of the loops, and the kind that each loop writes to.
const LOOPS: [(&str, &str); 12] = [
    ("workspace", "Workspace"),
    ("tenant", "Tenant"),
    ("instance", "Instance"),
    ("public_exposure", "Instance"),
    ("shared_volume", "SharedVolume"),
    ("pvc_mirror", "PersistentVolumeClaim"),
    ("snapshot", "InstanceSnapshot"),
    ("inactivity", "Instance"),
    ("expiration", "Instance"),
    ("termination", "Instance"),
    ("submission", "Instance"),
    ("image_list", "ImageList"),
];

/// Formats words as a list in a sentence, as code or as plain text.
fn list(words: &[&str]) -> String {
    words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", ")
}

/// Where a reason appears on objects of a kind: the conditions, and whether in events.
fn places(row: &Row, kind: &str) -> String {
    let seen = row.seen.iter().filter(|(kinds, _)| kinds.contains(&kind));
    let places: Vec<&str> = seen.flat_map(|(_, places)| *places).copied().collect();
    let conditions: Vec<&str> = places.iter().copied().filter(|place| *place != EVENT).collect();
    let event = places.contains(&EVENT).then(|| "event".to_owned());
    let all = Some(list(&conditions)).filter(|text| !text.is_empty()).into_iter().chain(event);
    all.collect::<Vec<_>>().join("; ")
}

/// The kinds that a reason is used on.
fn kinds(row: &Row) -> impl Iterator<Item = &'static str> {
    row.seen.iter().flat_map(|(kinds, _)| *kinds).copied()
}

/// The reasons on objects of a kind. For an empty kind, the reasons that no object has.
fn reasons(kind: &str) -> String {
    let is_of =
        |row: &&Row| kinds(row).any(|found| found == kind) || kind.is_empty() && kinds(row).next().is_none();
    let mut rows: Vec<&Row> = Row::all().filter(is_of).collect();
    rows.sort_by_key(|row| row.reason.as_str());
    let cells = |row: &&Row| {
        let who = row.who.iter().map(|who| who.to_lowercase()).collect::<Vec<_>>().join(", ");
        vec![code(&row.reason), places(row, kind), row.meaning.to_owned(), who, row.remedy.to_owned()]
    };
    table(&["reason", "seen on", "meaning", "who", "what to do"], rows.iter().map(cells))
}

const CAUSES_ARE: &str = "A problem that an object of an environment reports appears in the condition `Ready` of the Instance with the kind and the name of the object, in one event, in `crownlabs why` and \
in the phase. If the problem needs human action and lasts for `controllers.instance.stalledAfter`, the phase changes and the Instance becomes `Stalled`. The pauses \
between two attempts (`…BackOff`) report the cause of the last attempt.";

/// The table of words that objects use to report why a machine does not run.
fn causes() -> String {
    let field = |source: Source| match source {
        Source::Refusal => "Deployment, VirtualMachineInstance: why its pod is rejected",
        Source::Rollout => "Deployment: condition `Progressing`; `NotStarted` if no container has started",
        Source::Scheduling => "Pod, VirtualMachineInstance: condition `PodScheduled`",
        Source::Failure => "Pod: why it has failed",
        Source::Waiting => "Pod: why a container waits",
        Source::Ended => "Pod: why a container has ended",
        Source::Claim => "PersistentVolumeClaim: phase",
        Source::Machine => "VirtualMachine: `printableStatus`",
        Source::MachineInstance => "VirtualMachineInstance: phase, or condition `Paused`",
        Source::Disk => "DataVolume: phase, or condition `Running`",
        Source::Event => "any: an event, once the Instance has waited for `stalledAfter`",
        Source::Exposure => {
            "HTTPRoute: conditions `Accepted` and `ResolvedRefs`; HTTPRoute, Ingress: no controller serves it; \
             `unguarded` if the Gateway has not accepted the policy of an HTTPRoute"
        }
    };
    let cells = |cause: &CauseRow| {
        let word = if cause.word.is_empty() { "any other".to_owned() } else { code(cause.word.trim()) };
        let phase = match &cause.lasting {
            _ if cause.phase == InstancePhase::Unset && cause.lasting.is_none() => {
                "of the workload".to_owned()
            }
            Some(lasting) if cause.phase == InstancePhase::Unset => {
                format!("of the workload, later {}", code(lasting.as_str()))
            }
            Some(lasting) if *lasting != cause.phase => {
                format!("{}, later {}", code(cause.phase.as_str()), code(lasting.as_str()))
            }
            _ => code(cause.phase.as_str()),
        };
        let row = Row::all().find(|row| row.reason == cause.reason).expect("declared");
        let who = if cause.lasting.is_some() {
            row.who.join(", ").to_lowercase()
        } else {
            "none, or it clears automatically".to_owned()
        };
        vec![field(cause.source).to_owned(), word, phase, code(&cause.reason), who]
    };
    table(&["object and field", "word", "phase", "reason", "who"], CauseRow::all().iter().map(cells))
}

/// The reasons of objects that are not ready or not reconciled but never become `Stalled`.
const NEVER_STALLED: [(&str, &str); 25] = [
    // The object is in its desired state.
    ("Instance", "EnvironmentRemoved"),
    ("Instance", "InvalidPublicKey"),
    ("Instance", "Off"),
    ("Tenant", "AwaitingVerification"),
    ("Tenant", "Inactive"),
    // It repeats a phase: `Stalled` has the reason of `Reconciled`.
    ("Instance", "CreationLoopBackoff"),
    // The machine runs.
    ("Instance", "MachinePaused"),
    ("Instance", "MachineState"),
    ("Instance", "HostKeyWaits"),
    ("Instance", "OAuth2ProxyWaits"),
    // It ends without a change to an object.
    ("Instance", "PodFailed"),
    ("Instance", "ResourceQuotaExceeded"),
    ("Instance", "SchedulingGated"),
    // The source is an event, which may describe the past.
    ("Instance", "NotAnswering"),
    ("Instance", "ObjectWarning"),
    ("SharedVolume", "ClaimTerminating"),
    ("SharedVolume", "ResourceQuotaExceeded"),
    // A provisioner or a node needs time.
    ("SharedVolume", "Provisioning"),
    ("Tenant", "Provisioning"),
    ("Tenant", "KeycloakUnavailable"),
    ("Tenant", "KeycloakUnreachable"),
    ("Tenant", "NamespaceTerminating"),
    ("Workspace", "KeycloakUnavailable"),
    ("Workspace", "KeycloakUnreachable"),
    ("Workspace", "NamespaceTerminating"),
];
/// A waiting snapshot fails after `controllers.snapshot.startDeadline`.
const WITH_DEADLINE: &str = "InstanceSnapshot";

#[test]
fn a_reason_that_needs_human_action_can_stall_the_object() {
    let mut missing = BTreeSet::new();
    for row in Row::all().filter(|row| row.who != ["Nobody"]) {
        for kind in kinds(row).filter(|kind| *kind != WITH_DEADLINE) {
            let places = places(row, kind);
            let keeps_from_ready = places.contains("`Ready`") || places.contains("`Reconciled`");
            if keeps_from_ready && !places.contains("`Stalled`") {
                missing.insert((kind, row.reason.as_str()));
            }
        }
    }
    assert_eq!(missing, BTreeSet::from(NEVER_STALLED));
}

#[test]
fn every_cause_has_a_row_and_a_reason_for_its_conditions() {
    assert!(CauseRow::all().len() >= 40, "{} rows", CauseRow::all().len());
    for cause in CauseRow::all() {
        assert!(Row::declares(cause.reason, "Ready"), "{cause:?}");
        assert_eq!(Row::declares(cause.reason, "Stalled"), cause.lasting.is_some(), "{cause:?}");
        // A known word finds its own row; an unknown word finds the row for all other words.
        assert_eq!(CauseRow::of(cause.source, cause.word).word, cause.word);
        let other = CauseRow::of(cause.source, "Unheard of");
        assert_eq!((other.source, other.word), (cause.source, ""), "{cause:?}");
    }
}

#[test]
fn the_page_is_up_to_date() {
    let mut page = format!(
        "# Conditions, events and their reasons\n\n{HEADER}\n\n\
         `kubectl describe` and `crownlabs why` show them; `kubectl get -o wide` shows the reason of `Ready`. The message names \
         objects and values. An event is published when something changes, not at each check.\n\n\
         ## Conditions\n\n"
    );
    let types = TYPES
        .iter()
        .map(|(type_, kinds, meaning)| vec![code(type_), kinds.join(", "), (*meaning).to_owned()]);
    page.push_str(&table(&["condition", "on", "meaning"], types));
    let of: BTreeSet<&str> = Row::all().flat_map(kinds).collect();
    for kind in of {
        let of = if kind == "Lease" { "the Lease of the daemon".to_owned() } else { format!("{kind}s") };
        write!(page, "## Reasons of {of}\n\n{}", reasons(kind)).expect("text");
    }
    write!(page, "## Why a machine does not run\n\n{CAUSES_ARE}\n\n{}", causes()).expect("text");
    write!(page, "## Reasons that no object shows\n\n{}", reasons("")).expect("text");
    check("reasons.md", page.trim_end_matches('\n').to_owned().as_str());
}

#[test]
fn each_reason_is_declared_once_for_existing_kinds_and_conditions() {
    let words: BTreeSet<&str> = Row::all().map(|row| row.reason.as_str()).collect();
    assert_eq!(words.len(), Row::all().count(), "a reason twice");
    for row in Row::all() {
        let Row { reason, meaning, seen, who, remedy } = row;
        let is_word = reason.chars().all(char::is_alphanumeric) && reason.starts_with(char::is_uppercase);
        assert!(is_word, "{reason}");
        for text in [meaning.trim(), remedy] {
            assert!(text.ends_with(['.', '`']), "{reason}: {text}");
        }
        assert!(who.iter().all(|who| PEOPLE.contains(who)), "{reason}: {who:?}");
        assert_eq!(kinds(row).collect::<BTreeSet<_>>().len(), kinds(row).count(), "{reason}: a kind twice");
        for (kinds, places) in *seen {
            assert_eq!(kinds.is_empty(), places.is_empty(), "{reason}");
            for place in places.iter().filter(|place| **place != EVENT) {
                let type_ = TYPES.iter().find(|(type_, ..)| type_.as_str() == *place);
                let (_, owners, _) = type_.unwrap_or_else(|| panic!("{reason}: no condition {place}"));
                let is_all = kinds.iter().all(|kind| owners.contains(kind));
                assert!(is_all, "{reason}: {place} is not on {kinds:?}");
            }
        }
    }
    assert_eq!(Reason::named("NameConflict"), Some(super::NAME_CONFLICT));
    assert_eq!(Reason::named("Made up"), None);
    assert_eq!(Reason::actors("PodRefused"), Some(vec!["teacher".to_owned(), "administrator".to_owned()]));
    assert_eq!((Reason::actors("Starting"), Reason::actors("Made up")), (Some(Vec::new()), None));
    assert_eq!(condition::READY, "Ready");
}

/// The source files of a folder without tests: their paths below `src`, and their texts.
pub fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for entry in
        fs::read_dir(root.join(folder)).expect("a folder").map(|entry| entry.expect("an entry").path())
    {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = folder.join(&name);
        if entry.is_dir() && name != "tests" && path != Path::new("api/reason") {
            found.extend(sources(&path));
        } else if entry.extension().is_some_and(|ending| ending == "rs") && name != "tests.rs" {
            let text = fs::read_to_string(&entry).expect("a source");
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
            found.push((path, text));
        }
    }
    found
}

/// The constants that a text uses: after `reason::`, alone or in braces.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let words = |text: &str| -> Vec<String> {
        text.split(|c| !is_part(c)).filter(|word| word.len() > 2).map(str::to_owned).collect()
    };
    text.split("reason::")
        .skip(1)
        .flat_map(|rest| match rest.strip_prefix('{') {
            Some(several) => words(several.split('}').next().unwrap_or_default()),
            None => words(rest.split(|c| !is_part(c)).next().unwrap_or_default()),
        })
        .collect()
}

/// The declared constants with their reasons.
fn declared() -> Vec<(String, Reason)> {
    let texts = ["courses", "instances", "pod_networks", "services"].map(|name| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/api/reason/{name}.rs"));
        fs::read_to_string(path).expect("a table")
    });
    let lines = texts.iter().flat_map(|text| text.lines());
    let names = lines.filter_map(|line| line.trim().split_once(" = \"").map(|(name, _)| name.to_owned()));
    names.zip(Declared::all().map(|declared| declared.reason)).collect()
}

#[test]
fn each_reason_is_written_by_a_loop_and_declared_for_its_kind() {
    let declared = declared();
    assert_eq!(declared.len(), Row::all().count());
    let mut used = BTreeSet::new();
    for (path, text) in sources(Path::new("")) {
        let folder = path.strip_prefix("controllers").ok().and_then(|path| path.iter().next());
        let kind = LOOPS.iter().find(|(name, _)| folder.is_some_and(|folder| folder == *name));
        for constant in named(&text) {
            let found = declared.iter().find(|(name, _)| *name == constant);
            let (_, reason) = found.unwrap_or_else(|| panic!("{}: {constant}", path.display()));
            if let Some((_, kind)) = kind {
                let row = Row::all().find(|row| row.reason == *reason).expect("a row");
                assert!(
                    kinds(row).any(|found| found == *kind),
                    "{}: {reason} is not declared for {kind}",
                    path.display()
                );
            }
            used.insert(constant);
        }
    }
    // The phases of Instances are used as reasons of `Ready`, by their texts.
    let phases = crate::api::instance::InstancePhase::KNOWN;
    let is_phase = |reason: &Reason| phases.contains(&reason.as_str());
    // Reasons of causes are selected by the words of objects.
    let is_cause = |reason: &Reason| CauseRow::all().iter().any(|cause| cause.reason == *reason);
    let unused: Vec<&str> = declared
        .iter()
        .filter(|(name, reason)| !used.contains(name) && !is_phase(reason) && !is_cause(reason))
        .map(|(name, _)| name.as_str())
        .collect();
    assert!(unused.is_empty(), "declared, but written nowhere: {unused:?}");
    for phase in phases.iter().filter(|phase| !phase.is_empty()) {
        assert!(Reason::named(phase).is_some_and(|reason| Row::declares(reason, "Ready")), "{phase}");
    }
}
