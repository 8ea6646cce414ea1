//! Mail to Tenants through a real mail server. Each test has its own server. The recipient determines what the
//! server does with a mail.

mod faults;
pub mod server;
mod undeliverable;

use std::fs;

use crownlabs::testing::mail::{End, Mail, MailError, MailKind, Mailer, Wording};
use crownlabs::testing::{Gate, MailTls};

use server::{Accepted, Kind, MailServer, PASSWORD};

/// A mail to `<local>@example.com`.
fn mail_to(local: &str) -> Mail {
    Mail {
        kind: MailKind::ExpirationWarning,
        end: Some(End::Deleted),
        warning: Some((1, 1)),
        key: format!("{local}/ExpirationWarning/2026-11-20T17:00:00Z"),
        tenant_name: "ada".to_owned(),
        full_name: "Ada Rossi".to_owned(),
        tenant_email: format!("{local}@example.com"),
        pretty_name: "Übung 🎓".to_owned(),
        instance_name: "lab-1".to_owned(),
        namespace: "tenant-ada".to_owned(),
        remaining: std::time::Duration::from_hours(24),
        deadline: "2026-11-20T17:00:00Z".parse().expect("a time"),
        files: Vec::new(),
        link: "https://labs.example.com/".to_owned(),
        created: "2026-11-01T17:00:00Z".parse().expect("a time"),
        wording: Wording::Templates,
    }
}

/// Sends a mail through a server of this kind, and returns the mail that the server has accepted.
async fn sent(kind: Kind) -> Accepted {
    let server = MailServer::start(kind);
    server.mailer().send(&mail_to("ada")).await.expect("accepted");
    let mut accepted = server.accepted();
    assert_eq!(accepted.len(), 1);
    accepted.remove(0)
}

#[tokio::test]
async fn a_mail_goes_through_with_each_kind_of_encryption_and_login() {
    for tls in [MailTls::Implicit, MailTls::Starttls, MailTls::None] {
        for login in [true, false] {
            let accepted = sent(Kind { tls, login, ..Kind::default() }).await;
            assert_eq!(accepted.tls, tls != MailTls::None);
            let name = if login { serde_json::json!("crownlabs") } else { serde_json::Value::Null };
            assert_eq!(accepted.login["name"], name, "{tls:?}");
            assert_eq!(accepted.from, "noreply@example.com");
            assert_eq!(accepted.to, ["ada@example.com"]);
            assert_eq!(accepted.hello, "example.com", "the domain of the sender");
            assert_eq!(accepted.options, ["BODY=8BITMIME"]);
        }
    }
}

#[tokio::test]
async fn the_bytes_arrive_as_they_were_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = MailServer::start(Kind::default());
    let built_in = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("config/mail");
    for file in fs::read_dir(built_in).expect("templates") {
        let file = file.expect("a file");
        fs::copy(file.path(), folder.path().join(file.file_name())).expect("copied");
    }
    // Lines that begin with a dot, one of them alone, and empty lines at the end.
    let message = "To: { to }\n\n.\n.two\n..\n\n\n";
    fs::write(folder.path().join("defaults_crownlabs_mail.eml"), message).expect("written");
    let config = crownlabs::testing::MailConfig {
        template_dir: folder.path().display().to_string(),
        ..server.config()
    };
    let mailer = Mailer::new(&config, Gate::open()).expect("a client");
    mailer.send(&mail_to("ada")).await.expect("accepted");
    let accepted = server.accepted().remove(0);
    assert_eq!(accepted.text, "To: ada@example.com\r\n\r\n.\r\n.two\r\n..\r\n\r\n\r\n");
}

#[tokio::test]
async fn a_mail_has_the_same_identifier_in_each_attempt() {
    let server = MailServer::start(Kind::default());
    let mailer = server.mailer();
    let other = Mail { key: "other".to_owned(), ..mail_to("ada") };
    for mail in [&mail_to("ada"), &mail_to("ada"), &other] {
        mailer.send(mail).await.expect("accepted");
    }
    let id = |mail: &Accepted| {
        let line = mail.text.lines().find(|line| line.starts_with("Message-ID: <")).expect("an identifier");
        assert!(line.ends_with("@example.com>"), "{line}");
        line.to_owned()
    };
    let accepted = server.accepted();
    assert_eq!(id(&accepted[0]), id(&accepted[1]));
    assert_ne!(id(&accepted[0]), id(&accepted[2]));
}

