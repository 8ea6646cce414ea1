//! Harbor's API, version 2.0: the repositories of a project, and the artifacts of each. It tells the types of artifacts.

use std::collections::BTreeSet;

use http::HeaderMap;
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::docker::{Tags, collected, gone};
use super::error::QueryError;
use super::link;
use super::listing::{Listing, is_repository_name};
use super::names::{Bounded, MOST, decoded, is_object, object};
use super::session::{Reader, Session};

/// The entries in a page that are asked for, the most that Harbor gives.
const PAGE: usize = 100;
/// How many entries there are on all pages.
const TOTAL: &str = "x-total-count";
/// The type of an artifact that has none.
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
    #[serde(default, rename = "type")]
    type_: Option<String>,
    #[serde(default)]
    tags: Option<Vec<Tag>>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
}

/// Lists a project, by the names of its repositories without it.
pub(super) async fn list(session: &Session, project: &str, types: &[String]) -> Result<Listing, QueryError> {
    let (names, left_out) = repositories(session, project).await?;
    let root = format!("/api/v2.0/projects/{project}/repositories");
    let read = |name: String| {
        // A slash in the name is encoded twice, because Harbor decodes its paths twice.
        let path = format!("{root}/{}/artifacts", name.replace('/', "%252F"));
        async move { artifacts(session.reader(&path, String::new()).await?, &name, types).await }
    };
    collected(names, left_out, read).await
}

async fn repositories(session: &Session, project: &str) -> Result<(BTreeSet<String>, usize), QueryError> {
    let path = format!("/api/v2.0/projects/{project}/repositories");
    let mut reader = session.reader(&path, String::new()).await?;
    let prefix = format!("{project}/");
    let (mut names, mut left_out) = (BTreeSet::new(), 0);
    let mut pages = Pages::default();
    while let Some(url) = pages.next(&reader) {
        let reply = reader.get(&url).await?.found(reader.request())?;
        let page: Vec<Repository> = entries(&reader, &reply.body, "list of repositories")?;
        pages.turn(&reader, page.len(), &reply.headers)?;
        for Repository { name: full } in page {
            match full.strip_prefix(&prefix).filter(|_| is_repository_name(&full)) {
                Some(name) => drop(names.insert(name.to_owned())),
                None => left_out += 1,
            }
        }
        if names.len() > MOST {
            return Err(QueryError::TooMany { what: "repositories".to_owned(), bound: MOST });
        }
    }
    Ok((names, left_out))
}

async fn artifacts(mut reader: Reader<'_>, name: &str, types: &[String]) -> Result<Tags, QueryError> {
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
            return Err(QueryError::TooMany { what: format!("tags of {name}"), bound: MOST });
        }
    }
    Ok(Tags::Found(tags))
}

/// The entries of a page: a list, or one in an object.
fn entries<T: DeserializeOwned>(reader: &Reader<'_>, body: &[u8], what: &str) -> Result<Vec<T>, QueryError> {
    let Bounded(entries) = if is_object(body) {
        object::<Wrapped<T>>(reader.request(), body, what)?.data
    } else {
        decoded(reader.request(), body, what)?
    };
    Ok(entries)
}

/// The pages of a list, by their numbers.
#[derive(Default)]
struct Pages {
    /// The number of pages that were read.
    read: usize,
    /// The number of entries in them.
    entries: usize,
    is_complete: bool,
}

impl Pages {
    /// The URL of the next page; `None` after the last.
    fn next(&self, reader: &Reader<'_>) -> Option<Url> {
        if self.is_complete {
            return None;
        }
        let mut url = reader.first();
        url.query_pairs_mut()
            .append_pair("page", &(self.read + 1).to_string())
            .append_pair("page_size", &PAGE.to_string());
        Some(url)
    }

    /// Counts a page with so many entries: whether there is another one is in its headers, or follows from its length.
    fn turn(&mut self, reader: &Reader<'_>, length: usize, headers: &HeaderMap) -> Result<(), QueryError> {
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
