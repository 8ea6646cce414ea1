//! What mails say in our own words: without any text that a user wrote, because a filter may refuse it, and without those of
//! templates. The names in it are those that we form, or that administrators chose.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use super::values;
use crate::clients::mail::{Mail, MailKind, Wording};

/// What a mail says of the Instance: what has been seen, and what is done.
fn said(kind: MailKind) -> (&'static str, &'static str) {
    match kind {
        MailKind::InactivityWarning => ("has not been used for some time", "will be stopped"),
        MailKind::InactivityStopped => ("was not used for some time", "has been stopped"),
        MailKind::DestructionWarning => ("has been stopped for some time", "will be deleted"),
        MailKind::Destroyed => ("had been stopped for some time", "has been deleted"),
        MailKind::ExpirationWarning => ("has reached the end of its lifetime", "will be deleted"),
        MailKind::Expired => ("had reached the end of its lifetime", "has been deleted"),
    }
}

/// The texts of a mail, as a content file has them.
pub(super) fn content(mail: &Mail, zone: &TimeZone, zone_name: &str) -> BTreeMap<String, String> {
    let (seen, done) = said(mail.kind);
    let created = values::in_words(mail.created, zone, zone_name);
    let which = format!("in {{ namespace }}, which was created on {created},");
    let (subject, paragraphs) = match &mail.wording {
        Wording::Templates | Wording::Plain => {
            let hint =
                "An instance that has no disk of its own is deleted when it is stopped, with all data in it.";
            let hint = (mail.kind == MailKind::InactivityWarning).then(|| hint.to_owned());
            let what = format!("one of your instances {which} {seen}. It {done} on {{ deadline }}.");
            let paragraphs = ["Hello { tenantName },".to_owned(), what].into_iter().chain(hint).collect();
            (format!("One of your instances {done}"), paragraphs)
        }
        Wording::Manager { name, course, is_kept } => {
            let rest = if *is_kept {
                "The instance is kept until a mail is accepted. Please find out which address is right, and have it \
                 corrected, or delete the instance."
            } else {
                "It is done nevertheless, because you have been told. Please tell { tenantName }, or find out which \
                 address is right, and have it corrected."
            };
            let refused = "the mail server refuses for good what we write to { tenantName }, who has an instance of your \
                           course";
            let what =
                format!("{refused} {course}. The instance {which} {seen}. It {done} on {{ deadline }}.");
            let what =
                if *is_kept { what.replace(" on { deadline }", " once the tenant is warned") } else { what };
            let paragraphs: Vec<String> = vec![format!("Hello {name},"), what, rest.to_owned()];
            ("Mails to a tenant of your course cannot be delivered".to_owned(), paragraphs)
        }
    };
    texts(&subject, paragraphs)
}

fn texts(subject: &str, mut paragraphs: Vec<String>) -> BTreeMap<String, String> {
    let html: Vec<String> = paragraphs
        .iter()
        .map(|text| format!("<p>{text}</p>"))
        .chain(["<p><a href=\"{ link }\">{ link }</a></p>".to_owned()])
        .collect();
    paragraphs.push("{ link }".to_owned());
    let entries = [
        ("to", "{ tenantEmail }".to_owned()),
        ("subject", format!("[CrownLabs] {subject}")),
        ("plaintext_content", format!("\n{}", paragraphs.join("\n\n"))),
        ("html_content", html.join("\n")),
    ];
    entries.into_iter().map(|(key, text)| (key.to_owned(), text)).collect()
}
