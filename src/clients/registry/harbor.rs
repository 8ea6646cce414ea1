//! Harbor's API, version 2.0: the repositories of a project, and the artifacts of each repository. The API reports
//! the types of artifacts.

use std::collections::BTreeSet;

use http::HeaderMap;
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::docker::{Tags, collected, gone};
use super::error::{QueryError, Result};
use super::link;
use super::listing::{Listing, is_repository_name};
use super::names::{Bounded, MOST, decoded, is_object, object};
use super::session::{Reader, Session};

/// The requested number of entries on a page: Harbor's maximum.
const PAGE: usize = 100;
/// The header with the number of entries on all pages.
const TOTAL: &str = "x-total-count";
/// The type of artifacts without a type.
const IMAGE: &str = "IMAGE";

/// A list in an object.
#[derive(Deserialize)]
struct Wrapped<T> {
    data: Bounded<T>,
}

#[derive(Deserialize)]
struct Repository {
    name: String,
}

#[derive(Deserialize)]
struct Artifact {
    #[serde(rename = "type")]
    type_: Option<String>,
    tags: Option<Vec<Tag>>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
}

/// Lists a project. The names of its repositories are listed without the project.
pub(super) async fn list(session: &Session, project: &str, types: &[String]) -> Result<Listing> {
    let (names, left_out) = repositories(session, project).await?;
    let root = format!("/api/v2.0/projects/{project}/repositories");
    let read = |name: String| {
        // A slash in the name is encoded twice, because Harbor decodes its paths twice.
        let path = format!("{root}/{}/artifacts", name.replace('/', "%252F"));
        async move { artifacts(session.reader(&path, String::new()).await?, &name, types).await }
    };
    collected(names, left_out, read).await
}

async fn repositories(session: &Session, project: &str) -> Result<(BTreeSet<String>, usize)> {
    let path = format!("/api/v2.0/projects/{project}/repositories");
    let mut reader = session.reader(&path, String::new()).await?;
    let prefix = format!("{project}/");
    let (mut names, mut left_out) = (BTreeSet::new(), 0);
    let mut pages = Pages::default();
    while let Some(url) = pages.next(&reader) {
        let reply = reader.get(&url).await?.found(&reader.request)?;
        let page: Vec<Repository> = entries(&reader, &reply.body, "list of repositories")?;
        pages.turn(&reader, page.len(), &reply.headers)?;
        for Repository { name: full } in page {
            match full.strip_prefix(&prefix).filter(|_| is_repository_name(&full)) {
                Some(name) => drop(names.insert(name.to_owned())),
                None => left_out += 1,
            }
        }
        if names.len() > MOST {
            return Err(QueryError::TooMany("repositories".to_owned()));
        }
    }
    Ok((names, left_out))
}

async fn artifacts(mut reader: Reader<'_>, name: &str, types: &[String]) -> Result<Tags> {
    let mut tags = Vec::new();
    let mut pages = Pages::default();
    while let Some(url) = pages.next(&reader) {
        let reply = reader.get(&url).await?;
        if let Some(gone) = gone(&reply) {
            return Ok(gone);
        }
        let page: Vec<Artifact> = entries(&reader, &reply.body, "list of artifacts")?;
        pages.turn(&reader, page.len(), &reply.headers)?;
        for artifact in page {
            let kind = artifact.type_.as_deref().unwrap_or(IMAGE);
            if types.iter().any(|wanted| wanted.eq_ignore_ascii_case(kind)) {
                tags.extend(artifact.tags.into_iter().flatten().map(|tag| tag.name));
            }
        }
        if tags.len() > MOST {
            return Err(QueryError::TooMany(format!("tags of {name}")));
        }
    }
    Ok(Tags::Found(tags))
}

/// Parses the entries of a page: a list, or a list in an object.
fn entries<T: DeserializeOwned>(reader: &Reader<'_>, body: &[u8], what: &str) -> Result<Vec<T>> {
    let Bounded(entries) = if is_object(body) {
        object::<Wrapped<T>>(&reader.request, body, what)?.data
    } else {
        decoded(&reader.request, body, what)?
    };
    Ok(entries)
}

/// The pages of a list by number.
#[derive(Default)]
struct Pages {
    /// The number of pages that were read.
    read: usize,
    /// The number of entries on them.
    entries: usize,
    is_complete: bool,
}

impl Pages {
    /// Returns the URL of the next page; `None` after the last page.
    fn next(&self, reader: &Reader<'_>) -> Option<Url> {
        if self.is_complete {
            return None;
        }
        let mut url = reader.first.clone();
        url.query_pairs_mut()
            .append_pair("page", &(self.read + 1).to_string())
            .append_pair("page_size", &PAGE.to_string());
        Some(url)
    }

    /// Counts a page with `length` entries. The headers, or the length, determine whether there is another page.
    fn turn(&mut self, reader: &Reader<'_>, length: usize, headers: &HeaderMap) -> Result<()> {
        self.read += 1;
        self.entries += length;
        let total = headers.get(TOTAL).and_then(|total| total.to_str().ok()?.parse::<usize>().ok());
        self.is_complete = length == 0
            || match total {
                Some(total) => self.entries >= total,
                None => length < PAGE && link::next(headers).is_none(),
            };
        let missing = total.filter(|total| self.is_complete && self.entries < *total);
        missing.map_or(Ok(()), |total| {
            Err(reader.bad(format!("its pages have {} of {total} entries", self.entries)))
        })
    }
}
