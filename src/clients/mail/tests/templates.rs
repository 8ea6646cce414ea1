//! Templates of administrators: files in the form of the Go operators, and files with mistakes.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;

/// A whole mail in the form that the Go operators ship.
const EML: &str = "From: { from }
To: { to }
Subject: { subject }
Date: { date }
Message-ID: { message-id }
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary=\"CrownLabsEmailBoundary\"

--CrownLabsEmailBoundary
Content-Type: text/plain; charset=UTF-8

{ plaintext_header }
{ plaintext_content }
{ plaintext_footer }

--CrownLabsEmailBoundary
Content-Type: text/html; charset=UTF-8

{ html_header }
{ html_content }
{ html_footer }

--CrownLabsEmailBoundary--
";
const FRAGMENTS: &str = "from: nobody
html_header: |-
  <html><head><style>p { color: red }</style></head><body>
html_footer: \"</body></html>\"
plaintext_header: Hi {tenantName}
plaintext_footer: Bye
subject: \"from the shared file\"
";
const CONTENT: &str = "to: '{tenantEmail}'
subject: \"overridden\"
plaintext_content: |-
  {tenantName}: {  prettyName\t} ({instanceName}) ends in { remainingTime }.
  Costs $100, a$b, {TenantName} {unknown}.
html_content: |-
  <b>{prettyName}</b> { remainingTime }
";

/// A folder with these templates. The four older mails have the same content.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "defaults_crownlabs_mail.eml", EML);
    write(&folder, "defaults_crownlabs_headers.yaml", FRAGMENTS);
    for kind in [
        MailKind::InactivityWarning,
        MailKind::InactivityStopped,
        MailKind::ExpirationWarning,
        MailKind::Expired,
    ] {
        write(&folder, kind.file(), CONTENT);
    }
    folder
}

fn write(folder: &TempDir, file: &str, text: &str) {
    fs::write(folder.path().join(file), text).unwrap();
}

fn templates(folder: &Path) -> Templates {
    Templates::new(folder.to_str().unwrap())
}

#[test]
fn existing_files_give_the_same_mail_as_before() {
    let folder = folder();
    let mail = Mail { pretty_name: "A & B".to_owned(), ..plain(MailKind::ExpirationWarning) };
    let expected = "From: CrownLabs <noreply@Example.com>
To: ada@example.com
Subject: from the shared file
Date: Tue, 17 Nov 2026 09:05:00 +0000
Message-ID: <0123456789abcdef0123456789abcdef@example.com>
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary=\"CrownLabsEmailBoundary\"

--CrownLabsEmailBoundary
Content-Type: text/plain; charset=UTF-8

Hi {tenantName}
ada: A & B (lab-one-0001) ends in 72h0m0s.
Costs $100, a$b, {TenantName} {unknown}.
Bye

--CrownLabsEmailBoundary
Content-Type: text/html; charset=UTF-8

<html><head><style>p { color: red }</style></head><body>
<b>A &amp; B</b> 72h0m0s
</body></html>

--CrownLabsEmailBoundary--
";
    assert_eq!(rendered(&templates(folder.path()), &mail), expected.replace('\n', "\r\n"));
    // The same with Windows line ends.
    write(&folder, "defaults_crownlabs_mail.eml", &EML.replace('\n', "\r\n"));
    write(&folder, MailKind::ExpirationWarning.file(), &CONTENT.replace('\n', "\r\n"));
    assert_eq!(rendered(&templates(folder.path()), &mail), expected.replace('\n', "\r\n"));
}

#[test]
fn other_keys_are_placeholders_of_the_mail_and_values_on_header_lines_are_one_line() {
    let folder = folder();
    write(
        &folder,
        "defaults_crownlabs_mail.eml",
        "To: { to }\nX-Course: { course }\n\n{ course }\n{ link }\n",
    );
    let content =
        "to: '\"Zoë\" <{ tenantEmail }>'\ncourse: |\n  Città {namespace}\n  two\nlink: '{ link }'\n";
    write(&folder, MailKind::Expired.file(), content);
    assert_eq!(
        rendered(&templates(folder.path()), &plain(MailKind::Expired)),
        "To: =?UTF-8?B?Wm/Dqw==?= <ada@example.com>\r\nX-Course: =?UTF-8?B?Q2l0dMOg?= tenant-ada two\r\n\r\n\
         Città tenant-ada\r\ntwo\r\n\r\nhttps://labs.example.com/instances?a=1&b=2\r\n"
    );
}

