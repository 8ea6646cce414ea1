//! Tests of the words.

use super::Language;
use super::reasons;
use crate::api::quota::Refusal;
use crate::api::reason::Row;
use crate::controllers::dashboard::page::standing::Standing;
use crate::controllers::dashboard::page::view::Done;

/// Kinds whose conditions are shown to students.
const SHOWN: [&str; 4] = ["Instance", "InstanceSnapshot", "Template", "Tenant"];

#[test]
fn every_reason_that_can_reach_a_student_is_in_both_languages() {
    let reaches = |row: &&Row| {
        row.seen.iter().any(|(kinds, places)| {
            kinds.iter().any(|kind| SHOWN.contains(kind)) && places.iter().any(|place| *place != "Event")
        })
    };
    let codes: Vec<&str> = Row::all().filter(reaches).map(|row| row.reason.as_str()).collect();
    assert!(codes.len() > 100, "{codes:?}");
    for language in Language::ALL {
        let missing: Vec<&str> =
            codes.iter().copied().filter(|code| language.reason(code).is_none()).collect();
        assert_eq!(missing, Vec::<&str>::new(), "not in {}", language.name());
    }
    assert_eq!(Language::English.reason("Unheard"), None);
}

#[test]
fn no_reason_is_there_twice_and_every_sentence_ends() {
    let mut seen = std::collections::BTreeSet::new();
    for (reasons, english, italian) in reasons::rows() {
        for reason in *reasons {
            assert!(seen.insert(reason.as_str()), "{reason} twice");
        }
        assert!(
            english.ends_with('.') && italian.ends_with('.') && english != italian,
            "{english} {italian}"
        );
    }
}

#[test]
fn words_of_states_differ_between_states() {
    for language in Language::ALL {
        let words = language.words();
        let all: std::collections::BTreeSet<&str> = Standing::ALL.into_iter().map(words.standing).collect();
        assert_eq!(all.len(), Standing::ALL.len());
        assert!(Standing::ALL.into_iter().all(|standing| (words.because)(standing).ends_with('.')));
    }
}

#[test]
fn numbers_have_their_plural() {
    let (english, italian) = (Language::English.words(), Language::Italian.words());
    for (count, en, it) in [(1, "in 1 day", "tra 1 giorno"), (2, "in 2 days", "tra 2 giorni")] {
        assert_eq!((english.in_time)(super::Unit::Days, count), en);
        assert_eq!((italian.in_time)(super::Unit::Days, count), it);
    }
    assert_eq!((english.duration)('h', 1), "1 hour");
    assert_eq!((italian.duration)('h', 24), "24 ore");
    assert_eq!((english.warned)(1), "You were warned 1 time, the last time");
}

#[test]
fn a_refusal_names_the_course() {
    let refusal = Refusal::NotEnrolled { tenant: "ada".to_owned(), workspace: "net".to_owned() };
    assert!(Language::ALL.into_iter().all(|language| (language.words().refusal)(&refusal).contains("net")));
}

#[test]
fn languages_are_found_by_their_codes() {
    for language in Language::ALL {
        assert_eq!(Language::of(language.code()), Some(language));
    }
    assert_eq!(Language::of("de"), None);
}

#[test]
fn what_is_done_is_found_by_its_word_and_said() {
    for done in Done::ALL.iter().copied() {
        assert_eq!(Done::of(done.word()), Some(done));
        assert!(Language::ALL.into_iter().all(|language| (language.words().done)(done).ends_with('.')));
    }
    assert_eq!(Done::of("<script>"), None);
}
