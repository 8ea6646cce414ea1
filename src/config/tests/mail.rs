//! The keys of mail.

use super::*;

/// The faults of the keys below `integrations.mail`, without their common prefix.
fn mail_faults(keys: &str) -> Vec<String> {
    let faults = faults_below(&format!("integrations: {{mail: {{{keys}}}}}\n"));
    let begin = "f.yaml:3: integrations.mail.";
    faults
        .iter()
        .map(|fault| fault.strip_prefix(begin).unwrap_or_else(|| panic!("{fault}")).to_owned())
        .collect()
}

#[test]
fn the_keys_are_read() {
    let config = parsed(
        "integrations:
  mail:
    transport: smtp
    host: smtp.example.com
    port: 2525
    tls: starttls
    username: crownlabs
    passwordFile: /secrets/mail
    identity: labs
    from: CrownLabs <noreply@example.com>
    ehloName: labs.example.com
    caFile: /secrets/ca.crt
    templateDir: /templates
    timeZone: Europe/Rome
    timeout: 5s
    undeliverable: proceed
",
    );
    let expected = MailConfig {
        transport: MailTransport::Smtp,
        host: "smtp.example.com".to_owned(),
        port: 2525,
        tls: MailTls::Starttls,
        username: "crownlabs".to_owned(),
        password_file: "/secrets/mail".to_owned(),
        identity: "labs".to_owned(),
        from: "CrownLabs <noreply@example.com>".to_owned(),
        ehlo_name: "labs.example.com".to_owned(),
        ca_file: "/secrets/ca.crt".to_owned(),
        config_dir: String::new(),
        folder: String::new(),
        template_dir: "/templates".to_owned(),
        time_zone: "Europe/Rome".to_owned(),
        timeout: ConfigDuration::from_secs(5),
        undeliverable: Undeliverable::Proceed,
    };
    assert_eq!(config.integrations.mail, expected);
    // Unused keys are not required.
    parsed("integrations: {mail: {from: a@b.c}}\n");
    parsed(
        "integrations: {mail: {transport: smtp, configDir: /etc/crownmail/configs, caFile: /ca, tls: starttls}}\n",
    );
    parsed("integrations: {mail: {transport: file, folder: /mails, from: a@b.c}}\n");
    parsed("integrations: {mail: {transport: smtp, host: \"::1\", from: a@b.c, tls: none}}\n");
}

#[test]
fn keys_that_are_required() {
    assert_eq!(
        mail_faults("transport: smtp"),
        [
            "transport: transport is smtp and host is empty; expected the mail server, or configDir",
            "transport: transport is smtp and from is empty; expected the address of the sender, or configDir",
        ]
    );
    assert_eq!(
        mail_faults("transport: file"),
        [
            "transport: transport is file and folder is empty; expected the folder to write mails to",
            "transport: transport is file and from is empty; expected the address of the sender",
        ]
    );
    let both = "only one of username and passwordFile is set; expected both, or none for no login";
    assert_eq!(mail_faults("username: u"), [format!("username: {both}")]);
    assert_eq!(mail_faults("passwordFile: /f"), [format!("passwordFile: {both}")]);
    assert_eq!(
        mail_faults("identity: i"),
        ["identity: identity is set and username is empty; expected a login"]
    );
    for key in ["host: a.b", "port: 25", "username: u, passwordFile: /f", "from: a@b.c"] {
        assert_eq!(
            mail_faults(&format!("transport: smtp, configDir: /etc, {key}")),
            [
                "configDir: configDir is set together with keys that it replaces; expected either configDir, or \
                 host, port, username, passwordFile, identity and from"
            ]
        );
    }
    assert_eq!(mail_faults("timeout: 0s"), ["timeout: 0s is too short; expected more than 0s"]);
}

#[test]
fn values_that_are_not_valid() {
    assert_eq!(
        mail_faults("transport: sendmail, tls: true"),
        [
            "transport: \"sendmail\" is not valid; expected none, smtp or file",
            "tls: true is a boolean; expected implicit, starttls or none",
        ]
    );
    for port in ["-1", "65536"] {
        let fault = format!("port: {port} is not valid; expected a whole number from 0 to 65535");
        assert_eq!(mail_faults(&format!("port: {port}")), [fault]);
    }
    for zone in ["", "Europe/Atlantis", "CEST+1", "18:00"] {
        let faults = mail_faults(&format!("timeZone: \"{zone}\""));
        let expected = "expected a time zone of the IANA database, such as Europe/Rome or UTC";
        assert!(faults[0].starts_with("timeZone: ") && faults[0].ends_with(expected), "{faults:?}");
    }
    for host in ["smtp.example.com:465", "smtps://a.b", "a b", "A.b"] {
        let faults = mail_faults(&format!("host: \"{host}\""));
        assert!(
            faults[0].starts_with(&format!("host: {host:?} is not valid; expected a host name")),
            "{faults:?}"
        );
    }
    for name in ["localhost", "192.0.2.1", "[192.0.2]", "[2001:db8::1]", "labs.example.com.", "a b.c"] {
        let faults = mail_faults(&format!("ehloName: \"{name}\""));
        assert!(faults[0].contains("is not valid; expected a domain such as labs.example.com"), "{faults:?}");
    }
    for name in ["", "labs.example.com", "[192.0.2.1]", "[IPv6:2001:db8::1]"] {
        parsed(&format!("integrations: {{mail: {{ehloName: \"{name}\"}}}}\n"));
    }
    for from in ["noreply", "a@b@c", "A <a@b.c", "a@b.c, d@e.f", "A\\n <a@b.c>", "<a@b.c> <d@e.f>", "A <>"] {
        let faults = mail_faults(&format!("from: \"{from}\""));
        assert!(faults[0].contains("is not valid; expected an address such as"), "{faults:?}");
    }
}

#[test]
fn mailboxes() {
    for (text, name, address) in [
        ("a@b.c", "", "a@b.c"),
        ("<a@b.c>", "", "a@b.c"),
        ("CrownLabs <a@b.c>", "CrownLabs", "a@b.c"),
        ("\"Labs, \\\"T\\\"\" <a@b.c>", "Labs, \"T\"", "a@b.c"),
        (" Città  < a@b.c > ", "Città", "a@b.c"),
    ] {
        let mailbox: Mailbox = text.parse().unwrap();
        assert_eq!((mailbox.name.as_str(), mailbox.address.to_string().as_str()), (name, address), "{text}");
    }
}
