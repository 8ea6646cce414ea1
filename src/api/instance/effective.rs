//! Effective values of the spec of an Instance: the API has older and newer fields for the same purpose, and the newer
//! one takes precedence where it is set.

use super::{ContentUrls, InstanceSpec};
use crate::api::environment::Environment;
use crate::api::template::Selector;

impl InstanceSpec {
    /// The URL of the status check; empty if there is none.
    pub fn effective_status_check_url(&self) -> &str {
        first_set([self.status_check_url.as_str(), &self.customization_urls.status_check])
    }

    /// The URL from which the content of an environment is downloaded; empty if there is none. `first`
    /// tells whether it is the first environment of the Template, the only one that `customizationUrls`
    /// applies to.
    pub fn content_origin<'a>(&'a self, environment: &'a Environment, first: bool) -> &'a str {
        let newer = self.newer_content_urls(&environment.name, first).map(|urls| urls.origin.as_str());
        let older = if first { self.customization_urls.content_origin.as_str() } else { "" };
        let template = environment.container_startup_options.as_ref();
        let archive = template.map_or("", |options| &options.source_archive_url);
        first_set(newer.chain([older, archive]))
    }

    /// The URL to which the content of an environment is uploaded; empty if there is none. `first` as in
    /// [`Self::content_origin`].
    pub fn content_destination(&self, environment: &str, first: bool) -> &str {
        let newer = self.newer_content_urls(environment, first).map(|urls| urls.destination.as_str());
        let older = if first { self.customization_urls.content_destination.as_str() } else { "" };
        first_set(newer.chain([older]))
    }

    /// The entries of `contentUrls` for an environment: its own and, for the first environment, that of
    /// [`DEFAULT_CONTENT`].
    fn newer_content_urls<'a>(
        &'a self,
        environment: &str,
        first: bool,
    ) -> impl Iterator<Item = &'a ContentUrls> + use<'a> {
        let default = first.then(|| self.content_urls.get(DEFAULT_CONTENT)).flatten();
        [self.content_urls.get(environment), default].into_iter().flatten()
    }

    /// The node selector of an environment's pods, given that of the Template (see
    /// `TemplateSpec::node_selector_of`): `None` if the Template has none, the Instance's own if the
    /// Template's is empty, else the Template's.
    pub fn placement<'a>(&'a self, template: Option<&'a Selector>) -> Option<&'a Selector> {
        let template = template?;
        if template.is_empty() { self.node_selector.as_ref() } else { Some(template) }
    }
}

/// The first text that is not empty; an empty text if there is none.
fn first_set<'a>(texts: impl IntoIterator<Item = &'a str>) -> &'a str {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// The key of `contentUrls` under which the exam agent of the Go operators writes the URLs of the first environment,
/// because it does not know its name.
const DEFAULT_CONTENT: &str = "default";