#[test]
fn texts_of_users_are_escaped_in_html_parts_for_any_key() {
    let folder = folder();
    write(&folder, "defaults_crownlabs_mail.eml", "Content-Type: text/html\n\n<title>{ subject }</title>\n");
    write(&folder, "defaults_crownlabs_headers.yaml", "unused: text\n");
    write(&folder, MailKind::Expired.file(), "subject: '<i>{ prettyName }</i>'\n");
    let mail = Mail { pretty_name: "<script>".to_owned(), ..plain(MailKind::Expired) };
    assert_eq!(
        rendered(&templates(folder.path()), &mail),
        "Content-Type: text/html\r\n\r\n<title><i>&lt;script&gt;</i></title>\r\n"
    );
}

#[test]
fn a_folder_is_read_again_for_each_mail() {
    let folder = folder();
    let templates = templates(folder.path());
    assert!(rendered(&templates, &plain(MailKind::Expired)).contains("Costs $100"));
    write(
        &folder,
        MailKind::Expired.file(),
        "to: a\nsubject: b\nplaintext_content: newer\nhtml_content: c\n",
    );
    assert!(rendered(&templates, &plain(MailKind::Expired)).contains("\r\nnewer\r\n"));
}

#[test]
fn missing_templates_of_later_mails_are_built_in() {
    let folder = folder();
    let templates = templates(folder.path());
    assert_eq!(templates.check().unwrap().len(), 8, "TenantName and unknown, in four files");
    for kind in [MailKind::DestructionWarning, MailKind::Destroyed] {
        let mail = rendered(&templates, &plain(kind));
        assert!(
            mail.contains("Europe/Rome,\r\nwith all data in it.") && mail.contains("\r\nBye\r\n"),
            "{mail}"
        );
        write(&folder, kind.file(), "to: a\nplaintext_content: ours\nhtml_content: b\n");
        assert!(rendered(&templates, &plain(kind)).contains("\r\nours\r\n"));
    }
    let receipt = rendered(&templates, &plain(MailKind::SubmissionReceipt));
    assert!(
        receipt.contains("Received: exam-1.zip (12345 bytes, ") && receipt.contains("\r\nBye\r\n"),
        "{receipt}"
    );
    fs::remove_file(folder.path().join(MailKind::InactivityStopped.file())).unwrap();
    let error = templates.check().unwrap_err().to_string();
    let file = folder.path().join("instautoctrl_inactivity_stopped_notification.yaml");
    assert!(error.starts_with(&format!("{}: it cannot be read: ", file.display())), "{error}");
}

#[test]
fn keys_that_only_the_folder_has_are_empty_in_built_in_templates() {
    let folder = folder();
    write(
        &folder,
        "defaults_crownlabs_mail.eml",
        &EML.replacen("\n\n--", "\nX-Course: { course }\n\n{ course }--", 1),
    );
    for kind in [
        MailKind::InactivityWarning,
        MailKind::InactivityStopped,
        MailKind::ExpirationWarning,
        MailKind::Expired,
    ] {
        write(&folder, kind.file(), "to: a\nplaintext_content: b\nhtml_content: c\ncourse: tea\n");
    }
    let templates = templates(folder.path());
    assert_eq!(templates.check().unwrap(), Vec::<String>::new());
    assert!(rendered(&templates, &plain(MailKind::Expired)).contains("X-Course: tea\r\n"));
    let mail = rendered(&templates, &plain(MailKind::Destroyed));
    assert!(mail.contains("X-Course: \r\n\r\n--") && !mail.contains("course"), "{mail}");
    // A key that no file has is a mistake.
    write(&folder, MailKind::Expired.file(), "to: a\nplaintext_content: b\nhtml_content: c\n");
    let doubts = templates.check().unwrap();
    assert!(
        doubts.len() == 1 && doubts[0].ends_with(&format!("nor {} has this key", MailKind::Expired.file())),
        "{doubts:?}"
    );
}

#[test]
fn templates_can_use_the_action_the_warning_number_and_the_greeting() {
    let folder = folder();
    let content =
        "to: a\nplaintext_content: '{action}|{data}|{warning}|{fullName}|{greeting}'\nhtml_content: c\n";
    for kind in MailKind::ALL {
        write(&folder, kind.file(), content);
    }
    let templates = templates(folder.path());
    assert_eq!(templates.check().unwrap(), Vec::<String>::new());
    for (mail, said) in [
        (
            plain(MailKind::InactivityWarning),
            "stopped|and its disk is kept, so that it can be started again|1 of 3|Ada Rossi|Hello Ada Rossi,",
        ),
        (
            Mail { end: Some(End::Deleted), full_name: String::new(), ..plain(MailKind::InactivityStopped) },
            "deleted|with all data in it|||Hello,",
        ),
        (plain(MailKind::SubmissionReceipt), "|||Ada Rossi|Hello Ada Rossi,"),
    ] {
        let text = rendered(&templates, &mail);
        assert!(text.contains(&format!("\r\n{said}\r\n")), "{text}");
    }
}

