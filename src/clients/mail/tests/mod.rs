//! Tests of rendered mails, settings, and the Maildir folder. Tests that need a mail server are in
//! `tests/integration/mail`.

mod content;
mod golden;
mod plain;
mod properties;
mod set_up;
mod templates;

use std::time::Duration;

use super::*;
use crate::api::instance::Receipt;
use crate::api::promise::End;

/// A mail without special characters, about an Instance with a disk.
fn plain(kind: MailKind) -> Mail {
    let is_stopped = matches!(kind, MailKind::InactivityWarning | MailKind::InactivityStopped);
    let is_receipt = kind == MailKind::SubmissionReceipt;
    let file = Receipt { name: "exam-1.zip".to_owned(), size: 12_345, sha256: "0123456789abcdef".repeat(4) };
    Mail {
        kind,
        end: (!is_receipt).then_some(if is_stopped { End::Stopped } else { End::Deleted }),
        warning: kind.is_warning().then_some((1, 3)),
        key: "uid/kind/2026-11-20T17:00:00Z".to_owned(),
        tenant_name: "ada".to_owned(),
        full_name: "Ada Rossi".to_owned(),
        tenant_email: "ada@example.com".to_owned(),
        pretty_name: "Lab One".to_owned(),
        instance_name: "lab-one-0001".to_owned(),
        namespace: "tenant-ada".to_owned(),
        remaining: Duration::from_hours(72),
        deadline: "2026-11-20T17:00:00Z".parse().unwrap(),
        files: if is_receipt { vec![file] } else { Vec::new() },
        link: "https://labs.example.com/instances?a=1&b=2".to_owned(),
        created: "2026-11-18T09:30:00Z".parse().unwrap(),
        wording: Wording::Templates,
    }
}

/// Renders a mail with these templates and a fixed sending time.
fn rendered(templates: &Templates, mail: &Mail) -> String {
    let from = "CrownLabs <noreply@Example.com>".parse().unwrap();
    let letter = Letter {
        mail,
        from: &from,
        message_id: "<0123456789abcdef0123456789abcdef@example.com>".to_owned(),
        date: "2026-11-17T09:05:00Z".parse().unwrap(),
        zone: &TimeZone::get("Europe/Rome").unwrap(),
        zone_name: "Europe/Rome",
    };
    String::from_utf8(templates.of(&letter).unwrap().render(&letter)).unwrap()
}

fn built_in() -> Templates {
    Templates::new("")
}

/// Splits a mail into head and body, with LF line ends. Fails unless all lines end with CRLF.
fn split(mail: &str) -> (String, String) {
    let text = mail.replace("\r\n", "\n");
    assert_eq!(text.matches('\n').count(), mail.matches('\n').count(), "a LF without CR: {mail:?}");
    assert!(!text.contains('\r'), "a CR without LF: {mail:?}");
    let (head, body) = text.split_once("\n\n").expect("an empty line");
    (head.to_owned(), body.to_owned())
}

/// Returns names and values of headers, unfolded.
fn headers(head: &str) -> Vec<(String, String)> {
    let unfolded = head.replace("\n ", " ");
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("no header: {line:?}"));
        (name.to_owned(), value.to_owned())
    };
    unfolded.lines().map(header).collect()
}

/// Decodes a header value like a mail program (RFC 2047).
fn decoded(value: &str) -> String {
    use base64::Engine as _;
    let (mut shown, mut after_encoded) = (String::new(), false);
    for (index, word) in value.split(' ').enumerate() {
        let inner = word.strip_prefix("=?UTF-8?B?").and_then(|rest| rest.strip_suffix("?="));
        if index > 0 && !(after_encoded && inner.is_some()) {
            shown.push(' ');
        }
        match inner {
            Some(inner) => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(inner).expect("base64");
                shown.push_str(&String::from_utf8(bytes).expect("whole characters"));
            }
            None => shown.push_str(word),
        }
        after_encoded = inner.is_some();
    }
    shown
}
