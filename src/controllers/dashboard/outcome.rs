//! What an action has come to, until the page is shown that says it.

use super::act::{Failure, Typed};
use super::page::{Done, Language};
use super::route::{Action, OfMachine};
use super::session::Form;
use crate::api::public_key::PublicKeyError;
use crate::runtime::error::ApiError;

/// What an action has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done(Done),
    /// The session was over.
    Over,
    /// What it was about has changed meanwhile.
    Changed,
    /// What it was about is gone.
    Gone,
    /// A name is taken.
    Taken,
    /// Nothing was tried: nobody can tell now who the user is.
    NotNow,
    /// The API server could not do it now, or has not said whether it did: a write whose answer is late may be done.
    Unknown,
    /// It was refused, in the words of whoever did.
    Refused,
    /// What was typed cannot be used.
    Typed(Typed),
}

/// All that have failed, with the words by which cookies name them, and the sentence in each language.
const FAILED: &[(Outcome, &str, &str, &str)] = &[
    (
        Outcome::Over,
        "over",
        "You were logged out meanwhile, so nothing was changed. Send it again.",
        "Nel frattempo la sessione è scaduta, quindi nulla è cambiato. Invialo di nuovo.",
    ),
    (
        Outcome::Changed,
        "changed",
        "Somebody has changed this meanwhile, so nothing was done. Look at it, and try again.",
        "Nel frattempo qualcuno ha modificato questo, quindi non è stato fatto nulla. Controlla e riprova.",
    ),
    (Outcome::Gone, "gone", "This does not exist any more.", "Questo non esiste più."),
    (Outcome::Taken, "taken", "There is already one with this name.", "Ne esiste già uno con questo nome."),
    (
        Outcome::NotNow,
        "not-now",
        "This could not be done now, so nothing was changed. Send it again.",
        "Ora non è stato possibile, quindi nulla è cambiato. Invialo di nuovo.",
    ),
    (
        Outcome::Unknown,
        "unknown",
        "The cluster could not do this now, or has not said whether it did. Look, and send it again if it is not done.",
        "Il cluster ora non ha potuto farlo, o non ha detto se l'ha fatto. Controlla, e invialo di nuovo se non è fatto.",
    ),
    (Outcome::Refused, "refused", "This was refused:", "Questo è stato rifiutato:"),
    (
        Outcome::Typed(Typed::Form),
        "form",
        "This form is not of this page. Load the page again.",
        "Questo modulo non è di questa pagina. Ricarica la pagina.",
    ),
    (
        Outcome::Typed(Typed::Key(PublicKeyError::Unreadable)),
        "key",
        "This is no SSH public key such as ssh-ed25519 AAAA… name.",
        "Questa non è una chiave pubblica SSH come ssh-ed25519 AAAA… nome.",
    ),
    (
        Outcome::Typed(Typed::Key(PublicKeyError::LineBreak)),
        "key-lines",
        "A key is one line; add each key by itself.",
        "Una chiave è una sola riga; aggiungi ogni chiave separatamente.",
    ),
    (
        Outcome::Typed(Typed::Key(PublicKeyError::TooLong)),
        "key-long",
        "This is longer than any SSH public key.",
        "Questo testo è più lungo di qualsiasi chiave pubblica SSH.",
    ),
    (
        Outcome::Typed(Typed::Key(PublicKeyError::Unsupported)),
        "key-kind",
        "This kind of key is not accepted: use Ed25519, ECDSA or RSA.",
        "Questo tipo di chiave non è accettato: usa Ed25519, ECDSA o RSA.",
    ),
    (Outcome::Typed(Typed::KnownKey), "known-key", "This key is there already.", "Questa chiave c'è già."),
    (
        Outcome::Typed(Typed::Port),
        "port",
        "A port is a number from 1 to 65535.",
        "Una porta è un numero da 1 a 65535.",
    ),
    (
        Outcome::Typed(Typed::PortName),
        "port-name",
        "The name of a port has at most 15 small letters, digits and dashes.",
        "Il nome di una porta ha al massimo 15 lettere minuscole, cifre e trattini.",
    ),
    (
        Outcome::Typed(Typed::Name),
        "name",
        "A name has at most 200 characters.",
        "Un nome ha al massimo 200 caratteri.",
    ),
    (
        Outcome::Typed(Typed::Closed),
        "closed",
        "Only a manager enrols people in this course.",
        "Solo un responsabile iscrive persone a questo corso.",
    ),
];

/// What is said of what was typed and is in no field any more.
pub const fn lost(language: Language) -> &'static str {
    match language {
        Language::English => "What you had typed was too long to be kept.",
        Language::Italian => "Quello che avevi scritto era troppo lungo per essere conservato.",
    }
}

impl Outcome {
    /// What an action that is done has come to.
    pub fn of(action: &Action) -> Self {
        Self::Done(match action {
            Action::Create | Action::StartDrive => Done::Created,
            Action::Machine(_, act) => match act {
                OfMachine::Start => Done::Started,
                OfMachine::Stop => Done::Stopped,
                OfMachine::Keep => Done::Kept,
                OfMachine::Delete => Done::Deleted,
                OfMachine::Rename => Done::Renamed,
                OfMachine::Expose => Done::Exposed,
                OfMachine::Unexpose => Done::Unexposed,
                OfMachine::Save => Done::Saved,
            },
            Action::Join(_) => Done::Joined,
            Action::Leave(_) => Done::Left,
            Action::AddKey => Done::KeyAdded,
            Action::RemoveKey => Done::KeyRemoved,
        })
    }

