//! Effective values of the spec of an Instance: the API has older and newer fields for the same purpose, and the newer
//! one takes precedence where it is set.

use super::{ContentUrls, InstanceSpec};
use crate::api::environment::Environment;
use crate::api::template::Selector;

impl InstanceSpec {
    /// The URL of the status check; empty if the Instance has no status check.
    pub fn effective_status_check_url(&self) -> &str {
        first_set([self.status_check_url.as_str(), &self.customization_urls.status_check])
    }

    /// The URL of the archive that an environment downloads; empty if it downloads nothing. `first` says whether the
    /// environment is the first one of the Template. `customizationUrls` apply only to the first one.
    pub fn content_origin<'a>(&'a self, environment: &'a Environment, first: bool) -> &'a str {
        let newer = self.newer_content_urls(&environment.name, first).map(|urls| urls.origin.as_str());
        let older = if first { self.customization_urls.content_origin.as_str() } else { "" };
        let template = environment.container_startup_options.as_ref();
        let archive = template.map_or("", |options| &options.source_archive_url);
        first_set(newer.chain([older, archive]))
    }

    /// The URL that the content of an environment is uploaded to; empty if it is not uploaded. `first` has the same
    /// meaning as in [`Self::content_origin`].
    pub fn content_destination(&self, environment: &str, first: bool) -> &str {
        let newer = self.newer_content_urls(environment, first).map(|urls| urls.destination.as_str());
        let older = if first { self.customization_urls.content_destination.as_str() } else { "" };
        first_set(newer.chain([older]))
    }

    /// Whether any URL is named that the content is uploaded to.
    pub fn has_content_destination(&self) -> bool {
        let newer = self.content_urls.values().map(|urls| urls.destination.as_str());
        let mut all = newer.chain([self.customization_urls.content_destination.as_str()]);
        all.any(|destination| !destination.is_empty())
    }

    /// The entries of `contentUrls` for an environment: its own entry and, for the first environment, the entry
    /// [`DEFAULT_CONTENT`].
    fn newer_content_urls<'a>(
        &'a self,
        environment: &str,
        first: bool,
    ) -> impl Iterator<Item = &'a ContentUrls> + use<'a> {
        let default = first.then(|| self.content_urls.get(DEFAULT_CONTENT)).flatten();
        [self.content_urls.get(environment), default].into_iter().flatten()
    }

    /// The node selector of the pods of an environment, given the node selector of the Template (see
    /// `TemplateSpec::node_selector_of`). Returns `None` if the Template has none, the selector of the Instance if
    /// the one of the Template is empty, and otherwise the one of the Template.
    pub fn placement<'a>(&'a self, template: Option<&'a Selector>) -> Option<&'a Selector> {
        let template = template?;
        if template.is_empty() { self.node_selector.as_ref() } else { Some(template) }
    }
}

/// Returns the first text that is not empty, or an empty text.
fn first_set<'a>(texts: impl IntoIterator<Item = &'a str>) -> &'a str {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// The key in `contentUrls` for the first environment. The exam agent of the Go operators uses it because it does not
/// know the name of that environment.
const DEFAULT_CONTENT: &str = "default";