#[test]
fn mistakes_are_reported_with_their_file() {
    let kind = MailKind::InactivityWarning.file();
    for (file, text, problem) in [
        (kind, "", "it is empty"),
        (kind, " \n", "it is empty"),
        (kind, "a: [b\n", "line 1: not valid YAML: "),
        (kind, "to: x\nto: y\n", "line 2: not valid YAML: "),
        (kind, "- a\n", "line 1: not valid YAML: "),
        (kind, "to: { tenantEmail }\n", "to is not text; expected every value to be in quotes or behind |-"),
        (kind, "to: 5\n", "to is not text; expected every value to be in quotes or behind |-"),
        (kind, "to:\n", "to is not text; expected every value to be in quotes or behind |-"),
        // Otherwise the placeholders of the whole mail would be sent unchanged.
        (
            kind,
            "subject: a\nplaintext_content: b\nhtml_content: c\n",
            "to is missing, and defaults_crownlabs_mail.eml has ",
        ),
        (kind, "to: a\nplaintext_content: b\n", "html_content is missing, and "),
        (kind, "to: a\nplaintext_contents: b\nhtml_content: c\n", "plaintext_content is missing, and "),
        ("defaults_crownlabs_headers.yaml", "a: {b: c}\n", "a is not text; expected "),
        ("defaults_crownlabs_mail.eml", "", "it is empty"),
        (
            "defaults_crownlabs_mail.eml",
            "Subject: x\nbody\n",
            "there is no empty line between the headers and the text",
        ),
    ] {
        let folder = folder();
        write(&folder, file, text);
        let error = templates(folder.path()).check().unwrap_err();
        assert_eq!(error.file, folder.path().join(file).display().to_string());
        assert!(error.problem.starts_with(problem), "{text:?}: {}", error.problem);
    }
    let folder = folder();
    fs::write(folder.path().join("defaults_crownlabs_mail.eml"), b"A: \xff\n\nb").unwrap();
    assert_eq!(templates(folder.path()).check().unwrap_err().problem, "it is not UTF-8 text");
}

#[test]
fn undefined_placeholders_of_the_whole_mail_are_reported() {
    let folder = folder();
    // A content file does not need a subject if the shared file has one.
    let content = CONTENT.replace("subject: \"overridden\"\n", "").replace("{TenantName} {unknown}", "");
    for kind in MailKind::ALL {
        write(&folder, kind.file(), &content);
    }
    let templates = templates(folder.path());
    assert_eq!(templates.check().unwrap(), Vec::<String>::new());
    let eml = EML.replacen("\n\n--", "\nX-Course: { course }\nX-Room: { room }\n\n--", 1);
    write(&folder, "defaults_crownlabs_mail.eml", &eml);
    write(&folder, MailKind::Expired.file(), &format!("course: tea\n{content}"));
    let doubts = templates.check().unwrap();
    assert_eq!(doubts.len(), 2, "{doubts:?}");
    let others: Vec<&str> =
        MailKind::ALL.into_iter().filter(|kind| *kind != MailKind::Expired).map(MailKind::file).collect();
    assert_eq!(
        doubts[0],
        format!(
            "defaults_crownlabs_mail.eml: {{ course }} is not replaced, because neither \
             defaults_crownlabs_headers.yaml nor {} has this key",
            others.join(", ")
        )
    );
    assert!(
        doubts[1].contains("{ room } is not replaced") && doubts[1].contains(MailKind::Expired.file()),
        "{doubts:?}"
    );
    assert!(
        rendered(&templates, &plain(MailKind::Expired)).contains("\r\nX-Course: tea\r\nX-Room: { room }\r\n")
    );
}

#[test]
fn the_built_in_templates_are_complete() {
    assert_eq!(built_in().check().unwrap(), Vec::<String>::new());
    for kind in MailKind::ALL {
        let mail = rendered(&built_in(), &plain(kind));
        assert!(!mail.contains("{ ") || !mail.contains("_content }"), "{mail}");
    }
}
