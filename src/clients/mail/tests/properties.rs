//! No value can add a header, end a part of a mail, or add to its HTML.

use proptest::prelude::*;

use super::*;
use crate::api::shown::is_control;

/// Texts that users could choose, many with characters that have a meaning in a mail.
fn name() -> impl Strategy<Value = String> {
    let hostile = prop_oneof![
        Just("\r\n"),
        Just("\n"),
        Just("\r"),
        Just("\r\n\r\n"),
        Just("\r\n.\r\n"),
        Just("\r\nBcc: eve@example.org"),
        Just("--CrownLabsEmailBoundary"),
        Just("--CrownLabsEmailBoundary--"),
        Just("CrownLabsEmailBoundary"),
        Just("--"),
        Just("boundary=\"x\""),
        Just("=?UTF-8?Q?=0D=0ABcc:_eve?="),
        Just("{ subject }"),
        Just("{html_footer}"),
        Just("{ prettyName }"),
        Just("$1$x"),
        Just("<script>"),
        Just("\"'><"),
        Just("&amp;"),
        Just("<eve@example.org>, "),
        Just("\u{202e}"),
        Just("\u{2028}"),
        Just("\0"),
        Just(" "),
        Just("שלום"),
        Just("👩‍🔬"),
    ];
    let any = prop_oneof![hostile.prop_map(str::to_owned), any::<String>(), ".{0,400}"];
    proptest::collection::vec(any, 0..6).prop_map(|parts| parts.concat())
}

fn mail() -> impl Strategy<Value = Mail> {
    let names = (name(), name(), name(), name(), name(), name());
    (0..MailKind::ALL.len(), names).prop_map(|(kind, (tenant, full, pretty, instance, namespace, link))| {
        Mail {
            tenant_name: tenant,
            full_name: full,
            pretty_name: pretty,
            instance_name: instance,
            namespace,
            link,
            ..plain(MailKind::ALL[kind])
        }
    })
}

/// The parts that must be the same in all mails of a template: names of headers, delimiters, and characters with a
/// meaning in HTML.
fn shape(mail: &str) -> (Vec<String>, usize, [usize; 4]) {
    let (head, body) = split(mail);
    let names = headers(&head).into_iter().map(|(name, _)| name).collect();
    let delimiters = body.lines().filter(|line| line.starts_with("--CrownLabsEmailBoundary")).count();
    let html = body.split_once("Content-Type: text/html").expect("an HTML part").1;
    (names, delimiters, ["<", ">", "\"", "'"].map(|sign| html.matches(sign).count()))
}

/// Templates of an administrator with names in the most sensitive places.
fn worst() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
    write(
        "defaults_crownlabs_mail.eml",
        "From: { from }\nTo: { to }\nX-Name: { name }\nSubject: { subject }\nContent-Type: multipart/mixed;\n \
         boundary=CrownLabsEmailBoundary\n\n--CrownLabsEmailBoundary\n\n{ first }{ second }\n--{ first }\n\
         --CrownLabsEmailBoundary\nContent-Type: text/html\n\n{ first }<a title=\"{ subject }\">{ html }</a>\n\
         --CrownLabsEmailBoundary--\n",
    );
    write("defaults_crownlabs_headers.yaml", "unused: text\n");
    let content = "to: '{ prettyName } <{ tenantEmail }>'\nsubject: '{prettyName}'\nname: '{instanceName}{prettyName}'\n\
                   first: '{ instanceName }'\nsecond: |-\n  {prettyName}\n  {instanceName}{tenantName}\n\
                   html: '{ prettyName }{ fullName } { greeting }'\n";
    for kind in MailKind::ALL {
        write(kind.file(), content);
    }
    folder
}

proptest! {
    #![proptest_config(crate::properties::cases(500))]

    #[test]
    fn values_cannot_change_the_shape_of_a_mail(mail in mail()) {
        let worst = worst();
        for templates in [built_in(), Templates::new(worst.path().to_str().unwrap())] {
            let text = rendered(&templates, &mail);
            prop_assert_eq!(shape(&text), shape(&rendered(&templates, &plain(mail.kind))), "{}", text);
            prop_assert!(text.split("\r\n").all(|line| line.len() <= 998), "{}", text);
            prop_assert!(!text.replace("\r\n", "").contains(is_control), "{:?}", text);
            let (head, _) = split(&text);
            prop_assert!(head.is_ascii() && !head.contains('\0'), "{}", head);
            let to = headers(&head).into_iter().find(|(name, _)| name == "To").unwrap().1;
            prop_assert_eq!(to.matches(['<', '@', ',']).count(), if to.contains('<') { 2 } else { 1 }, "{}", to);
        }
    }

    #[test]
    fn the_decoded_subject_is_unchanged(name in name()) {
        let mail = Mail { pretty_name: name, ..plain(MailKind::InactivityWarning) };
        let (head, _) = split(&rendered(&built_in(), &mail));
        let subject = headers(&head).into_iter().find(|(name, _)| name == "Subject").unwrap().1;
        let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let name = crate::api::shown::cut(&mail.pretty_name, 300);
        let name = name.replace(is_control, " ").replace("=?", "= ?");
        let meant = format!("[CrownLabs] Your machine {name} will be stopped");
        prop_assert_eq!(words(&decoded(&subject)), words(&meant));
    }
}
