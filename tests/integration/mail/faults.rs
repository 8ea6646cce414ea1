//! Mail servers that reject mails, fail or do not answer, and the errors that report it.

use std::fs;
use std::time::{Duration, Instant};

use crownlabs::testing::mail::{MailError, Mailer};
use crownlabs::testing::{ConfigDuration, Gate, MailConfig, MailTls};
use tokio::net::TcpListener;

use super::mail_to;
use super::server::{Kind, MailServer, PASSWORD, certificates};
use crate::daemon::reserved_port;

/// The error of a mail to that recipient.
async fn error(mailer: &Mailer, recipient: &str) -> MailError {
    mailer.send(&mail_to(recipient)).await.expect_err("not accepted")
}

/// The error with another configuration.
async fn error_with(server: &MailServer, change: impl FnOnce(&mut MailConfig)) -> MailError {
    let mut config = server.config();
    change(&mut config);
    let mailer = Mailer::new(&config, Gate::open()).expect("a client");
    let error = error(&mailer, "ada").await;
    assert!(server.accepted().is_empty(), "accepted anyway");
    error
}

#[tokio::test]
async fn a_wrong_password_is_reported_and_a_rotated_one_is_used_at_once() {
    let server = MailServer::start(Kind::default());
    let mailer = server.mailer();
    fs::write(server.file("password"), "pa55word").expect("written");
    let refused = error(&mailer, "ada").await;
    assert_eq!((refused.reason().as_str(), refused.is_transient()), ("MailLoginRefused", false));
    // The server repeats the password.
    assert_eq!(
        refused.to_string(),
        format!(
            "the mail server {} does not accept the login: 535 5.7.8 … is not the password of crownlabs; check \
             username and the content of passwordFile, or smtp-config.yaml",
            server.address()
        )
    );
    fs::write(server.file("password"), PASSWORD).expect("written");
    mailer.send(&mail_to("ada")).await.expect("accepted");
    fs::remove_file(server.file("password")).expect("removed");
    let missing = error(&mailer, "ada").await;
    assert_eq!((missing.reason().as_str(), missing.is_transient()), ("MailSettingsInvalid", false));
}

#[tokio::test]
async fn a_login_that_is_not_offered_is_not_tried() {
    let server = MailServer::start(Kind { tls: MailTls::Starttls, ..Kind::default() });
    // The server offers STARTTLS and, before it, no login.
    let error = error_with(&server, |config| config.tls = MailTls::None).await;
    assert_eq!((error.reason().as_str(), error.is_transient()), ("MailLoginRefused", false), "{error}");
    assert!(error.to_string().contains("offers neither PLAIN nor LOGIN"), "{error}");
}

#[tokio::test]
async fn nothing_is_sent_where_starttls_is_not_offered() {
    let server = MailServer::start(Kind { tls: MailTls::None, ..Kind::default() });
    let error = error_with(&server, |config| config.tls = MailTls::Starttls).await;
    assert_eq!((error.reason().as_str(), error.is_transient()), ("MailConnectionRefused", false));
    let said = "rejects mail from this installation: it does not offer STARTTLS; ";
    assert!(error.to_string().contains(said), "{error}");
}

#[tokio::test]
async fn the_rejected_command_is_reported() {
    let server = MailServer::start(Kind::default());
    let mailer = server.mailer();
    let at = server.address();
    let recipient = error(&mailer, "refused").await;
    assert_eq!((recipient.reason().as_str(), recipient.is_transient()), ("MailRecipientRefused", false));
    let said = format!("the mail server {at} rejects the recipient: 550 5.1.1 no such mailbox");
    assert_eq!(recipient.to_string(), said);
    let full = error(&mailer, "full").await;
    assert_eq!((full.reason().as_str(), full.is_undeliverable()), ("MailRecipientRefused", true));
    assert_eq!(
        full.to_string(),
        format!("the mail server {at} rejects the recipient: 552 5.2.2 the mailbox is full")
    );
    let sender = error_with(&server, |config| config.from = "refused@example.org".to_owned()).await;
    assert_eq!((sender.reason().as_str(), sender.is_transient()), ("MailSenderRefused", false));
}

#[tokio::test]
async fn a_rejected_client_is_not_a_rejected_recipient() {
    for refuses in ["EHLO", "EHLO at RCPT", "RCPT"] {
        let server = MailServer::start(Kind { refuses, ..Kind::default() });
        let error = error_with(&server, |config| config.ehlo_name = "localhost".to_owned()).await;
        assert_eq!(
            (error.reason().as_str(), error.is_undeliverable()),
            ("MailConnectionRefused", false),
            "{refuses}: {error}"
        );
        let said = format!("the mail server {} rejects mail from this installation: 5", server.address());
        let advice = "; allow the addresses of the pods there, or check ehloName, username and tls";
        assert!(error.to_string().starts_with(&said) && error.to_string().ends_with(advice), "{error}");
    }
}

