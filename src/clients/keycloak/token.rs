//! The token of the service account: kept until shortly before its end, renewed by one caller while
//! the others wait for the same result.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::error::KeycloakError;
use super::operation::Operation;
use super::settings::encoded;

/// A token with less time than this left is not used for a new call (05 §10).
const MARGIN: Duration = Duration::from_secs(30);

/// A token, as the header that carries it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// `Bearer …`, marked as sensitive.
    pub header: HeaderValue,
    /// When it ends.
    expires: Instant,
}

/// What the token endpoint answers. It has no `Debug`: it is a secret.
#[derive(Deserialize)]
struct Grant {
    access_token: String,
    expires_in: u64,
}

impl Token {
    /// The token in an answer to a request that was sent at `asked`.
    pub(super) fn read(body: &[u8], asked: Instant) -> Result<Self, KeycloakError> {
        let bad = |problem: &str| KeycloakError::BadAnswer {
            operation: Operation::Token,
            problem: problem.to_owned(),
        };
        // The words of the decoder may repeat what it read.
        let grant: Grant = serde_json::from_slice(body).map_err(|_| bad("it is no token"))?;
        if grant.access_token.is_empty() {
            return Err(bad("the token is empty"));
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {}", grant.access_token))
            .map_err(|_| bad("the token is not text"))?;
        header.set_sensitive(true);
        let length = Duration::from_secs(grant.expires_in);
        // Longer than any clock runs: a year will do.
        let expires = asked.checked_add(length).unwrap_or(asked + Duration::from_hours(8_760));
        Ok(Self { header, expires })
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.expires.saturating_duration_since(now) >= MARGIN
    }
}

/// The kept token.
#[derive(Default)]
pub(super) struct Tokens {
    state: Mutex<State>,
    /// How many renewals have ended.
    renewals: AtomicU64,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    /// What the last renewal ended in, if it failed.
    failure: Option<KeycloakError>,
}

impl Tokens {
    /// The kept token, else what `renew` gets. Callers that wait for a renewal share its result, its
    /// failure too: a server that is down is not asked by each of them in turn.
    pub(super) async fn get<F>(&self, renew: F) -> Result<Token, KeycloakError>
    where
        F: AsyncFnOnce() -> Result<Token, KeycloakError>,
    {
        let before = self.renewals.load(Ordering::SeqCst);
        let mut state = self.state.lock().await;
        if let Some(token) = state.token.as_ref().filter(|token| token.is_fresh(Instant::now())) {
            return Ok(token.clone());
        }
        if self.renewals.load(Ordering::SeqCst) > before
            && let Some(failure) = &state.failure
        {
            return Err(failure.clone());
        }
        state.token = None;
        let result = renew().await;
        state.token = result.as_ref().ok().cloned();
        state.failure = result.as_ref().err().cloned();
        self.renewals.fetch_add(1, Ordering::SeqCst);
        result
    }

    /// Drops a token that was not accepted, unless it has been replaced meanwhile.
    pub(super) async fn drop_token(&self, refused: &Token) {
        let mut state = self.state.lock().await;
        if state.token.as_ref() == Some(refused) {
            state.token = None;
        }
    }
}

/// The `Authorization` of a client with the secret in that file: HTTP Basic of both, each encoded as
/// in a form (RFC 6749, §2.3.1). The file is read at each renewal, so a rotated secret counts at once.
pub(super) fn basic(client_id: &str, secret_file: &Path) -> Result<HeaderValue, KeycloakError> {
    let unusable =
        |problem: String| KeycloakError::SecretUnreadable { path: secret_file.to_owned(), problem };
    // A small local file: a read is quicker than the hand-over to another thread.
    let content = std::fs::read(secret_file).map_err(|error| unusable(error.to_string()))?;
    let content = String::from_utf8(content).map_err(|_| unusable("it is not text".to_owned()))?;
    let secret = content.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(unusable("it is empty".to_owned()));
    }
    let pair = STANDARD.encode(format!("{}:{}", encoded(client_id), encoded(secret)));
    let mut header =
        HeaderValue::try_from(format!("Basic {pair}")).map_err(|_| unusable("it is not text".to_owned()))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn grant(token: &str, seconds: u64) -> Vec<u8> {
        format!("{{\"access_token\":\"{token}\",\"expires_in\":{seconds},\"token_type\":\"Bearer\"}}").into()
    }

