//! Classifies the negative responses of a mail server by subject: this client, its login, the sender, the recipient
//! or the mail.
//!
//! The classification depends on the command, on the code of the response (RFC 5321, section 4.2) and on the enhanced
//! code at the start of its text (RFC 3463). The command alone is not enough: Postfix reports a rejected EHLO name,
//! network or sender only in the response to RCPT TO (`smtpd_delay_reject`).

use super::error::Subject;

/// The command that a response belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The connection itself: the banner, EHLO, STARTTLS.
    Greeting,
    /// AUTH.
    Login,
    /// MAIL FROM.
    Sender,
    /// RCPT TO.
    Recipient,
    /// DATA, before the content is sent.
    Data,
    /// The end of the content.
    Content,
}

/// Returns the subject of a negative response to the command of `stage`.
///
/// A response is about the recipient only if the server says so, because mail to the recipient then counts as
/// undeliverable. Every other response is a problem between this installation and its mail server, and the mail is
/// retried.
pub(super) fn subject(stage: Stage, code: u16, text: &str) -> Subject {
    match (stage, code) {
        // The service closes the connection.
        (Stage::Greeting, _) | (_, 421) => Subject::Client,
        (Stage::Login, _) | (_, 530 | 534 | 535 | 538) => Subject::Login,
        _ => enhanced(code, text)
            .and_then(|(subject, detail)| of_enhanced(stage, subject, detail))
            .unwrap_or_else(|| of_code(stage, code, text)),
    }
}

/// Returns subject and detail of the enhanced code at the start of a text, `2` and `1` of `5.2.1`; `None` if the text
/// has no enhanced code, or if its class differs from the class of the code.
fn enhanced(code: u16, text: &str) -> Option<(u16, u16)> {
    let mut parts = text.split_whitespace().next()?.split('.').map(|part| part.parse::<u16>().ok());
    let (class, subject, detail) = (parts.next()??, parts.next()??, parts.next()??);
    (parts.next().is_none() && class == code / 100).then_some((subject, detail))
}

/// Returns the subject for the enhanced code `x.<subject>.<detail>`; `None` if it is not more specific than the code.
fn of_enhanced(stage: Stage, subject: u16, detail: u16) -> Option<Subject> {
    Some(match (subject, detail) {
        // The syntax or the domain of the sender's address, or a domain that does not accept mail (RFC 7505).
        (1 | 2, _) if stage == Stage::Sender => Subject::Sender,
        (1, 7 | 8) | (7, 27) => Subject::Sender,
        // A mail that is too long for the mailbox or the server, and the content of the mail.
        (2, 3) | (3, 4) | (6, _) => Subject::Mail,
        // The address or the mailbox. The last two mean that it, or its domain, has a new owner (RFC 7293).
        (1 | 2, _) | (7, 17 | 18) => Subject::Recipient,
        // No host accepts mail for the recipient's domain, or it has no route.
        (4, 1 | 4) if stage == Stage::Recipient => Subject::Recipient,
        // Invalid credentials, a mechanism that is too weak, an expired password and similar causes (RFC 4954,
        // section 6).
        (7, 8 | 9 | 11..=13) => Subject::Login,
        // A policy about the content.
        (7, _) if stage == Stage::Content => Subject::Mail,
        (3..=5 | 7, _) => Subject::Client,
        _ => return None,
    })
}

/// Returns the subject for the code alone.
fn of_code(stage: Stage, code: u16, text: &str) -> Subject {
    match (stage, code) {
        // Exim sends no enhanced codes, and rejects relaying with 550.
        (Stage::Recipient, 550..=553) if text.to_lowercase().contains("relay") => Subject::Client,
        (Stage::Recipient, 450 | 550..=553) => Subject::Recipient,
        (Stage::Sender, 552) | (Stage::Content, 550..=554) => Subject::Mail,
        (Stage::Sender, 450 | 501 | 550 | 553) => Subject::Sender,
        _ => Subject::Client,
    }
}

#[cfg(test)]
mod tests {
    use super::Subject::{Client, Login, Mail, Recipient, Sender};
    use super::*;

