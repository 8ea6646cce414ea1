//! Instances whose Services would have the same name. The Service of an environment is named `<c>` or
//! `<c>-<environment>`, the Service of a public exposure `<c>-pe`, and the Service of an OAuth2 proxy
//! `<c>-oauth2-proxy`. So Instance `a` with an environment `b` and Instance `a-b` may need the same name.

use std::sync::Arc;

use super::environments::choose;
use super::references::{ByCanonicalName, template_of};
use crate::api::environment::{Environment, EnvironmentMode};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::parts::{OAUTH2_PROXY, PUBLIC_EXPOSURE};
use crate::api::template::TemplateKind;
use crate::config::Layout;
use crate::runtime::ObjectKey;
use crate::runtime::store::Store;

/// The inputs that determine the Services of Instances.
pub struct ServiceNames<'a> {
    /// All Instances.
    pub instances: &'a Store<InstanceKind>,
    /// Their Templates.
    pub templates: &'a Store<TemplateKind>,
    /// The naming of the objects of new Instances.
    pub layout: Layout,
    /// Whether public exposures count, too.
    pub with_exposures: bool,
    /// Whether OAuth2 proxies of Instances count, too.
    pub with_proxies: bool,
}

impl ServiceNames<'_> {
    /// The other running Instances that have, or will have, a Service with this name. `has_object` says whether an
    /// Instance has an object that shows how its objects are named.
    pub fn of(
        &self,
        instance: &Instance,
        name: &str,
        has_object: impl Fn(&Instance, &str) -> bool,
    ) -> Vec<Arc<Instance>> {
        let dashes = name.match_indices('-').map(|(at, _)| (name.get(..at), name.get(at + 1..)));
        let ends = dashes.chain([(Some(name), None)]);
        let mut rivals = Vec::new();
        for (canonical, end) in ends.filter_map(|(canonical, end)| Some((canonical?, end))) {
            let key = ObjectKey::new(instance.metadata.namespace.clone(), canonical);
            let others = self.instances.by::<ByCanonicalName>(&key).into_iter().filter(|other| {
                other.uid() != instance.uid() && other.spec.running && !other.is_terminating()
            });
            rivals.extend(others.filter(|other| self.has(other, end, &has_object)));
        }
        rivals
    }

    /// Whether an Instance has a Service whose name is its canonical name followed by `end`.
    fn has(&self, other: &Instance, end: Option<&str>, has_object: impl Fn(&Instance, &str) -> bool) -> bool {
        let exposure = other.spec.public_exposure.as_ref();
        let is_exposed = self.with_exposures && exposure.is_some_and(|exposure| !exposure.ports.is_empty());
        if is_exposed && end == Some(PUBLIC_EXPOSURE.suffix) {
            return true;
        }
        let Some(template) = template_of(other, self.templates) else { return false };
        let environments = &template.spec.environment_list;
        // A Standard environment with a web interface needs the proxy.
        let is_guarded = |environment: &Environment| {
            environment.mode == EnvironmentMode::Standard && environment.gui_enabled
        };
        let is_proxy = self.with_proxies && end == Some(OAUTH2_PROXY.suffix);
        if is_proxy && environments.iter().any(is_guarded) {
            return true;
        }
        let (chosen, _) = choose(other, environments, self.layout, |name| has_object(other, name));
        chosen.iter().any(|chosen| match end {
            None => chosen.classic,
            Some(end) => !chosen.classic && chosen.environment.name == end,
        })
    }
}
