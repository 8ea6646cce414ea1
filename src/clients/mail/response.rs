//! Classifies the negative responses of a mail server by subject: this client, its login, the sender, the
//! recipient or the mail.
//!
//! The classification depends on the command, on the code of the response (RFC 5321, section 4.2) and on the
//! enhanced code at the start of its text (RFC 3463). The command alone is not enough: Postfix reports a
//! rejected EHLO name, network or sender only in the response to RCPT TO (`smtpd_delay_reject`). The words of
//! the text decide where the codes are ambiguous.

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
            .and_then(|enhanced| of_enhanced(stage, code, enhanced, text))
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
fn of_enhanced(stage: Stage, code: u16, enhanced: (u16, u16), text: &str) -> Option<Subject> {
    Some(match enhanced {
        // The syntax or the domain of the sender's address, or a domain that does not accept mail (RFC 7505).
        (1 | 2, _) if stage == Stage::Sender => Subject::Sender,
        (1, 7 | 8) | (7, 27) => Subject::Sender,
        // Any other problem with an address. Postfix sends it to RCPT TO about an unknown sender.
        (1, 0) => named(text).unwrap_or(Subject::Recipient),
        // A mail that is too long for the mailbox or the server, and the content of the mail.
        (2, 3) | (3, 4) | (6, _) => Subject::Mail,
        // The address or the mailbox. The last two mean that it, or its domain, has a new owner (RFC 7293).
        (1 | 2, _) | (7, 17 | 18) => Subject::Recipient,
        // No host accepts mail for the recipient's domain, or it has no route.
        (4, 1 | 4) if stage == Stage::Recipient => Subject::Recipient,
        (5, 2) => of_syntax(text),
        // Invalid credentials, a mechanism that is too weak, an expired password and similar causes (RFC 4954,
        // section 6).
        (7, 8 | 9 | 11..=13) => Subject::Login,
        // The domain of the sender does not authorise this installation (DKIM, SPF), its address has no name
        // (RFC 7372), or it sends too many mails.
        (7, 20..=26 | 28) => Subject::Client,
        // A policy about the content. A temporary one, such as a mail filter that is down, applies to every
        // mail.
        (7, _) if stage == Stage::Content && code >= 500 => Subject::Mail,
        (3..=5 | 7, _) => Subject::Client,
        _ => return None,
    })
}

/// Returns the subject for the code alone, and for the words of servers that send no enhanced codes, such as
/// Exim.
fn of_code(stage: Stage, code: u16, text: &str) -> Subject {
    match (stage, code) {
        (Stage::Recipient, 450 | 550..=553) => named(text).unwrap_or(Subject::Recipient),
        (Stage::Recipient, 501 | 504) => of_syntax(text),
        (Stage::Sender, 552) | (Stage::Content, 550..=554) => Subject::Mail,
        (Stage::Sender, 450 | 501 | 550 | 553) => Subject::Sender,
        _ => Subject::Client,
    }
}

/// Returns the subject of a syntax error: the name in EHLO, or one of the addresses.
fn of_syntax(text: &str) -> Subject {
    let is_recipient = || words(text).any(|word| word == "recipient");
    named(text).unwrap_or_else(|| if is_recipient() { Subject::Recipient } else { Subject::Client })
}

/// Returns the subject that a text names first: the sender, the name in EHLO, or relaying; `None` if it names
/// none of them.
fn named(text: &str) -> Option<Subject> {
    words(text).find_map(|word| match word.as_str() {
        "sender" => Some(Subject::Sender),
        "helo" | "ehlo" => Some(Subject::Client),
        word => word.starts_with("relay").then_some(Subject::Client),
    })
}