    /// What a failure means, with the words of whoever refused it.
    pub fn of_failure(failure: &Failure) -> (Self, String) {
        let error = match failure {
            Failure::Typed(typed) => return (Self::Typed(*typed), String::new()),
            Failure::Api(error) => error,
        };
        let outcome = match error {
            ApiError::Conflict(_) | ApiError::Stale(_) => Self::Changed,
            ApiError::NotFound(_) => Self::Gone,
            ApiError::AlreadyExists(_) | ApiError::NameConflict { .. } => Self::Taken,
            ApiError::Transient { .. } | ApiError::NotLeader => Self::Unknown,
            ApiError::QuotaExceeded(_)
            | ApiError::Forbidden(_)
            | ApiError::Invalid(_)
            | ApiError::TooLong(_) => Self::Refused,
        };
        let said = if outcome == Self::Refused { error.to_string() } else { String::new() };
        (outcome, said)
    }

    /// The word by which a cookie names it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done(done) => done.word(),
            failed => failed.entry().map_or("", |(_, word, ..)| word),
        }
    }

    /// That of a cookie.
    pub fn of_form(form: &Form) -> Option<Self> {
        let failed =
            || FAILED.iter().find(|(_, word, ..)| *word == form.outcome).map(|(outcome, ..)| *outcome);
        Done::of(&form.outcome).map(Self::Done).or_else(failed)
    }

    /// What is said of a failure.
    pub fn sentence(self, language: Language) -> &'static str {
        self.entry().map_or("", |(_, _, english, italian)| match language {
            Language::English => english,
            Language::Italian => italian,
        })
    }

    fn entry(self) -> Option<&'static (Self, &'static str, &'static str, &'static str)> {
        FAILED.iter().find(|(outcome, ..)| *outcome == self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::runtime::ObjectKey;

    #[test]
    fn each_failure_has_a_word_and_its_own_sentence_in_each_language() {
        let words: BTreeSet<_> = FAILED.iter().map(|(_, word, ..)| word).collect();
        assert_eq!(words.len(), FAILED.len());
        for (outcome, word, english, italian) in FAILED {
            let form = Form { outcome: (*word).to_owned(), ..Form::default() };
            assert_eq!(Outcome::of_form(&form), Some(*outcome), "{word}");
            assert_eq!(outcome.word(), *word, "it is found by itself");
            assert_eq!(outcome.sentence(Language::English), *english);
            assert_eq!(outcome.sentence(Language::Italian), *italian);
            assert_ne!(english, italian);
        }
    }

    #[test]
    fn each_action_and_each_mistake_has_its_outcome() {
        let machine = || ObjectKey::new("tenant-ada", "vm");
        let acts = [
            OfMachine::Start,
            OfMachine::Stop,
            OfMachine::Keep,
            OfMachine::Delete,
            OfMachine::Rename,
            OfMachine::Expose,
            OfMachine::Unexpose,
            OfMachine::Save,
        ];
        let of_machine = acts.into_iter().map(|act| Action::Machine(machine(), act));
        let others = [
            Action::Create,
            Action::Join(String::new()),
            Action::Leave(String::new()),
            Action::AddKey,
            Action::RemoveKey,
        ];
        let outcomes: Vec<Outcome> = of_machine.chain(others).map(|action| Outcome::of(&action)).collect();
        let mistakes = [
            Typed::Form,
            Typed::Key(PublicKeyError::Unreadable),
            Typed::Key(PublicKeyError::LineBreak),
            Typed::Key(PublicKeyError::TooLong),
            Typed::Key(PublicKeyError::Unsupported),
            Typed::KnownKey,
            Typed::Port,
            Typed::PortName,
            Typed::Name,
            Typed::Closed,
        ];
        let mistakes = mistakes.map(|typed| Outcome::of_failure(&Failure::Typed(typed)).0);
        let words: BTreeSet<_> = outcomes.iter().chain(&mistakes).map(|outcome| outcome.word()).collect();
        assert_eq!(words.len(), 13 + 10, "{words:?}");
    }

    #[test]
    fn nothing_is_said_to_be_undone_of_which_that_is_not_known() {
        // A server that asks for another request later may have done what the first one asked for.
        for retry_after in [None, Some(std::time::Duration::from_secs(1))] {
            let failure = Failure::Api(ApiError::Transient { message: "m".to_owned(), retry_after });
            assert_eq!(Outcome::of_failure(&failure), (Outcome::Unknown, String::new()));
        }
    }

    #[test]
    fn a_refusal_keeps_its_words() {
        let sentence = "admission webhook denied the request: 3 of 2 machines";
        let failure = Failure::Api(ApiError::Forbidden(sentence.to_owned()));
        let (outcome, said) = Outcome::of_failure(&failure);
        assert_eq!(outcome, Outcome::Refused);
        assert!(said.ends_with(sentence), "{said}");
    }
}
