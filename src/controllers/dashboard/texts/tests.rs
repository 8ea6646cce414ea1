//! Tests of the texts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::catalogue::{Texts, read, texts};
use super::problems::Problem;
use super::template::{Key, placeholders};
use crate::api::denial::{Cause, DenialReason};
use crate::api::quota::Refusal;
use crate::api::reason::Row;
use crate::config::Language;
use crate::controllers::dashboard::router::actions;
use crate::controllers::dashboard::standing::Standing;

/// Kinds whose conditions are shown to students.
const SHOWN: [&str; 4] = ["Instance", "InstanceSnapshot", "Template", "Tenant"];

/// Returns all texts of a file by their paths.
fn leaves(language: Language) -> BTreeMap<String, String> {
    fn walk(path: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| walk(&format!("{path}/{name}"), value, leaves));
            }
            Value::Array(values) => {
                values
                    .iter()
                    .enumerate()
                    .for_each(|(at, value)| walk(&format!("{path}/{at}"), value, leaves));
            }
            Value::String(text) => drop(leaves.insert(path.to_owned(), text.clone())),
            other => panic!("{path}: {other} is not a text"),
        }
    }
    let file: Value = serde_saphyr::from_str(language.file()).expect("YAML");
    let mut leaves_of_file = BTreeMap::new();
    walk("", &file, &mut leaves_of_file);
    leaves_of_file
}

#[test]
fn every_language_has_the_same_keys_and_placeholders() {
    let english = leaves(Language::ENGLISH);
    for language in Language::all() {
        read(language).unwrap_or_else(|error| panic!("{}: {error}", language.code()));
        let others = leaves(language);
        let keys = |texts: &BTreeMap<String, String>| texts.keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(keys(&others), keys(&english), "{}", language.code());
        for (path, text) in &others {
            assert_eq!(placeholders(text), placeholders(&english[path]), "{}: {path}", language.code());
            assert!(!text.trim().is_empty(), "{}: {path}", language.code());
        }
    }
}

#[test]
fn a_file_with_an_unknown_or_a_missing_key_is_rejected() {
    let parse = |file: &str| serde_saphyr::from_str::<Texts>(file).map(drop);
    let file = Language::ENGLISH.file();
    assert!(parse(file).is_ok());
    assert!(parse(&format!("{file}\nunknown: text\n")).is_err());
    for line in ["skip: Skip to content\n", "  starting: Starting\n", "    heading: Not found\n"] {
        assert!(file.contains(line) && parse(&file.replacen(line, "", 1)).is_err(), "{line}");
    }
}

#[test]
fn exactly_the_existing_actions_and_fields_have_texts() {
    let entries: BTreeMap<&str, BTreeSet<&str>> = actions()
        .map(|action| (action.name, action.fields.iter().map(|field| field.name).collect()))
        .collect();
    for language in Language::all() {
        let found: BTreeMap<&str, BTreeSet<&str>> = texts(language)
            .actions
            .iter()
            .map(|(name, texts)| (name.as_str(), texts.fields.keys().map(String::as_str).collect()))
            .collect();
        assert_eq!(found, entries, "{}", language.code());
        for (name, texts) in &texts(language).actions {
            assert!(texts.done.ends_with('.'), "{}: {name}", language.code());
        }
    }
}

#[test]
fn exactly_the_reasons_that_a_student_can_see_have_texts() {
    let reaches = |row: &&Row| {
        row.seen.iter().any(|(kinds, places)| {
            kinds.iter().any(|kind| SHOWN.contains(kind)) && places.iter().any(|place| *place != "Event")
        })
    };
    let shown: BTreeSet<&str> = Row::all().filter(reaches).map(|row| row.reason.as_str()).collect();
    assert!(shown.len() > 100, "{shown:?}");
    for language in Language::all() {
        let texts = texts(language);
        let found: BTreeSet<&str> = texts.reasons.keys().map(String::as_str).collect();
        assert_eq!(found, shown, "{}", language.code());
        assert!(texts.reasons.values().all(|text| text.ends_with('.')), "{}", language.code());
        assert_eq!(texts.reason("Unheard"), None);
    }
}

#[test]
fn each_state_has_its_own_word() {
    for language in Language::all() {
        let texts = texts(language);
        let words: BTreeSet<&str> =
            Standing::ALL.iter().map(|standing| texts.standing.of(*standing).as_str()).collect();
        assert_eq!(words.len(), Standing::ALL.len());
        assert!(Standing::ALL.iter().all(|standing| texts.because.of(*standing).ends_with('.')));
    }
}

#[test]
fn each_problem_has_its_own_sentence() {
    for language in Language::all() {
        let sentences: BTreeSet<&str> =
            Problem::ALL.iter().map(|problem| texts(language).problems.of(*problem).as_str()).collect();
        assert_eq!(sentences.len(), Problem::ALL.len());
    }
}

#[test]
fn a_refusal_names_the_course() {
    let refusal = Refusal::NotEnrolled { tenant: "ada".to_owned(), workspace: "net".to_owned() };
    assert!(Language::all().all(|language| texts(language).refusal(&refusal).contains("net")));
}

#[test]
fn each_reason_of_a_webhook_has_a_sentence_with_its_value() {
    for language in Language::all() {
        let texts = texts(language);
        for reason in DenialReason::ALL {
            let sentence = texts.denied(&[Cause::new(*reason, "CPU (9 > 8)")]);
            assert!(sentence.ends_with('.') && !sentence.contains('{'), "{}: {reason:?}", language.code());
        }
        let limits = ["Instances (4 > 3)", "Memory (5Gi > 4Gi)"];
        let causes = limits.map(|limit| Cause::new(DenialReason::QuotaExceeded, limit));
        let sentence = texts.denied(&causes);
        for words in [&texts.measure_instances, &texts.measure_memory] {
            assert!(sentence.contains(words.as_str()) && sentence.matches('.').count() == 1, "{sentence}");
        }
    }
    let italian = texts(Language::of("it").expect("Italian"));
    let exceeded = Cause::new(DenialReason::QuotaExceeded, "Instances (4 > 3)");
    assert_eq!(italian.denied(&[exceeded]), "Supererebbe la tua quota: Macchine: 4 (limite: 3).");
}
