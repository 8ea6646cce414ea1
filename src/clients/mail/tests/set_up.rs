//! Tests of settings and the Maildir folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::config::ConfigDuration;

/// A configuration that writes into a folder.
fn file_config(folder: &Path) -> MailConfig {
    MailConfig {
        transport: MailTransport::File,
        folder: folder.display().to_string(),
        from: "CrownLabs <noreply@example.com>".to_owned(),
        time_zone: "Europe/Rome".to_owned(),
        ..MailConfig::default()
    }
}

/// A configuration with the file `smtp-config.yaml`.
fn smtp_config(folder: &Path, text: &str) -> MailConfig {
    fs::write(folder.join("smtp-config.yaml"), text).unwrap();
    MailConfig {
        transport: MailTransport::Smtp,
        config_dir: folder.display().to_string(),
        ..MailConfig::default()
    }
}

const SMTP: &str = "smtpServer: smtp.example.com
smtpPort: 465
smtpIdentity:
smtpUsername: crownlabs
smtpPassword: 0123
smtpFrom: noreply@example.com
other: [ignored]
";

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_mail_is_in_the_folder_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("mails");
    let mailer = || Mailer::new(&file_config(&place), Gate::open()).unwrap();
    let mail = plain(MailKind::Expired);
    mailer().send(&mail).await.unwrap();
    let name = name_of(&mail.key);
    assert_eq!(files(&place.join("new")), std::slice::from_ref(&name));
    let first = fs::read_to_string(place.join("new").join(&name)).unwrap();
    assert!(first.contains(&format!("\r\nMessage-ID: <{name}@example.com>\r\n")), "{first}");
    assert!(first.contains("\r\nTo: ada@example.com\r\n"), "{first}");
    // After a restart, or by a second leader.
    mailer().send(&mail).await.unwrap();
    assert_eq!(fs::read_to_string(place.join("new").join(&name)).unwrap(), first);
    // A mail program has shown it.
    fs::rename(place.join("new").join(&name), place.join("cur").join(format!("{name}:2,S"))).unwrap();
    mailer().send(&mail).await.unwrap();
    assert_eq!(files(&place.join("new")), Vec::<String>::new());
    // The previous attempt ended before the mail was moved.
    let next = Mail { key: "uid/kind/later".to_owned(), ..mail };
    fs::write(place.join("tmp").join(name_of(&next.key)), "half").unwrap();
    mailer().send(&next).await.unwrap();
    assert_eq!(files(&place.join("new")), [name_of(&next.key)]);
    assert_eq!(files(&place.join("tmp")), Vec::<String>::new());
}

/// Other mails are not blocked while the folder hangs. The folder hangs because a file is a pipe without a reader.
#[tokio::test]
async fn a_hanging_folder_delays_only_its_own_mail() {
    let folder = tempfile::tempdir().unwrap();
    let mailer = Mailer::new(&file_config(folder.path()), Gate::open()).unwrap();
    let mail = plain(MailKind::Expired);
    let pipe = folder.path().join("tmp").join(name_of(&mail.key));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (goes_on, watched) = std::sync::mpsc::channel();
    let watch = std::thread::spawn(move || {
        // If the mails are blocked, the pipe is read after some time, so that the test ends.
        let is_alive = watched.recv_timeout(Duration::from_mins(1)).is_ok();
        fs::read(pipe).unwrap();
        is_alive
    });
    let others = async {
        // The thread of the mail waits for a reader of the pipe.
        tokio::task::yield_now().await;
        goes_on.send(()).unwrap();
    };
    // Whether a pipe can be written to the disk does not matter.
    let _ = tokio::join!(mailer.send(&mail), others);
    assert!(watch.join().unwrap(), "other mails were blocked");
}

