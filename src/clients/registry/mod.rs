//! Container registries: the names and tags of what they hold, by the API of the OCI distribution specification, which began
//! as Docker's, or by Harbor's.
//!
//! A registry is trusted with its own password and with nothing else. A query is bounded, whatever a server does:
//!
//! | what | bound |
//! |---|---|
//! | a request, from its first byte to the last of its answer | 10 s |
//! | a query, with all its requests | 60 s |
//! | requests at the same time | 8 |
//! | an answer | 4 MiB, so 32 MiB for those that arrive at the same time |
//! | repositories; tags of each; pages of a list | 10,000; 10,000; 1,000 |
//! | the list that is made of them | 1 MiB |
//!
//! Redirects are not followed, and neither a token nor a next page is fetched from another server than the one that is
//! configured. A query that is not complete returns an error and no list: half a list would look like a whole one.

mod auth;
mod docker;
mod error;
mod harbor;
mod link;
mod listing;
mod names;
mod session;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use parking_lot::Mutex;
use reqwest::Url;

use crate::clients::http::HttpClient;
use crate::config::{RegistryConfig, RegistryType};
use session::Session;

pub use error::QueryError;
pub use listing::{LeftOut, Listing};

/// The time limit of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit of a query.
const QUERY_TIMEOUT: Duration = Duration::from_mins(1);
/// The longest answer, in bytes: 10,000 repositories with names of 255 characters have 2.6 MB.
const LONGEST_ANSWER: usize = 4 << 20;
/// How many requests are sent at the same time.
const CONCURRENCY: usize = 8;

/// A registry. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Registry {
    config: RegistryConfig,
    /// The client, once the authorities' certificates could be read.
    http: Arc<Mutex<Option<HttpClient>>>,
}

impl Registry {
    /// A registry. Nothing is read or sent yet.
    pub fn new(config: RegistryConfig) -> Self {
        Self { config, http: Arc::default() }
    }

    /// The images that the registry offers.
    ///
    /// # Errors
    /// When anything of it could not be read.
    pub async fn list(&self) -> Result<Listing, QueryError> {
        self.list_within(QUERY_TIMEOUT).await
    }

    async fn list_within(&self, limit: Duration) -> Result<Listing, QueryError> {
        let query = async {
            let session =
                Session::new(self.client()?, &self.config.url, &self.config.token_url, self.login()?)?;
            match self.config.type_ {
                RegistryType::Docker => docker::list(&session, &self.config.project).await,
                RegistryType::Harbor => {
                    harbor::list(&session, &self.config.project, &self.config.artifact_types).await
                }
            }
        };
        tokio::time::timeout(limit, query).await.unwrap_or(Err(QueryError::Late { limit }))
    }

    /// The client of its server.
    fn client(&self) -> Result<HttpClient, QueryError> {
        let mut known = self.http.lock();
        if let Some(client) = &*known {
            return Ok(client.clone());
        }
        let unusable = |problem: String| QueryError::Settings { key: "caFile", problem };
        let url = self
            .config
            .url
            .parse()
            .map_err(|_| QueryError::Settings { key: "url", problem: "it is no URL".to_owned() })?;
        let ca_file = Some(&self.config.ca_file).filter(|file| !file.is_empty()).map(PathBuf::from);
        let client =
            HttpClient::new(&url, ca_file, REQUEST_TIMEOUT).map_err(|error| unusable(error.to_string()))?;
        let client = client.with_longest_answer(LONGEST_ANSWER);
        *known = Some(client.clone());
        Ok(client)
    }

    /// The value of `Authorization` of who logs in, read from the files.
    fn login(&self) -> Result<Option<HeaderValue>, QueryError> {
        if !self.config.has_credentials() {
            return Ok(None);
        }
        let user = match self.config.username_file.as_str() {
            "" => self.config.username.clone(),
            file => read("usernameFile", file)?,
        };
        if user.contains(':') {
            let problem = format!("the user in {} has a colon", self.config.username_file);
            return Err(QueryError::Settings { key: "usernameFile", problem });
        }
        let password = read("passwordFile", &self.config.password_file)?;
        Ok(auth::basic(&user, &password))
    }
}

/// The content of a file that a key names, without the end of its line.
fn read(key: &'static str, file: &str) -> Result<String, QueryError> {
    // A small local file: reading it takes less time than another thread would.
    let content = std::fs::read_to_string(Path::new(file));
    let content =
        content.map_err(|error| QueryError::Settings { key, problem: format!("{file}: {error}") })?;
    match content.trim_end_matches(['\r', '\n']) {
        "" => Err(QueryError::Settings { key, problem: format!("{file} is empty") }),
        text => Ok(text.to_owned()),
    }
}

/// Scheme, host and port of a URL, as text.
fn server(url: &Url) -> String {
    url.origin().ascii_serialization()
}
