//! Container registries: the names and tags of their images, read with the API of the OCI distribution specification,
//! which is based on Docker's, or with Harbor's API.
//!
//! A registry is only trusted with its own password. Every query is limited, whatever the server does:
//!
//! | what | limit |
//! |---|---|
//! | a request, from its first byte to the last byte of its response | 10 s |
//! | a query, with all its requests | 60 s |
//! | requests at the same time | 8 |
//! | a response | 4 MiB, so 32 MiB for concurrent responses |
//! | repositories; tags of each; pages of a list | 10,000; 10,000; 1,000 |
//! | the resulting list | 1 MiB |
//!
//! Redirects are not followed, and tokens and next pages are fetched only from the configured servers. An incomplete
//! query returns an error and no list, because a partial list would look complete.

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

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use parking_lot::Mutex;
use reqwest::Url;

use crate::clients::http::{HttpClient, SetupError};
use crate::config::file::read_secret;
use crate::config::{RegistryConfig, RegistryType};
use crate::runtime::outages::{Outages, System, shown};
use error::Result;
use session::Session;

pub use error::QueryError;
pub use listing::{LeftOut, Listing};

/// The time limit of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit of a query.
const QUERY_TIMEOUT: Duration = Duration::from_mins(1);
/// The limit for a response in bytes. 10,000 repositories with names of 255 characters have 2.6 MB.
const LONGEST_ANSWER: usize = 4 << 20;
/// The limit for concurrent requests.
const CONCURRENCY: usize = 8;

/// A registry. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Registry {
    config: RegistryConfig,
    /// The client, after the certificates of the authorities were read.
    http: Arc<Mutex<Option<HttpClient>>>,
    outages: Outages,
}

impl Registry {
    /// A client of a registry. Nothing is read or sent yet.
    pub fn new(config: RegistryConfig) -> Self {
        Self { config, http: Arc::default(), outages: Outages::default() }
    }

    /// Returns the client, which then reports outages to `outages`.
    #[must_use]
    pub fn reporting_to(self, outages: &Outages) -> Self {
        Self { outages: outages.clone(), ..self }
    }

    /// Lists the images that the registry offers.
    ///
    /// # Errors
    /// When a part of the registry could not be read.
    pub async fn list(&self) -> Result<Listing> {
        let result = self.list_within(QUERY_TIMEOUT).await;
        match &result {
            Err(error) if error.is_of_the_registry() => {
                self.outages.failed(System::Registry, &self.place(), error);
            }
            _ => self.outages.works(System::Registry, &self.place()),
        }
        result
    }

    /// The place of outages. It contains the list, because each list of a registry has its own project and
    /// password.
    fn place(&self) -> String {
        let RegistryConfig { url, project, image_list_name: list, .. } = &self.config;
        let url = shown(url);
        let server = url.split_once("://").map_or(&*url, |(_, server)| server);
        let slash = if project.is_empty() { "" } else { "/" };
        format!("{server}{slash}{project} of ImageList {list}")
    }

    async fn list_within(&self, limit: Duration) -> Result<Listing> {
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

    /// The HTTP client of the registry.
    fn client(&self) -> Result<HttpClient> {
        let mut known = self.http.lock();
        if let Some(client) = &*known {
            return Ok(client.clone());
        }
        let unusable = |error: SetupError| QueryError::Settings { key: "caFile", problem: error.to_string() };
        let no_url = |_| QueryError::Settings { key: "url", problem: "it is not a URL".to_owned() };
        let url = self.config.url.parse().map_err(no_url)?;
        let client = HttpClient::new(&url, &self.config.ca_file, REQUEST_TIMEOUT, LONGEST_ANSWER);
        let client = client.map_err(unusable)?;
        *known = Some(client.clone());
        Ok(client)
    }

    /// The value of `Authorization` for the configured login, read from the files.
    fn login(&self) -> Result<Option<HeaderValue>> {
        if !self.config.has_credentials() {
            return Ok(None);
        }
        let file = &self.config.username_file;
        let user = if file.is_empty() { self.config.username.clone() } else { read("usernameFile", file)? };
        if user.contains(':') {
            let problem = format!("the user in {file} has a colon");
            return Err(QueryError::Settings { key: "usernameFile", problem });
        }
        let password = read("passwordFile", &self.config.password_file)?;
        Ok(auth::basic(&user, &password))
    }
}

/// Reads the content of a file that a key names, without the trailing line end.
fn read(key: &'static str, file: &str) -> Result<String> {
    // The file is small and local: reading it here takes less time than a switch to another thread.
    read_secret(Path::new(file))
        .map_err(|error| QueryError::Settings { key, problem: format!("{file}: {error}") })
}

/// Formats scheme, host and port of a URL.
fn server(url: &Url) -> String {
    url.origin().ascii_serialization()
}