#[tokio::test]
async fn writing_to_a_hanging_folder_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let config = MailConfig { timeout: ConfigDuration::from_millis(50), ..file_config(folder.path()) };
    let mailer = Mailer::new(&config, Gate::open()).unwrap();
    let mail = plain(MailKind::Expired);
    let pipe = folder.path().join("tmp").join(name_of(&mail.key));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // If there is no timeout, the pipe is read after some time, so that the test ends.
    let (is_over, watched) = std::sync::mpsc::channel();
    let watch = std::thread::spawn(move || {
        let was_given_up = watched.recv_timeout(Duration::from_mins(1)).is_ok();
        // The thread of the mail ends with the reader of its pipe.
        fs::read(pipe).unwrap();
        was_given_up
    });
    let error = mailer.send(&mail).await.unwrap_err();
    let _ = is_over.send(());
    assert!(watch.join().unwrap(), "it did not time out");
    let path = folder.path().display();
    assert_eq!(error.to_string(), format!("the mail cannot be written to {path}: it takes longer than 50ms"));
}

#[tokio::test]
async fn nothing_is_sent_without_the_lease() {
    let folder = tempfile::tempdir().unwrap();
    let mailer = Mailer::new(&file_config(folder.path()), Gate::closed()).unwrap();
    let error = mailer.send(&plain(MailKind::Expired)).await.unwrap_err();
    assert_eq!((error.reason().as_str(), error.is_transient()), ("MailNotLeader", true));
    assert_eq!(files(&folder.path().join("new")), Vec::<String>::new());
}

#[tokio::test]
async fn an_invalid_mail_does_not_block_other_mails() {
    let folder = tempfile::tempdir().unwrap();
    let templates = folder.path().join("templates");
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/mail");
    fs::create_dir(&templates).unwrap();
    for file in files(&built_in) {
        fs::copy(built_in.join(&file), templates.join(&file)).unwrap();
    }
    let config =
        MailConfig { template_dir: templates.display().to_string(), ..file_config(&folder.path().join("m")) };
    let mailer = Mailer::new(&config, Gate::open()).unwrap();
    fs::write(templates.join(MailKind::Expired.file()), "to: [").unwrap();
    let error = mailer.send(&plain(MailKind::Expired)).await.unwrap_err();
    assert_eq!((error.reason().as_str(), error.is_transient()), ("MailTemplateInvalid", false));
    let begin =
        format!("the mail has no usable template: {}", templates.join(MailKind::Expired.file()).display());
    assert!(error.to_string().starts_with(&begin), "{error}");
    for address in
        ["", "nobody", "a@b@c", "a b@example.com", "a@example.com\r\nRCPT TO:<eve@example.org>", "<a@b.c>"]
    {
        let mail = Mail { tenant_email: address.to_owned(), ..plain(MailKind::ExpirationWarning) };
        let error = mailer.send(&mail).await.unwrap_err();
        assert_eq!(
            (error.reason().as_str(), error.is_transient()),
            ("MailRecipientInvalid", false),
            "{address:?}"
        );
        assert!(error.to_string().starts_with("the address of Tenant ada cannot be used: it is "), "{error}");
    }
    mailer.send(&plain(MailKind::ExpirationWarning)).await.unwrap();
}

#[test]
fn each_mail_and_each_failure_is_counted_from_zero() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        Mailer::new(&file_config(folder.path()), Gate::open()).unwrap()
    });
    let text = metrics.render();
    for kind in [
        "inactivity_warning",
        "inactivity_stopped",
        "destruction_warning",
        "destroyed",
        "expiration_warning",
        "expired",
    ] {
        for result in
            ["success", "MailRefused", "MailServerUnreachable", "MailTemplateInvalid", "MailTimeout"]
        {
            let series = format!("crownlabs_mails_total{{kind=\"{kind}\",result=\"{result}\"}} 0\n");
            assert!(text.contains(&series), "{series}{text}");
        }
    }
}

