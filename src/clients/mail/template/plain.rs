//! The built-in texts of mails. They contain no text of users, because a filter may reject it, and no text of
//! templates. Names in them are formed by the daemon or chosen by administrators.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use super::values;
use crate::api::instance::Receipt;
use crate::clients::mail::{Mail, MailKind, Wording};

/// The observed state of the Instance; `None` for a receipt.
fn seen(kind: MailKind) -> Option<&'static str> {
    Some(match kind {
        MailKind::InactivityWarning => "has not been used for some time",
        MailKind::InactivityStopped => "was not used for some time",
        MailKind::DestructionWarning => "has been stopped for some time",
        MailKind::Destroyed => "had been stopped for some time",
        MailKind::ExpirationWarning => "has reached the end of its lifetime",
        MailKind::Expired => "had reached the end of its lifetime",
        MailKind::SubmissionReceipt => return None,
    })
}

/// Returns the texts of a mail in the form of a content file.
pub(super) fn content(mail: &Mail, zone: &TimeZone, zone_name: &str) -> BTreeMap<String, String> {
    let created = values::in_words(mail.created, zone, zone_name);
    let which = format!("in {{ namespace }}, which was created on {created},");
    let Some(seen) = seen(mail.kind) else { return receipt(mail, &which) };
    let done = if mail.kind.is_warning() { "will be { action }" } else { "has been { action }" };
    let (subject, paragraphs) = match &mail.wording {
        Wording::Templates | Wording::Plain => {
            let number = mail.warning.map_or("", |_| " This is warning { warning }.");
            let what = format!(
                "One of your machines {which} {seen}. It {done} on {{ deadline }}, {{ data }}.{number}"
            );
            let paragraphs = vec!["{ greeting }".to_owned(), what];
            (format!("One of your machines {done}"), paragraphs)
        }
        Wording::Manager { course, is_kept, .. } => {
            let rest = if *is_kept {
                "The machine is kept until a mail is accepted. Please find out the correct address and have it \
                 updated, or delete the machine."
            } else {
                "This mail counts as the warning, so the machine will not be kept. Please inform { tenantName }, \
                 or find out the correct address and have it updated."
            };
            let refused = "The mail server permanently rejects mail to { tenantName }, who has a machine of your \
                           course";
            let what = format!(
                "{refused} {course}. The machine {which} {seen}. It {done} on {{ deadline }}, {{ data }}."
            );
            let what = if *is_kept {
                what.replace(" on { deadline }", " once the tenant has been warned")
            } else {
                what
            };
            let paragraphs: Vec<String> = vec!["{ greeting }".to_owned(), what, rest.to_owned()];
            ("Mails to a tenant of your course cannot be delivered".to_owned(), paragraphs)
        }
    };
    texts(&subject, paragraphs)
}

/// Returns the texts of a receipt. The names of the files contain the name of the Instance.
fn receipt(mail: &Mail, which: &str) -> BTreeMap<String, String> {
    let file = |file: &Receipt| format!("{} bytes, SHA-256 {}", file.size, file.sha256);
    let files: Vec<String> = mail.files.iter().map(file).collect();
    let what = format!("Your work on one of your machines {which} was uploaded on {{ deadline }}.");
    let paragraphs = vec!["{ greeting }".to_owned(), what, format!("Received: {}", files.join("; "))];
    texts("Receipt for your work", paragraphs)
}

fn texts(subject: &str, mut paragraphs: Vec<String>) -> BTreeMap<String, String> {
    let mut html: Vec<String> = paragraphs.iter().map(|text| format!("<p>{text}</p>")).collect();
    html.push("<p><a href=\"{ link }\">{ link }</a></p>".to_owned());
    paragraphs.push("{ link }".to_owned());
    let entries = [
        ("to", "{ tenantEmail }".to_owned()),
        ("subject", format!("[CrownLabs] {subject}")),
        ("plaintext_content", format!("\n{}", paragraphs.join("\n\n"))),
        ("html_content", html.join("\n")),
    ];
    entries.into_iter().map(|(key, text)| (key.to_owned(), text)).collect()
}
