//! The requests of one query. Each is sent to the configured server, with the authentication that the server
//! requires.

use std::collections::HashSet;

use http::header::{AUTHORIZATION, HeaderMap, LOCATION};
use http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use reqwest::{Response, Url};

use super::auth::{self, Challenge, TokenService};
use super::error::{QueryError, Result};
use super::names::{codes, in_parentheses};
use super::{link, server};
use crate::clients::http::HttpClient;

/// The limit for the pages of a list.
const MOST_PAGES: usize = 1_000;
/// The limit for the URL of a page, in bytes.
const LONGEST_URL: usize = 4_096;

/// One query of a registry.
pub(super) struct Session {
    http: HttpClient,
    /// The URL of the registry, without a slash at its end.
    base: String,
    /// A server that may issue tokens, in addition to the registry itself.
    token_server: Option<Url>,
    /// The value of `Authorization` for the configured login.
    login: Option<HeaderValue>,
    /// The token service, after a challenge has named it.
    tokens: Mutex<Option<TokenService>>,
}

/// Reads a part of the registry with one token.
pub(super) struct Reader<'s> {
    session: &'s Session,
    /// The scope of its tokens.
    scope: String,
    /// The value of `Authorization`.
    header: Option<HeaderValue>,
    /// The request for messages.
    pub request: String,
    /// The first page.
    pub first: Url,
    /// The pages that were read.
    read: HashSet<String>,
}

/// A response: 404, or a success.
pub(super) struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Session {
    /// A query of the registry at `base`.
    ///
    /// # Errors
    /// When a URL is invalid. The configuration is validated before.
    pub fn new(http: HttpClient, base: &str, token_server: &str, login: Option<HeaderValue>) -> Result<Self> {
        let token_server =
            Some(token_server).filter(|url| !url.is_empty()).map(|url| parsed("tokenUrl", url));
        let base = base.trim_end_matches('/').to_owned();
        parsed("url", &base)?;
        Ok(Self { http, base, token_server: token_server.transpose()?, login, tokens: Mutex::default() })
    }

    /// A reader of the path, with tokens for `scope`.
    pub async fn reader(&self, path: &str, scope: String) -> Result<Reader<'_>> {
        let first = parsed("url", &format!("{}{path}", self.base))?;
        let known = self.tokens.lock().clone();
        let header = match known {
            Some(tokens) => Some(self.token(&tokens, &scope).await?),
            None => self.login.clone(),
        };
        let request = format!("GET {}", first.path());
        Ok(Reader { session: self, scope, header, request, first, read: HashSet::new() })
    }

    /// Gets a token.
    async fn token(&self, tokens: &TokenService, scope: &str) -> Result<HeaderValue> {
        let request = format!("the token of {}", server(&tokens.realm));
        let mut url = tokens.realm.clone();
        if let Some(service) = &tokens.service {
            url.query_pairs_mut().append_pair("service", service);
        }
        url.query_pairs_mut().append_pair("scope", scope);
        let response = self.send(&url, self.login.clone(), &request).await?;
        let reply = self.reply(response, &request, &url).await?;
        let reply = reply.found(&request)?;
        let problem = "the answer has no token".to_owned();
        auth::granted(&reply.body).ok_or(QueryError::BadAnswer { request, problem })
    }

    /// Whether a server may get the login: the registry, or the token server of the configuration.
    fn trusts(&self, url: &Url) -> bool {
        let base = self.base.parse::<Url>().ok();
        base.iter().chain(&self.token_server).any(|trusted| trusted.origin() == url.origin())
    }

    async fn send(&self, url: &Url, header: Option<HeaderValue>, request: &str) -> Result<Response> {
        let mut builder = self.http.client.get(url.clone());
        if let Some(header) = header {
            builder = builder.header(AUTHORIZATION, header);
        }
        let sent = self.http.begin(builder).await;
        sent.map_err(|error| QueryError::NoAnswer { request: request.to_owned(), error })
    }

    /// Reads a response, which must be a success or 404.
    async fn reply(&self, response: Response, request: &str, url: &Url) -> Result<Reply> {
        let (status, headers) = (response.status(), response.headers().clone());
        let request = request.to_owned();
        if status.is_redirection() {
            let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
            let to = location.and_then(|location| url.join(location).ok());
            let to = to.map_or_else(|| "another place".to_owned(), |to| server(&to));
            let advice = "set url to the address of the registry itself";
            return Err(QueryError::Elsewhere { request, to, advice });
        }
        let body = self.http.body(response).await;
        if status.is_success() || status == StatusCode::NOT_FOUND {
            let body = body.map_err(|error| QueryError::NoAnswer { request, error })?;
            return Ok(Reply { status, headers, body });
        }
        let (codes, logged_in) = (codes(&body.unwrap_or_default()), self.login.is_some());
        let (status, codes) = (status.as_u16(), in_parentheses(&codes));
        Err(match status {
            401 | 403 => QueryError::Refused { request, status, codes, logged_in },
            _ => QueryError::Status { request, status, codes },
        })
    }
}

