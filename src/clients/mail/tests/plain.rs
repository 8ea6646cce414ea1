//! Mails with a built-in text, without any text of users or administrators.

use super::*;

/// A mail about an Instance with names that a filter rejects.
fn refused(kind: MailKind) -> Mail {
    Mail { pretty_name: "CASINO".to_owned(), instance_name: "casino-2".to_owned(), ..plain(kind) }
}

#[test]
fn a_plain_mail_contains_no_text_of_a_user() {
    let manager = Manager {
        name: "grace".to_owned(),
        full_name: "Grace Hopper".to_owned(),
        email: "grace@example.com".to_owned(),
    };
    for kind in MailKind::ALL {
        let mail = refused(kind);
        assert!(rendered(&built_in(), &mail).contains("CASINO"), "{kind:?}");
        for mail in
            [mail.plain(), mail.to_manager(&manager, "tea", true), mail.to_manager(&manager, "tea", false)]
        {
            let text = rendered(&built_in(), &mail);
            assert!(!text.to_lowercase().contains("casino"), "{text}");
            let placeholders = ["{ tenant", "{ namespace", "{ deadline", "{ link", "{ created"];
            assert!(!placeholders.iter().any(|name| text.contains(name)), "{text}");
            assert!(text.contains("tenant-ada"), "{text}");
            assert!(
                text.contains("which was created on Wednesday 18 November at 10:30 Europe/Rome,"),
                "{text}"
            );
            let head = headers(&split(&text).0);
            let to = head.iter().find(|(name, _)| name == "To").map(|(_, value)| &**value);
            assert_eq!(to, Some(&*mail.tenant_email));
        }
    }
}

#[test]
fn a_name_of_a_megabyte_is_cut() {
    let mail = Mail { pretty_name: "é".repeat(1_000_000), ..plain(MailKind::Expired) };
    let text = rendered(&built_in(), &mail);
    assert!(text.contains(&format!("{}…", "é".repeat(299))) && text.len() < 20_000, "{}", text.len());
}

#[test]
fn a_plain_mail_states_the_action_and_the_deadline() {
    let (kept, lost) = ("and its disk is kept, so that it can be started again", "with all data in it");
    for (kind, end, done, data) in [
        (MailKind::InactivityWarning, End::Stopped, "will be stopped", kept),
        (MailKind::InactivityWarning, End::Deleted, "will be deleted", lost),
        (MailKind::InactivityStopped, End::Stopped, "has been stopped", kept),
        (MailKind::InactivityStopped, End::Deleted, "has been deleted", lost),
        (MailKind::DestructionWarning, End::Deleted, "will be deleted", lost),
        (MailKind::Destroyed, End::Deleted, "has been deleted", lost),
        (MailKind::ExpirationWarning, End::Deleted, "will be deleted", lost),
        (MailKind::Expired, End::Deleted, "has been deleted", lost),
    ] {
        let mail = Mail { end: Some(end), ..refused(kind) };
        let text = rendered(&built_in(), &mail.plain());
        // The full name is a text of a user.
        assert!(text.contains("Hello ada,") && !text.contains("Rossi"), "{text}");
        let what = format!("It {done} on Friday 20 November at 18:00 Europe/Rome, {data}.");
        assert_eq!(text.matches(&what).count(), 2, "{text}");
        assert_eq!(text.matches("This is warning 1 of 3.").count(), if kind.is_warning() { 2 } else { 0 });
        assert!(
            text.contains(&format!("\r\nSubject: [CrownLabs] One of your machines {done}\r\n")),
            "{text}"
        );
        assert_eq!(kind.is_warning(), done.starts_with("will"));
    }
}

#[test]
fn a_plain_receipt_has_the_size_and_the_digest_of_each_file() {
    let mail = refused(MailKind::SubmissionReceipt);
    let files = ["casino-2-web.zip", "casino-2-db.zip"]
        .map(|name| Receipt { name: name.to_owned(), ..mail.files[0].clone() });
    let text = rendered(&built_in(), &Mail { files: files.to_vec(), ..mail }.plain());
    assert!(text.contains("\r\nSubject: [CrownLabs] Receipt for your work\r\n"), "{text}");
    let file = format!("12345 bytes, SHA-256 {}", "0123456789abcdef".repeat(4));
    assert_eq!(text.matches(&format!("Received: {file}; {file}")).count(), 2, "{text}");
    assert_eq!(text.matches("was uploaded on Friday 20 November at 18:00 Europe/Rome.").count(), 2, "{text}");
    assert!(!text.contains("casino"), "{text}");
}

#[test]
fn a_mail_to_a_manager_names_the_tenant_and_the_fate_of_the_instance() {
    let manager = Manager {
        name: "grace".to_owned(),
        full_name: "Grace Hopper".to_owned(),
        email: "grace@example.com".to_owned(),
    };
    let mail = refused(MailKind::ExpirationWarning);
    for (is_kept, said, not_said) in [
        (
            true,
            "It will be deleted once the tenant has been warned, with all data in it. ",
            "Friday 20 November",
        ),
        (
            false,
            "It will be deleted on Friday 20 November at 18:00 Europe/Rome, with all data in it.",
            "is kept",
        ),
    ] {
        let told = mail.to_manager(&manager, "tea", is_kept);
        assert_ne!(told.key, mail.key, "a different Message-ID");
        assert_eq!(told.label(), "undeliverable");
        let text = rendered(&built_in(), &told).replace("\r\n", "\n");
        assert!(text.contains("Hello Grace Hopper,") && text.contains("your course tea."), "{text}");
        let words = format!("{} ", text.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(words.contains(said.trim_end()) && !words.contains(not_said), "{text}");
    }
}