    /// Responses with the command and the expected subject.
    const RESPONSES: [(Stage, &str, Subject); 59] = [
        (Stage::Greeting, "554 5.7.1 your network is on a blocklist", Client),
        (Stage::Greeting, "550 5.1.1 not here", Client),
        (Stage::Greeting, "504 5.5.2 <localhost>: Helo command rejected", Client),
        (Stage::Greeting, "421 4.7.0 Try again later, closing connection. (EHLO)", Client),
        (Stage::Greeting, "454 4.7.0 TLS not available", Client),
        (Stage::Login, "535 5.7.8 bad credentials", Login),
        (Stage::Login, "504 unrecognized mechanism", Login),
        (Stage::Login, "421 4.3.0 later", Client),
        (Stage::Sender, "530 5.7.0 Must issue a STARTTLS command first", Login),
        (Stage::Sender, "530 Authentication required", Login),
        (Stage::Sender, "550 5.7.8 log in first", Login),
        (Stage::Sender, "553 5.1.8 no such domain", Sender),
        (Stage::Sender, "550 5.1.0 rejected", Sender),
        (Stage::Sender, "501 bad address", Sender),
        (Stage::Sender, "550 5.7.1 Invalid credentials for relay", Client),
        (Stage::Sender, "552 5.3.4 message too large", Mail),
        (Stage::Sender, "552 too large", Mail),
        (Stage::Sender, "452 4.3.1 insufficient storage", Client),
        (Stage::Sender, "503 5.5.1 EHLO first", Client),
        (Stage::Recipient, "550 5.1.1 no such mailbox", Recipient),
        (Stage::Recipient, "550-5.1.1 The account does not exist.\n5.1.1 See our help", Recipient),
        (Stage::Recipient, "550 5.1.10 the domain takes no mail", Recipient),
        (Stage::Recipient, "550 5.2.1 disabled", Recipient),
        (Stage::Recipient, "452 4.2.2 mailbox full", Recipient),
        (Stage::Recipient, "450 4.2.0 Greylisted", Recipient),
        (Stage::Recipient, "550 5.4.1 Recipient address rejected: Access denied", Recipient),
        (Stage::Recipient, "550 no such user", Recipient),
        (Stage::Recipient, "553 bad mailbox name", Recipient),
        (Stage::Recipient, "450 mailbox busy", Recipient),
        (Stage::Recipient, "550 5.7.17 another owner", Recipient),
        (Stage::Recipient, "550 5.0.0 no", Recipient),
        (Stage::Recipient, "550 5.7.1 policy", Client),
        (Stage::Recipient, "504 5.5.2 <localhost>: Helo command rejected", Client),
        (Stage::Recipient, "450 4.7.1 <labs>: Helo command rejected: Host not found", Client),
        (Stage::Recipient, "554 5.7.1 Relay access denied", Client),
        (Stage::Recipient, "550 relay not permitted", Client),
        (Stage::Recipient, "554 refused", Client),
        (Stage::Recipient, "421 4.7.28 rate limit", Client),
        (Stage::Recipient, "451 4.7.1 Greylisting in action", Client),
        (Stage::Recipient, "451 local error", Client),
        (Stage::Recipient, "452 4.5.3 too many recipients", Client),
        (Stage::Recipient, "550 5.4.5 daily sending quota exceeded", Client),
        (Stage::Recipient, "530 5.7.0 Authentication Required", Login),
        (Stage::Recipient, "550 5.1.8 <labs@example.test>: Sender address rejected", Sender),
        (Stage::Recipient, "550 5.1.7 sender", Sender),
        (Stage::Recipient, "552 5.2.3 too large for this mailbox", Mail),
        (Stage::Recipient, "552 5.3.4 too large", Mail),
        // The enhanced code has another class, so it is part of the text.
        (Stage::Recipient, "550 4.7.1 no such user", Recipient),
        (Stage::Data, "554 5.5.1 no valid recipients", Client),
        (Stage::Data, "554 5.7.1 refused", Client),
        (Stage::Data, "550 no", Client),
        (Stage::Content, "554 5.7.1 this looks like spam", Mail),
        (Stage::Content, "550 5.6.0 content", Mail),
        (Stage::Content, "554 no", Mail),
        (Stage::Content, "552 5.3.4 too large", Mail),
        (Stage::Content, "552 5.2.2 the mailbox is full", Recipient),
        (Stage::Content, "550 5.4.6 loop", Client),
        (Stage::Content, "451 4.3.0 queue", Client),
        (Stage::Content, "452 no room", Client),
    ];

    #[test]
    fn a_response_is_about_the_recipient_only_if_the_server_says_so() {
        for (stage, response, expected) in RESPONSES {
            let code = response[..3].parse().unwrap();
            assert_eq!(subject(stage, code, &response[4..]), expected, "{stage:?}: {response}");
        }
    }
}