#[test]
fn the_reasons_of_all_failures_are_known() {
    let (server, problem, said) = (String::new, String::new, String::new);
    let template = TemplateError { file: String::new(), problem: problem() };
    let mut failures = vec![
        MailError::NotLeader,
        MailError::BadRecipient { tenant: String::new(), problem: problem() },
        MailError::Template(template),
        MailError::Settings(problem()),
        MailError::Unreachable { server: server(), problem: problem() },
        MailError::Timeout { server: server(), limit: Duration::ZERO },
        MailError::Certificate { server: server(), problem: problem() },
        MailError::Unavailable { server: server(), subject: Subject::Client, said: said() },
        MailError::Folder { path: PathBuf::new(), problem: problem() },
    ];
    for subject in [Subject::Client, Subject::Login, Subject::Sender, Subject::Recipient, Subject::Mail] {
        failures.push(MailError::Refused { server: server(), subject, said: said() });
    }
    let mut reasons: Vec<&str> = failures.iter().map(|failure| failure.reason().as_str()).collect();
    let mut known = MailError::REASONS.map(Reason::as_str);
    reasons.sort_unstable();
    known.sort_unstable();
    assert_eq!(reasons, known);
}

#[tokio::test]
async fn invalid_settings_are_reported_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let said = |config: &MailConfig| Mailer::new(config, Gate::open()).unwrap_err().to_string();
    assert_eq!(
        said(&MailConfig::default()),
        "integrations.mail.transport is none, so there is no mail server for notifications; expected smtp or file"
    );
    let zone = MailConfig { time_zone: "Europe/Atlantis".to_owned(), ..file_config(folder.path()) };
    assert_eq!(
        said(&zone),
        "integrations.mail.timeZone: \"Europe/Atlantis\" is not a time zone of the IANA database"
    );
    let templates = MailConfig { template_dir: "/nowhere".to_owned(), ..file_config(folder.path()) };
    let problem = said(&templates);
    assert!(
        problem.starts_with("integrations.mail.templateDir: /nowhere/defaults_crownlabs_mail.eml: "),
        "{problem}"
    );
    fs::write(folder.path().join("file"), "").unwrap();
    let problem = said(&file_config(&folder.path().join("file")));
    assert!(
        problem.starts_with("integrations.mail.folder: ") && problem.contains("cannot be used: "),
        "{problem}"
    );
    let smtp = MailConfig {
        transport: MailTransport::Smtp,
        host: "smtp.example.com".to_owned(),
        from: "a@example.com".to_owned(),
        username: "u".to_owned(),
        password_file: folder.path().join("file").display().to_string(),
        ..MailConfig::default()
    };
    let empty = "file cannot be read: it is empty; write the value into it";
    assert!(said(&smtp).ends_with(empty), "{}", said(&smtp));
    let login = MailConfig { username: String::new(), ca_file: "/nowhere".to_owned(), ..smtp.clone() };
    assert!(
        said(&login).starts_with("integrations.mail: caFile /nowhere cannot be read: "),
        "{}",
        said(&login)
    );
    let no_authority = MailConfig { username: String::new(), ca_file: smtp.password_file.clone(), ..smtp };
    assert!(said(&no_authority).ends_with(empty), "{}", said(&no_authority));
    fs::write(folder.path().join("file"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .unwrap();
    let problem = said(&no_authority);
    assert!(problem.starts_with("integrations.mail: the CA certificates: "), "{problem}");
}

#[test]
fn the_file_of_the_go_operators_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let config = smtp_config(folder.path(), SMTP);
    let settings = Settings::read(&config).ok().unwrap();
    assert_eq!(settings.server(), "smtp.example.com:465");
    assert_eq!(settings.from.to_string(), "noreply@example.com");
    assert!(settings.tls == MailTls::Implicit);
    // Numbers, booleans and dates are read as text.
    for (written, password) in [
        ("0123", "0123"),
        ("1e3", "1e3"),
        ("0x1F", "0x1F"),
        ("yes", "yes"),
        ("True", "True"),
        ("2026-11-20", "2026-11-20"),
        ("\"null\"", "null"),
        ("'a: #b'", "a: #b"),
    ] {
        let config = smtp_config(folder.path(), &SMTP.replace("0123", written));
        let login = Settings::read(&config).ok().unwrap().login.unwrap();
        assert_eq!((login.identity.as_str(), login.password.as_str()), ("", password));
    }
    let other = SMTP
        .replace("smtpPort: 465", "smtpPort: \"587\"\nsmtpTLS: starttls")
        .replace("noreply@example.com", "CrownLabs <noreply@example.com>");
    let settings = Settings::read(&smtp_config(folder.path(), &other)).ok().unwrap();
    assert!(settings.tls == MailTls::Starttls && settings.port == 587);
    assert_eq!(settings.from.name, "CrownLabs");
    assert_eq!(settings.from.address.to_string(), "noreply@example.com");
}

