//! Tests of the delivery of mails. The answers of a real mail server are tested in `tests/integration/mail`.

use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;

use super::*;
use crate::clients::mail::{MailKind, Subject, Wording};
use crate::controllers::cleanup::mail_log::{Mailed, record};
use crate::controllers::shared::fixtures::running_instance;

/// A mail about the Instance of the fixtures, whose course has three managers.
pub fn notice(kind: MailKind, number: i64) -> Notice {
    let manager = |name: &str| Manager {
        name: name.to_owned(),
        full_name: String::new(),
        email: format!("{name}@example.org"),
    };
    let mail = Mail {
        kind,
        end: Some(crate::api::promise::End::Deleted),
        warning: None,
        key: format!("u1/{kind:?}-{number}/soon"),
        tenant_name: "ada".to_owned(),
        full_name: String::new(),
        tenant_email: "ada@example.org".to_owned(),
        pretty_name: "CASINO".to_owned(),
        instance_name: "box".to_owned(),
        namespace: "tenant-ada".to_owned(),
        remaining: Duration::from_hours(24),
        deadline: Timestamp::from_second(90_000).expect("a time"),
        files: Vec::new(),
        link: String::new(),
        created: Timestamp::UNIX_EPOCH,
        wording: Wording::Templates,
    };
    let managers = Managers::Notify(["grace", "hopper", "alan"].map(manager).to_vec());
    Notice { mail, uid: "u1".to_owned(), number, course: "tea".to_owned(), managers }
}

/// A server that gives these answers in order, and accepts all further mails.
struct Server {
    answers: Mutex<Vec<Result<(), MailError>>>,
    asked: Mutex<Vec<String>>,
}

impl Post for Server {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let who = match &mail.wording {
            Wording::Templates => "ada".to_owned(),
            Wording::Plain => "ada, plain".to_owned(),
            Wording::Manager { name, is_kept, .. } => {
                format!("{name}{}", if *is_kept { "" } else { ", proceeds" })
            }
        };
        self.asked.lock().push(who);
        let mut answers = self.answers.lock();
        if answers.is_empty() { Ok(()) } else { answers.remove(0) }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(700).expect("a time")
    }
}

fn refused(subject: Subject) -> MailError {
    MailError::Refused { server: "mail:25".to_owned(), subject, said: "550 no".to_owned() }
}

fn busy() -> MailError {
    MailError::Unavailable {
        server: "mail:25".to_owned(),
        subject: Subject::Client,
        said: "451 later".to_owned(),
    }
}

/// Returns the recipients in order, and the result: `accepted`, `refused`, both, or the reason for the retry.
fn sent(
    notice: &Notice,
    undeliverable: Undeliverable,
    answers: Vec<Result<(), MailError>>,
) -> (String, String, Mailed) {
    let server = Server { answers: Mutex::new(answers), asked: Mutex::default() };
    let log = MailLog::default();
    let outcome = deliver(&server, &log, notice, undeliverable).now_or_never().expect("an answer");
    let what = match (outcome.result, &outcome.error) {
        (Some(Sent { accepted: Some(_), refused: None }), None) => "accepted".to_owned(),
        (Some(Sent { accepted, refused: Some(_) }), Some(EffectError::Postponed(problem))) => {
            assert_eq!(problem.reason, "MailUndeliverable");
            let words = problem.message.split("; ").skip(2).collect::<Vec<_>>().join("; ");
            format!("{}: {words}", if accepted.is_some() { "counts" } else { "refused" })
        }
        (None, Some(EffectError::Failed(problem))) => format!("again, {}", problem.reason),
        (None, Some(EffectError::NotLeader)) => "not the leader".to_owned(),
        other => panic!("{other:?}"),
    };
    let asked = server.asked.into_inner().join(" | ");
    (asked, what, log.of(&running_instance(Timestamp::UNIX_EPOCH)))
}