    #[test]
    fn a_token_is_used_until_30_seconds_are_left() {
        let asked = Instant::now();
        let token = Token::read(&grant("t", 300), asked).ok().unwrap();
        assert_eq!(token.header, "Bearer t");
        assert!(token.header.is_sensitive());
        assert!(token.is_fresh(asked + Duration::from_secs(270)));
        assert!(!token.is_fresh(asked + Duration::from_millis(270_001)));
        assert!(!token.is_fresh(asked + Duration::from_mins(15)));
        let endless = Token::read(&grant("t", u64::MAX), asked).ok().unwrap();
        assert!(endless.is_fresh(asked + Duration::from_hours(24)));
    }

    #[test]
    fn answers_that_are_no_token() {
        let asked = Instant::now();
        for body in [&b"<html>hunter2"[..], b"{}", b"{\"access_token\":\"hunter2\"}", &grant("", 300)] {
            let error = Token::read(body, asked).err().unwrap();
            assert_eq!(error.reason(), "KeycloakBadAnswer");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let error = Token::read(&grant("a\\nb", 300), asked).err().unwrap();
        assert_eq!(error.reason(), "KeycloakBadAnswer");
    }

    #[test]
    fn the_secret_is_read_from_its_file_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let error = basic("operator", &file).unwrap_err();
        assert_eq!(error.reason(), "KeycloakSecretUnreadable");
        assert!(error.to_string().contains(&file.display().to_string()), "{error}");
        std::fs::write(&file, "\n").unwrap();
        assert!(basic("operator", &file).unwrap_err().to_string().ends_with("cannot be used: it is empty"));
        std::fs::write(&file, b"\xff").unwrap();
        assert!(basic("operator", &file).unwrap_err().to_string().ends_with("it is not text"));
        // base64 of "operator:one", then of "op%3Aer:t%20w%3A%2Bo".
        std::fs::write(&file, "one\n").unwrap();
        assert_eq!(basic("operator", &file).unwrap(), "Basic b3BlcmF0b3I6b25l");
        std::fs::write(&file, "t w:+o").unwrap();
        let header = basic("op:er", &file).unwrap();
        assert_eq!(header, "Basic b3AlM0Flcjp0JTIwdyUzQSUyQm8=");
        assert!(header.is_sensitive());
    }

    #[tokio::test]
    async fn one_renewal_serves_all_who_wait() {
        for outcome in [Ok(()), Err(KeycloakError::MailNotSent)] {
            let (tokens, asked) = (Arc::new(Tokens::default()), Arc::new(AtomicU64::new(0)));
            let (release, released) = tokio::sync::watch::channel(false);
            let callers = (0..8).map(|_| {
                let (tokens, asked, mut released) =
                    (Arc::clone(&tokens), Arc::clone(&asked), released.clone());
                let outcome = outcome.clone();
                async move {
                    let renew = async || {
                        asked.fetch_add(1, Ordering::SeqCst);
                        released.wait_for(|open| *open).await.unwrap();
                        outcome.and_then(|()| Token::read(&grant("t", 300), Instant::now()))
                    };
                    tokens.get(renew).await.map(drop)
                }
            });
            let all = futures::future::join_all(callers);
            // All have been polled once when the release comes: one renews, seven wait.
            let release = async { release.send(true).unwrap() };
            let (results, ()) = tokio::join!(all, release);
            assert_eq!(results, vec![outcome.clone(); 8]);
            assert_eq!(asked.load(Ordering::SeqCst), 1);
        }
    }

    #[tokio::test]
    async fn a_failure_is_not_kept_for_later_callers() {
        let tokens = Tokens::default();
        let down = async || Err(KeycloakError::MailNotSent);
        assert!(tokens.get(down).await.is_err());
        let token = tokens.get(async || Token::read(&grant("a", 300), Instant::now())).await.ok().unwrap();
        let never = async || panic!("the token is kept");
        assert_eq!(tokens.get(never).await.ok().unwrap().header, "Bearer a");
        tokens.drop_token(&token).await;
        let next = tokens.get(async || Token::read(&grant("b", 300), Instant::now())).await.ok().unwrap();
        assert_eq!(next.header, "Bearer b");
        // The refusal of the former token says nothing of this one.
        tokens.drop_token(&token).await;
        assert_eq!(tokens.get(never).await.ok().unwrap().header, "Bearer b");
    }
}