#[test]
fn errors_in_the_file_of_the_go_operators_omit_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let secret = SMTP.replace("0123", "hunter2");
    let begin = format!("{}: ", folder.path().join("smtp-config.yaml").display());
    for (text, problem) in [
        (secret.replace("smtp.example.com", ""), "smtpServer is missing or empty"),
        (secret.replace("smtpUsername: crownlabs\n", ""), "smtpUsername is missing or empty"),
        (secret.replace("hunter2", "~"), "smtpPassword is missing or empty"),
        (
            secret.replace("465", "smtp"),
            "smtpPort is not a valid port; expected a whole number from 1 to 65535",
        ),
        (
            secret.replace("465", "70000"),
            "smtpPort is not a valid port; expected a whole number from 1 to 65535",
        ),
        (secret.replace("noreply@example.com", "noreply"), "smtpFrom: not a valid e-mail address"),
        (secret.clone() + "smtpTLS: ssl\n", "smtpTLS is not valid; expected implicit, starttls or none"),
        (secret.clone() + "smtpCAFile: /nowhere\n", "caFile /nowhere cannot be read: "),
        (secret.replace("hunter2", "[hunter2"), "it is not valid YAML in line "),
        (secret.replace("hunter2", "{hunter2: 1}"), "it is not valid YAML in line 5; "),
        (secret.clone() + "smtpPassword: hunter2\n", "it is not valid YAML in line "),
    ] {
        let error = Settings::read(&smtp_config(folder.path(), &text)).err().unwrap();
        assert!(error.starts_with(&format!("{begin}{problem}")), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    fs::remove_file(folder.path().join("smtp-config.yaml")).unwrap();
    let config = MailConfig {
        transport: MailTransport::Smtp,
        config_dir: folder.path().display().to_string(),
        ..MailConfig::default()
    };
    let error = Settings::read(&config).err().unwrap();
    assert!(error.contains("smtp-config.yaml cannot be read: "), "{error}");
}

#[test]
fn responses_of_the_server_are_shortened_and_omit_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let config = smtp_config(folder.path(), &SMTP.replace("0123", "hunter2"));
    let settings = Settings::read(&config).ok().unwrap();
    // "hunter2" and "\0crownlabs\0hunter2" in Base64.
    let said = settings.said("no\r\nhunter2 aHVudGVyMg== AGNyb3dubGFicwBodW50ZXIy");
    assert_eq!(said, "no … … …");
    assert_eq!(settings.said(&"x".repeat(1_000)).len(), 300);
}

#[test]
fn the_default_port_depends_on_the_encryption() {
    for (tls, port) in [(MailTls::Implicit, 465), (MailTls::Starttls, 587), (MailTls::None, 25)] {
        let config = MailConfig {
            transport: MailTransport::Smtp,
            host: "::1".to_owned(),
            from: "a@example.com".to_owned(),
            tls,
            timeout: ConfigDuration::from_secs(1),
            ..MailConfig::default()
        };
        assert_eq!(Settings::read(&config).ok().unwrap().server(), format!("[::1]:{port}"));
    }
}
