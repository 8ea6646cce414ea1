//! The list of the images in a registry: sorted, without invalid names, and limited in size.

use std::collections::HashSet;

use super::error::{QueryError, Result};
use crate::api::image::{is_repository, is_tag};
use crate::api::image_list::ImageListItem;

/// The limit for the list, in bytes of JSON. etcd accepts objects up to 1.5 MiB; the rest is for metadata and status.
pub(super) const LARGEST: usize = 1 << 20;
/// The limit for the name of a repository in bytes, the same as in registries.
const LONGEST_REPOSITORY: usize = 255;
/// A tag that is always left out: the content of a machine with it would change with the image.
const LATEST: &str = "latest";

/// The images that a registry offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The images, sorted by name.
    pub images: Vec<ImageListItem>,
    /// The numbers of repositories and tags that were left out.
    pub left_out: LeftOut,
}

/// The numbers of repositories and tags that were left out because their names are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// The number of repositories.
    pub repositories: usize,
    /// The number of tags.
    pub tags: usize,
}

/// Whether a text is the name of a repository.
pub(super) fn is_repository_name(text: &str) -> bool {
    text.len() <= LONGEST_REPOSITORY && is_repository(text)
}

/// A listing that is built image by image in the order of the names.
#[derive(Default)]
pub(super) struct Collection {
    listing: Listing,
    bytes: usize,
    images: usize,
    /// The image with the most data: its name, the number of its tags, and its size.
    largest: (String, usize, usize),
}

impl Collection {
    /// An empty collection. `repositories_left_out` repositories were left out before.
    pub fn new(repositories_left_out: usize) -> Self {
        let left_out = LeftOut { repositories: repositories_left_out, tags: 0 };
        Self { listing: Listing { images: Vec::new(), left_out }, ..Self::default() }
    }

    /// Adds an image with its tags, in the order of the registry.
    pub fn add(&mut self, name: String, tags: Vec<String>) {
        let mut seen = HashSet::new();
        let mut versions: Vec<String> = Vec::new();
        for tag in tags {
            if !is_tag(&tag) {
                self.listing.left_out.tags += 1;
            } else if tag != LATEST && !is_of_another(&tag) && seen.insert(tag.clone()) {
                versions.push(tag);
            }
        }
        if versions.is_empty() {
            return;
        }
        // The names contain no characters that JSON escapes.
        let of_tags: usize = versions.iter().map(|tag| tag.len() + r#""","#.len()).sum();
        let size = name.len() + of_tags + r#"{"name":"","versions":[]},"#.len();
        self.images += 1;
        self.bytes += size;
        if size > self.largest.2 {
            self.largest = (name.clone(), versions.len(), size);
        }
        if self.bytes <= LARGEST {
            self.listing.images.push(ImageListItem { name, versions });
        } else {
            // Further images are still counted, so that the message is the same each time.
            self.listing.images = Vec::new();
        }
    }

    /// The listing.
    ///
    /// # Errors
    /// When it would be too large.
    pub fn finish(self) -> Result<Listing> {
        if self.bytes <= LARGEST {
            return Ok(self.listing);
        }
        let (largest, tags, _) = self.largest;
        Err(QueryError::TooLarge { images: self.images, bytes: self.bytes, largest, tags })
    }
}

/// Whether a tag does not belong to an image, but to data about an image: signatures, attestations and the list of
/// referrers have the digest of the image as their tag (the fallback of the OCI distribution specification, and
/// cosign).
fn is_of_another(tag: &str) -> bool {
    let digest = tag.strip_prefix("sha256-").and_then(|rest| rest.split_at_checked(64));
    digest.is_some_and(|(digest, rest)| {
        digest.bytes().all(|byte| byte.is_ascii_hexdigit()) && (rest.is_empty() || rest.starts_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(images: &[(&str, &[&str])]) -> Result<Listing> {
        let mut collection = Collection::new(0);
        for (name, tags) in images {
            collection.add((*name).to_owned(), tags.iter().map(|tag| (*tag).to_owned()).collect());
        }
        collection.finish()
    }

    #[test]
    fn invalid_names_are_left_out() {
        let digest = "0a".repeat(32);
        let (plain, signature) = (format!("sha256-{digest}"), format!("sha256-{digest}.sig"));
        let images: [(&str, &[&str]); 4] = [
            ("a", &["2", "latest", "1", "2", "latest", "Latest"]),
            ("b", &["latest"]),
            ("c", &["", ".x", "a/b", "x y", "é", "\n", "ok", &plain, &signature, "sha256-short"]),
            ("d", &[]),
        ];
        let listing = collected(&images).expect("it is small");
        let item = |name: &str, versions: &[&str]| ImageListItem {
            name: name.to_owned(),
            versions: versions.iter().map(|tag| (*tag).to_owned()).collect(),
        };
        assert_eq!(listing.images, [item("a", &["2", "1", "Latest"]), item("c", &["ok", "sha256-short"])]);
        assert_eq!(listing.left_out, LeftOut { repositories: 0, tags: 6 });
    }

    #[test]
    fn the_size_equals_the_json_and_is_limited() {
        let listing = collected(&[("a/b", &["1", "22"]), ("c", &["3"])]).expect("it is small");
        let mut collection = Collection::new(0);
        for image in &listing.images {
            collection.add(image.name.clone(), image.versions.clone());
        }
        let written = serde_json::to_string(&listing.images).expect("JSON");
        // Each list has one comma less than entries, and brackets around it.
        assert_eq!(collection.bytes, written.len() - 2 + 1 + listing.images.len());
        let tags =
            |count: usize| -> Vec<String> { (0..count).map(|number| format!("{number:0>125}")).collect() };
        for (counts, fits) in [([4_000, 4_000], true), ([2_000, 9_000], false)] {
            let mut collection = Collection::new(0);
            for (name, count) in ["a", "b"].into_iter().zip(counts) {
                collection.add(name.to_owned(), tags(count));
            }
            match collection.finish() {
                Ok(listing) => assert!(fits && listing.images.len() == 2),
                Err(error) => {
                    let expected = "its 2 images make a list of 1375 KiB, and an ImageList may have 1024 KiB; the \
                                    largest is b with 9000 tags: delete tags, or make several lists, each of one project";
                    assert!(!fits && error.to_string() == expected, "{error}");
                }
            }
        }
    }
}
