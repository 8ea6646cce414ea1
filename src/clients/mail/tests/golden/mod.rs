//! Compares the bytes of each mail with files that were made from the templates independently of this code and parsed
//! by Python's mail parser.

use super::*;

/// Hostile names that users may choose, with their forms in the text and in HTML. In the subject, they have the form
/// of the text, encoded if necessary.
fn hostile() -> [(&'static str, String, String, String); 7] {
    let owned = |name: &'static str, value: &str, text: &str, html: &str| {
        (name, value.to_owned(), text.to_owned(), html.to_owned())
    };
    let script = "<script>alert(\"x\")</script>";
    let line = "x\r\nBcc: eve@example.org\r\n\r\n--CrownLabsEmailBoundary--";
    let one_line = "x  Bcc: eve@example.org    --CrownLabsEmailBoundary--";
    let (long, emoji) = ("ab".repeat(150), "🎓 Übung 👩‍🔬");
    [
        owned("script", script, script, "&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;"),
        owned("line-ends", line, one_line, one_line),
        owned("dollar", "$x $1 ${0} Cost $100", "$x $1 ${0} Cost $100", "$x $1 ${0} Cost $100"),
        owned("braces", "{ link } {subject}", "{ link } {subject}", "{ link } {subject}"),
        owned("long", &long, &long, &long),
        owned("emoji", emoji, emoji, emoji),
        owned("right-to-left", "\u{202e}שלום עולם", " שלום עולם", " שלום עולם"),
    ]
}

/// The expected bytes of a kind of mail about an Instance with a disk, with LF line ends.
fn expected(kind: MailKind) -> &'static str {
    match kind {
        MailKind::InactivityWarning => include_str!("inactivity_warning.eml"),
        MailKind::InactivityStopped => include_str!("inactivity_stopped.eml"),
        MailKind::DestructionWarning => include_str!("destruction_warning.eml"),
        MailKind::Destroyed => include_str!("destroyed.eml"),
        MailKind::ExpirationWarning => include_str!("expiration_warning.eml"),
        MailKind::Expired => include_str!("expired.eml"),
        MailKind::SubmissionReceipt => include_str!("submission_receipt.eml"),
    }
}

#[test]
fn each_mail_has_the_expected_bytes() {
    for kind in MailKind::ALL {
        let mail = rendered(&built_in(), &plain(kind));
        assert_eq!(mail, expected(kind).replace('\n', "\r\n"), "{kind:?}");
    }
}

#[test]
fn mails_without_a_disk_or_a_name_have_the_expected_bytes() {
    for (kind, text) in [
        (MailKind::InactivityWarning, include_str!("inactivity_warning-deleted.eml")),
        (MailKind::InactivityStopped, include_str!("inactivity_stopped-deleted.eml")),
    ] {
        let warning = kind.is_warning().then_some((3, 3));
        let mail = Mail { end: Some(End::Deleted), warning, full_name: " ".to_owned(), ..plain(kind) };
        assert_eq!(rendered(&built_in(), &mail), text.replace('\n', "\r\n"), "{kind:?}");
    }
}

#[test]
fn hostile_names_have_the_expected_bytes() {
    let files = [
        ("script", include_str!("hostile-script.eml")),
        ("line-ends", include_str!("hostile-line-ends.eml")),
        ("dollar", include_str!("hostile-dollar.eml")),
        ("braces", include_str!("hostile-braces.eml")),
        ("long", include_str!("hostile-long.eml")),
        ("emoji", include_str!("hostile-emoji.eml")),
        ("right-to-left", include_str!("hostile-right-to-left.eml")),
    ];
    for ((name, value, ..), (file, text)) in hostile().into_iter().zip(files) {
        assert_eq!(name, file);
        let mail = Mail { pretty_name: value, ..plain(MailKind::InactivityWarning) };
        assert_eq!(rendered(&built_in(), &mail), text.replace('\n', "\r\n"), "{name}");
    }
}

/// Two mails of a kind only differ in the name, in its three forms.
#[test]
fn hostile_names_change_nothing_else_in_a_mail() {
    for kind in MailKind::ALL {
        for (name, value, text, html) in hostile() {
            let (head, body) = split(&rendered(&built_in(), &Mail { pretty_name: value, ..plain(kind) }));
            let (plain_head, plain_body) = split(expected(kind).replace('\n', "\r\n").as_str());
            let (plain_text, plain_html) =
                plain_body.split_once("Content-Type: text/html").expect("an HTML part");
            let body_expected = format!(
                "{}Content-Type: text/html{}",
                plain_text.replace("Lab One", &text),
                plain_html.replace("Lab One", &html)
            );
            assert_eq!(body, body_expected, "{kind:?} {name}");
            let shown = |head: &str| -> Vec<_> {
                headers(head).into_iter().map(|(name, value)| (name, decoded(&value))).collect()
            };
            let subject = |(name, value): (String, String)| {
                let value = if name == "Subject" { value.replace("Lab One", &text) } else { value };
                (name, value)
            };
            let head_expected: Vec<_> = shown(&plain_head).into_iter().map(subject).collect();
            assert_eq!(shown(&head), head_expected, "{kind:?} {name}");
        }
    }
}

#[test]
fn the_deadline_and_the_link_are_in_every_mail() {
    for kind in MailKind::ALL {
        let (_, body) = split(&rendered(&built_in(), &plain(kind)));
        // Text and HTML may break lines between words.
        let words: Vec<&str> = body.split_whitespace().collect();
        let said = words.join(" ");
        assert_eq!(said.matches("Friday 20 November at 18:00 Europe/Rome").count(), 2, "{body}");
        assert!(body.contains("\nhttps://labs.example.com/instances?a=1&b=2\n"), "{body}");
        assert!(body.contains("<a href=\"https://labs.example.com/instances?a=1&amp;b=2\">"), "{body}");
        let warns = matches!(
            kind,
            MailKind::InactivityWarning | MailKind::DestructionWarning | MailKind::ExpirationWarning
        );
        assert_eq!(said.contains(" on Friday 20 November at 18:00 Europe/Rome, "), warns, "{body}");
        assert_eq!(said.matches("This is warning 1 of 3.").count(), if warns { 2 } else { 0 }, "{body}");
        assert_eq!(said.matches("Hello Ada Rossi,").count(), 2, "{body}");
    }
}