/// Returns the words of a text in lower case, without addresses and host names, which may contain any word.
fn words(text: &str) -> impl Iterator<Item = String> {
    let is_mark = |letter: char| !letter.is_alphanumeric();
    let parts = text.split_whitespace();
    let parts = parts.filter(move |part| !part.contains('@') && !part.trim_matches(is_mark).contains('.'));
    parts.flat_map(move |part| part.split(is_mark)).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::Subject::{Client, Login, Mail, Recipient, Sender};
    use super::*;

    /// Responses with the command and the expected subject.
    const RESPONSES: [(Stage, &str, Subject); 81] = [
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
        (
            Stage::Sender,
            "504 5.5.2 <labs@host>: Sender address rejected: need fully-qualified address",
            Sender,
        ),
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
        (Stage::Recipient, "550 5.1.0 <ada@example.test>: Recipient address rejected", Recipient),
        (Stage::Recipient, "550 5.1.0 <sender@example.test>: rejected", Recipient),
        (Stage::Recipient, "550 <relay@example.test>: no such user", Recipient),
        (
            Stage::Recipient,
            "504 5.5.2 <ada@host>: Recipient address rejected: need fully-qualified address",
            Recipient,
        ),
        (Stage::Recipient, "501 <ada>: recipient address must contain a domain", Recipient),
        (Stage::Recipient, "550 5.7.1 policy", Client),
        (Stage::Recipient, "504 5.5.2 <localhost>: Helo command rejected", Client),
        (Stage::Recipient, "450 4.7.1 <labs>: Helo command rejected: Host not found", Client),
        (Stage::Recipient, "554 5.7.1 Relay access denied", Client),
        (Stage::Recipient, "550 relay not permitted", Client),
        (Stage::Recipient, "550 Invalid HELO name", Client),
        (Stage::Recipient, "550 HELO/EHLO argument rejected", Client),
        (Stage::Recipient, "501 syntax error", Client),
        (Stage::Recipient, "550 5.7.25 no reverse DNS", Client),
        (Stage::Recipient, "554 refused", Client),
        (Stage::Recipient, "421 4.7.28 rate limit", Client),
        (Stage::Recipient, "451 4.7.1 Greylisting in action", Client),
        (Stage::Recipient, "451 local error", Client),
        (Stage::Recipient, "452 4.5.3 too many recipients", Client),
        (Stage::Recipient, "550 5.4.5 daily sending quota exceeded", Client),
        (Stage::Recipient, "530 5.7.0 Authentication Required", Login),
        (Stage::Recipient, "550 5.1.8 <labs@example.test>: Sender address rejected", Sender),
        (Stage::Recipient, "550 5.1.7 sender", Sender),
        (
            Stage::Recipient,
            "550 5.1.0 <labs@example.test>: Sender address rejected: User unknown in local recipient table",
            Sender,
        ),
        (
            Stage::Recipient,
            "504 5.5.2 <labs@host>: Sender address rejected: need fully-qualified address",
            Sender,
        ),
        (Stage::Recipient, "550 Sender verify failed", Sender),
        (Stage::Recipient, "550-Verification failed for <labs@example.test>\nSender verify failed", Sender),
        (Stage::Recipient, "552 5.2.3 too large for this mailbox", Mail),
        (Stage::Recipient, "552 5.3.4 too large", Mail),
        // The enhanced code has another class, so it is part of the text.
        (Stage::Recipient, "550 4.7.1 no such user", Recipient),
        (Stage::Data, "554 5.5.1 no valid recipients", Client),
        (Stage::Data, "554 5.7.1 refused", Client),
        (Stage::Data, "550 no", Client),
        (Stage::Content, "554 5.7.1 this looks like spam", Mail),
        (Stage::Content, "451 4.6.0 content", Mail),
        (Stage::Content, "550 5.7.20 no DKIM signature", Client),
        (Stage::Content, "550 5.7.23 SPF fails", Client),
        (Stage::Content, "550-5.7.26 This mail is unauthenticated", Client),
        (Stage::Content, "550 5.7.28 too many mails", Client),
        (Stage::Content, "450 4.7.28 too many mails", Client),
        (Stage::Content, "451 4.7.1 Service unavailable - try again later", Client),
        (Stage::Content, "550 5.7.27 the domain of the sender takes no mail", Sender),
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