impl Reader<'_> {
    /// Reads a page: 404, or a success.
    pub async fn get(&mut self, url: &Url) -> Result<Reply> {
        let is_new = self.read.insert(url.as_str().to_owned());
        if !is_new || self.read.len() > MOST_PAGES {
            let problem = if is_new { "it has more than 1000 pages" } else { "its pages form a cycle" };
            return Err(self.bad(problem));
        }
        let session = self.session;
        let mut response = session.send(url, self.header.clone(), &self.request).await?;
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(challenge) = auth::bearer(response.headers())
        {
            self.header = Some(self.answered(challenge).await?);
            response = session.send(url, self.header.clone(), &self.request).await?;
        }
        session.reply(response, &self.request, url).await
    }

    /// Requests the token for a challenge.
    async fn answered(&self, challenge: Challenge) -> Result<HeaderValue> {
        let Challenge { tokens, scope } = challenge;
        if !self.session.trusts(&tokens.realm) {
            let advice = "set tokenUrl if that server should get the login, or correct the address that the registry sends";
            let to = format!("{} for a token", server(&tokens.realm));
            return Err(QueryError::Elsewhere { request: self.request.clone(), to, advice });
        }
        let token = self.session.token(&tokens, scope.as_deref().unwrap_or(&self.scope)).await?;
        *self.session.tokens.lock() = Some(tokens);
        Ok(token)
    }

    /// Returns the URL of the next page from the header `Link`.
    pub fn next(&self, url: &Url, headers: &HeaderMap) -> Result<Option<Url>> {
        let Some(target) = link::next(headers) else { return Ok(None) };
        let next = url.join(target).ok().filter(|next| next.as_str().len() <= LONGEST_URL);
        let next = next.ok_or_else(|| self.bad("its next page has no valid URL"))?;
        if next.origin() != url.origin() {
            let advice = "the registry must use the address in url for its pages; a proxy in front of it must pass on \
                          Host and X-Forwarded-Proto";
            let to = format!("{} for its next page", server(&next));
            return Err(QueryError::Elsewhere { request: self.request.clone(), to, advice });
        }
        Ok(Some(next))
    }

    /// The error for a response that cannot be used.
    pub fn bad(&self, problem: impl Into<String>) -> QueryError {
        QueryError::BadAnswer { request: self.request.clone(), problem: problem.into() }
    }
}

impl Reply {
    /// Returns the reply if it is a success.
    pub fn found(self, request: &str) -> Result<Self> {
        if self.status.is_success() {
            return Ok(self);
        }
        let codes = in_parentheses(&codes(&self.body));
        Err(QueryError::Status { request: request.to_owned(), status: self.status.as_u16(), codes })
    }
}

fn parsed(key: &'static str, url: &str) -> Result<Url> {
    url.parse().map_err(|_| QueryError::Settings { key, problem: "it is not a URL".to_owned() })
}