#[tokio::test]
async fn connections_are_used_again_while_the_server_keeps_them() {
    let server = MailServer::start(Kind::default());
    let mailer = server.mailer();
    for _ in 0..3 {
        mailer.send(&mail_to("ada")).await.expect("accepted");
    }
    let peers: Vec<u16> = server.accepted().iter().map(|mail| mail.peer).collect();
    assert_eq!(peers, vec![peers[0]; 3], "one connection for all");
    // A rejected mail leaves no connection behind in the middle of its conversation.
    mailer.send(&mail_to("refused")).await.expect_err("refused");
    mailer.send(&mail_to("ada")).await.expect("accepted");
    let second = server.accepted()[3].peer;
    assert_ne!(second, peers[0]);
    // The server has closed the connection in the meantime, which the client notices at the next use.
    fs::write(server.file("close"), "").expect("written");
    mailer.send(&mail_to("ada")).await.expect("accepted");
    fs::remove_file(server.file("close")).expect("removed");
    assert_ne!(server.accepted()[4].peer, second);
    // Many mails at once share a few connections.
    let mails: Vec<Mail> = (0..20).map(|number| mail_to(&format!("ada{number}"))).collect();
    let results = futures::future::join_all(mails.iter().map(|mail| mailer.send(mail))).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let accepted = server.accepted();
    let peers: std::collections::BTreeSet<u16> = accepted[5..].iter().map(|mail| mail.peer).collect();
    assert_eq!(accepted.len(), 25);
    assert!(peers.len() <= 4, "{peers:?}");
}

#[tokio::test]
async fn the_client_announces_the_domain_of_the_sender_or_the_configured_name() {
    let server = MailServer::start(Kind { refuses: "EHLO", ..Kind::default() });
    for (from, ehlo_name, expected) in [
        ("labs@example.org", "", "example.org"),
        ("labs@bücher.example", "xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("labs@localhost", "mail.example.org", "mail.example.org"),
        ("labs@localhost", "[192.0.2.1]", "[192.0.2.1]"),
        ("labs@[192.0.2.2]", "", "[192.0.2.2]"),
    ] {
        let config = crownlabs::testing::MailConfig {
            from: from.to_owned(),
            ehlo_name: ehlo_name.to_owned(),
            ..server.config()
        };
        let mailer = Mailer::new(&config, Gate::open()).expect("a client");
        mailer.send(&mail_to("ada")).await.expect("accepted");
        assert_eq!(server.accepted().last().expect("a mail").hello, expected, "{from}");
    }
    let config =
        crownlabs::testing::MailConfig { from: "labs@bücher.example".to_owned(), ..server.config() };
    let error = Mailer::new(&config, Gate::open()).expect_err("the name is not in ASCII").to_string();
    assert!(error.contains("set ehloName"), "{error}");
}

#[tokio::test]
async fn a_login_can_act_as_another_user_and_use_the_older_way() {
    let server = MailServer::start(Kind::default());
    let config = crownlabs::testing::MailConfig { identity: "labs".to_owned(), ..server.config() };
    let mailer = Mailer::new(&config, Gate::open()).expect("a client");
    mailer.send(&mail_to("ada")).await.expect("accepted");
    assert_eq!(server.accepted()[0].login["identity"], "labs");
    let accepted = sent(Kind { without: "PLAIN", ..Kind::default() }).await;
    assert_eq!(accepted.login["name"], "crownlabs");
}

#[tokio::test]
async fn the_file_of_the_go_operators_is_enough() {
    let server = MailServer::start(Kind::default());
    let (host, port) = ("127.0.0.1", server.config().port);
    let ca = server.file("ca.crt").display().to_string();
    let write = |password: &str| {
        let text = format!(
            "smtpServer: {host}\nsmtpPort: {port}\nsmtpUsername: crownlabs\nsmtpPassword: {password}\n\
             smtpFrom: noreply@example.com\nsmtpCAFile: {ca}\n"
        );
        fs::write(server.file("smtp-config.yaml"), text).expect("written");
    };
    write("wrong");
    let config = crownlabs::testing::MailConfig {
        transport: crownlabs::testing::MailTransport::Smtp,
        config_dir: server.file("").display().to_string(),
        ..crownlabs::testing::MailConfig::default()
    };
    let mailer = Mailer::new(&config, Gate::open()).expect("a client");
    let error = mailer.send(&mail_to("ada")).await.expect_err("the password is wrong");
    assert_eq!(error.reason(), "MailLoginRefused");
    // The file is read again for each mail.
    write(PASSWORD);
    mailer.send(&mail_to("ada")).await.expect("accepted");
    assert_eq!(server.accepted()[0].from, "noreply@example.com");
}

#[tokio::test]
async fn nothing_is_sent_once_the_lease_is_lost() {
    let server = MailServer::start(Kind::default());
    let gate = Gate::open();
    let mailer = Mailer::new(&server.config(), gate.clone()).expect("a client");
    mailer.send(&mail_to("ada")).await.expect("accepted");
    gate.close();
    assert_eq!(mailer.send(&mail_to("ada")).await, Err(MailError::NotLeader));
    assert_eq!(server.accepted().len(), 1);
}