#[test]
fn a_refused_mail_is_retried_in_plain_text_and_then_sent_to_the_managers() {
    use Undeliverable::{Keep, Proceed};
    let warning = || notice(MailKind::ExpirationWarning, 0);
    let told = || Notice { managers: Managers::Notified, ..warning() };
    let alone = || Notice { managers: Managers::Notify(Vec::new()), ..warning() };
    let last = || notice(MailKind::Expired, 1);
    let (text, box_) = (|| Err(refused(Subject::Mail)), || Err(refused(Subject::Recipient)));
    let bad = || Err(MailError::BadRecipient { tenant: "ada".to_owned(), problem: "it is empty".to_owned() });
    let kept = "refused: the managers of the course were notified, and the Instance is kept";
    let nobody = "refused: no manager of the course could be notified, so the Instance is kept";
    let counts = "counts: the managers of the course were notified, and the deadline counts from then";
    for (notice, undeliverable, answers, asked, what) in [
        (warning(), Keep, vec![], "ada", "accepted"),
        (warning(), Keep, vec![text()], "ada | ada, plain", "accepted"),
        (warning(), Proceed, vec![box_()], "ada | ada, plain", "accepted"),
        (warning(), Keep, vec![Err(busy())], "ada", "again, MailServerUnavailable"),
        (warning(), Keep, vec![text(), Err(busy())], "ada | ada, plain", "again, MailServerUnavailable"),
        (warning(), Keep, vec![Err(refused(Subject::Sender))], "ada", "again, MailSenderRefused"),
        (warning(), Keep, vec![Err(MailError::NotLeader)], "ada", "not the leader"),
        (warning(), Keep, vec![text(), box_()], "ada | ada, plain | grace | hopper | alan", kept),
        (warning(), Keep, vec![bad()], "ada | grace | hopper | alan", kept),
        (told(), Keep, vec![box_(), box_()], "ada | ada, plain", kept),
        (alone(), Keep, vec![box_(), box_()], "ada | ada, plain", nobody),
        (alone(), Proceed, vec![box_(), box_()], "ada | ada, plain", nobody),
        (
            warning(),
            Proceed,
            vec![box_(), box_(), box_(), Err(busy())],
            "ada | ada, plain | grace, proceeds | hopper, proceeds | alan, proceeds",
            counts,
        ),
        (
            warning(),
            Keep,
            vec![box_(), box_(), box_(), box_(), box_()],
            "ada | ada, plain | grace | hopper | alan",
            nobody,
        ),
        (
            warning(),
            Proceed,
            vec![box_(), box_(), Err(busy()), box_(), box_()],
            "ada | ada, plain | grace, proceeds | hopper, proceeds | alan, proceeds",
            "again, MailServerUnavailable",
        ),
        (
            warning(),
            Keep,
            vec![box_(), box_(), Err(MailError::NotLeader)],
            "ada | ada, plain | grace",
            "not the leader",
        ),
        // Managers are not notified about a mail that follows the warnings.
        (last(), Keep, vec![box_(), box_()], "ada | ada, plain", "refused: "),
        (last(), Proceed, vec![box_(), box_()], "ada | ada, plain", "counts: "),
    ] {
        let (were, became, _) = sent(&notice, undeliverable, answers);
        assert_eq!((&*were, &*became), (asked, what), "{undeliverable:?}");
    }
}

#[test]
fn a_fault_of_this_installation_is_not_blamed_on_the_recipient() {
    use Undeliverable::{Keep, Proceed};
    let refuses = |subjects: &[Subject]| subjects.iter().map(|of| Err(refused(*of))).collect::<Vec<_>>();
    let (mail, box_) = (Subject::Mail, Subject::Recipient);
    for (undeliverable, subjects, asked, what) in [
        (Keep, &[mail, mail][..], "ada | ada, plain", "again, MailRefused"),
        (Proceed, &[box_, mail], "ada | ada, plain", "again, MailRefused"),
        (Proceed, &[Subject::Client], "ada", "again, MailConnectionRefused"),
        (Proceed, &[Subject::Login], "ada", "again, MailLoginRefused"),
        (
            Keep,
            &[box_, box_, mail, mail, mail],
            "ada | ada, plain | grace | hopper | alan",
            "again, MailRefused",
        ),
    ] {
        let warning = notice(MailKind::ExpirationWarning, 0);
        let (were, became, _) = sent(&warning, undeliverable, refuses(subjects));
        assert_eq!((&*were, &*became), (asked, what), "{undeliverable:?}");
    }
}

#[test]
fn accepted_mails_are_remembered_separately_for_the_tenant_and_the_managers() {
    use Undeliverable::{Keep, Proceed};
    let instance = running_instance(Timestamp::UNIX_EPOCH);
    let closed = || vec![Err(refused(Subject::Recipient)), Err(refused(Subject::Recipient))];
    for (undeliverable, answers, to_tenant, to_managers) in [
        (Keep, vec![], true, false),
        (Keep, closed(), false, true),
        (Proceed, closed(), true, false),
        (Keep, vec![Err(busy())], false, false),
    ] {
        let warning = notice(MailKind::ExpirationWarning, 0);
        let (.., mailed) = sent(&warning, undeliverable, answers);
        let knows = |is_to_managers| {
            let key = record(MailKind::ExpirationWarning, is_to_managers);
            mailed.last(&instance, &key).is_some()
        };
        assert_eq!((knows(false), knows(true)), (to_tenant, to_managers), "{undeliverable:?}");
    }
}