#[tokio::test]
async fn a_greylisted_mail_is_accepted_later() {
    let server = MailServer::start(Kind::default());
    let mailer = server.mailer();
    let later = error(&mailer, "greylisted").await;
    assert_eq!((later.reason().as_str(), later.is_transient()), ("MailServerUnavailable", true));
    let said =
        format!("the mail server {} cannot take the mail now: 451 4.7.1 try again later", server.address());
    assert_eq!(later.to_string(), said);
    mailer.send(&mail_to("greylisted")).await.expect("accepted");
}

#[tokio::test]
async fn a_broken_connection_is_transient() {
    let server = MailServer::start(Kind::default());
    let broken = error(&server.mailer(), "dropped").await;
    assert_eq!(
        (broken.reason().as_str(), broken.is_transient()),
        ("MailServerUnreachable", true),
        "{broken}"
    );
    let refused = error_with(&server, |config| config.port = reserved_port()).await;
    assert_eq!((refused.reason().as_str(), refused.is_transient()), ("MailServerUnreachable", true));
    assert!(refused.to_string().contains("refused"), "{refused}");
    let unknown = error_with(&server, |config| config.host = "mail.invalid".to_owned()).await;
    assert_eq!(
        (unknown.reason().as_str(), unknown.is_transient()),
        ("MailServerUnreachable", true),
        "{unknown}"
    );
}

#[tokio::test]
async fn a_silent_server_times_out_and_its_connection_is_closed() {
    let server = MailServer::start(Kind::default());
    // Enough time for the mail that is accepted.
    let limit = Duration::from_secs(5);
    let config = MailConfig { timeout: ConfigDuration::from_secs(5), ..server.config() };
    let mailer = Mailer::new(&config, Gate::open()).expect("a client");
    let begin = Instant::now();
    let silent = error(&mailer, "silent").await;
    // Without the key, the limit is 30 s.
    assert!(begin.elapsed() >= limit && begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!((silent.reason().as_str(), silent.is_transient()), ("MailTimeout", true));
    let said = format!("the mail server {} has not accepted the mail within 5s", server.address());
    assert_eq!(silent.to_string(), said);
    // The next mail has its own connection, so it does not get a late response for another mail.
    mailer.send(&mail_to("ada")).await.expect("accepted");
    assert_eq!(server.accepted()[0].to, ["ada@example.com"]);
    assert_eq!(server.accepted().len(), 1);
}

#[tokio::test]
async fn a_server_that_never_greets_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = MailServer::start(Kind { tls: MailTls::None, ..Kind::default() });
    for tls in [MailTls::Implicit, MailTls::Starttls, MailTls::None] {
        let error = error_with(&server, |config| {
            (config.port, config.tls, config.timeout) = (port, tls, ConfigDuration::from_secs(2));
        });
        assert_eq!(error.await.reason(), "MailTimeout", "{tls:?}");
    }
}

#[tokio::test]
async fn the_certificate_is_checked() {
    for tls in [MailTls::Implicit, MailTls::Starttls] {
        let server = MailServer::start(Kind { tls, name: "other.example.com", ..Kind::default() });
        let other_name = error_with(&server, |_| ()).await;
        assert_eq!(
            (other_name.reason().as_str(), other_name.is_transient()),
            ("MailCertificateRefused", false)
        );
        assert!(other_name.to_string().contains("check host and caFile"), "{other_name}");

        let server = MailServer::start(Kind { tls, ..Kind::default() });
        let folder = tempfile::tempdir().expect("a folder");
        certificates(folder.path(), "127.0.0.1");
        let ca_file = folder.path().join("ca.crt");
        let unknown = |config: &mut MailConfig| config.ca_file = ca_file.display().to_string();
        assert_eq!(error_with(&server, unknown).await.reason(), "MailCertificateRefused");
        // The file is read again for each connection.
        let mailer = server.mailer();
        let ours = fs::read(server.file("ca.crt")).expect("read");
        fs::copy(&ca_file, server.file("ca.crt")).expect("copied");
        assert_eq!(error(&mailer, "ada").await.reason(), "MailCertificateRefused");
        fs::write(server.file("ca.crt"), ours).expect("written");
        mailer.send(&mail_to("ada")).await.expect("accepted");
    }
}

#[tokio::test]
async fn a_server_without_tls_or_smtp_is_unreachable() {
    let server = MailServer::start(Kind { tls: MailTls::None, ..Kind::default() });
    let no_tls = error_with(&server, |config| config.tls = MailTls::Implicit).await;
    assert_eq!(
        (no_tls.reason().as_str(), no_tls.is_transient()),
        ("MailServerUnreachable", true),
        "{no_tls}"
    );
}
