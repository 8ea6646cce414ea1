//! The API of the OCI distribution specification: the catalogue, and the tags of each repository.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::CONCURRENCY;
use super::error::{QueryError, Result};
use super::listing::{Collection, Listing, is_repository_name};
use super::names::{Bounded, MOST, codes, object};
use super::session::{Reader, Reply, Session};

/// The scope of a token for the catalogue.
const CATALOG: &str = "registry:catalog:*";

#[derive(Deserialize)]
struct Catalog {
    repositories: Bounded<String>,
}

#[derive(Deserialize)]
struct TagList {
    name: Option<IgnoredAny>,
    /// `null` if all tags were deleted.
    tags: Option<Bounded<String>>,
}

/// The tags of a repository.
pub(super) enum Tags {
    /// The tags in the order of the registry.
    Found(Vec<String>),
    /// The repository was deleted in the meantime. `is_said` says whether the response comes from the registry
    /// itself, not from a proxy in front of it.
    Gone { is_said: bool },
}

/// Lists a registry, or the repositories with the prefix `project/`. Names are listed without the prefix.
pub(super) async fn list(session: &Session, project: &str) -> Result<Listing> {
    let prefix = if project.is_empty() { String::new() } else { format!("{project}/") };
    let (names, left_out) = catalog(session, &prefix).await?;
    let read = |name: String| {
        let full = format!("{prefix}{name}");
        async move {
            let path = format!("/v2/{full}/tags/list");
            tags(session.reader(&path, format!("repository:{full}:pull")).await?, &full).await
        }
    };
    collected(names, left_out, read).await
}

/// Returns the names of the repositories without the prefix, and the number of names that were left out.
async fn catalog(session: &Session, prefix: &str) -> Result<(BTreeSet<String>, usize)> {
    // The request has no number of entries, because registries have different limits and reject larger numbers.
    let mut reader = session.reader("/v2/_catalog", CATALOG.to_owned()).await?;
    let (mut names, mut left_out) = (BTreeSet::new(), 0);
    let mut next = Some(reader.first.clone());
    while let Some(url) = next {
        let reply = reader.get(&url).await?.found(&reader.request)?;
        let page: Catalog = object(&reader.request, &reply.body, "list of repositories")?;
        for repository in page.repositories.0 {
            match repository.strip_prefix(prefix) {
                Some(name) if is_repository_name(&repository) => drop(names.insert(name.to_owned())),
                Some(_) => left_out += 1,
                None => {}
            }
        }
        if names.len() > MOST {
            return Err(QueryError::TooMany("repositories".to_owned()));
        }
        next = reader.next(&url, &reply.headers)?;
    }
    Ok((names, left_out))
}

async fn tags(mut reader: Reader<'_>, name: &str) -> Result<Tags> {
    let mut tags = Vec::new();
    let mut next = Some(reader.first.clone());
    while let Some(url) = next {
        let reply = reader.get(&url).await?;
        if let Some(gone) = gone(&reply) {
            return Ok(gone);
        }
        let page: TagList = object(&reader.request, &reply.body, "list of tags")?;
        if page.name.is_none() && page.tags.is_none() {
            return Err(reader.bad("the answer is not a list of tags"));
        }
        tags.extend(page.tags.map(|tags| tags.0).unwrap_or_default());
        if tags.len() > MOST {
            return Err(QueryError::TooMany(format!("tags of {name}")));
        }
        next = reader.next(&url, &reply.headers)?;
    }
    Ok(Tags::Found(tags))
}

/// Whether the repository was deleted.
pub(super) fn gone(reply: &Reply) -> Option<Tags> {
    let is_said = || codes(&reply.body).iter().any(|code| matches!(&**code, "NAME_UNKNOWN" | "NOT_FOUND"));
    (!reply.status.is_success()).then(|| Tags::Gone { is_said: is_said() })
}

/// Reads the tags of all repositories, several at the same time. The first error in the order of the names is
/// returned, so that the same problem has the same message each time.
pub(super) async fn collected<F: Future<Output = Result<Tags>>>(
    names: BTreeSet<String>,
    left_out: usize,
    read: impl Fn(String) -> F,
) -> Result<Listing> {
    let mut collection = Collection::new(left_out);
    let (count, mut unsaid) = (names.len(), 0);
    let read = async |name: String| (name.clone(), read(name).await);
    let mut all = stream::iter(names).map(read).buffered(CONCURRENCY);
    while let Some((name, tags)) = all.next().await {
        match tags? {
            Tags::Found(tags) => collection.add(name, tags),
            Tags::Gone { is_said } => unsaid += usize::from(!is_said),
        }
    }
    if count > 0 && unsaid == count {
        let request = "the tags".to_owned();
        let problem = format!("all {count} repositories were answered 404, but not by a registry");
        return Err(QueryError::BadAnswer { request, problem });
    }
    collection.finish()
}
