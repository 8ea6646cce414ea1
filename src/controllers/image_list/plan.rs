//! The plan of an image list: a pure function of the observed state, the configuration and the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;

use super::observe::{Observed, Query};
use crate::api::image_list::{ImageList, ImageListItem, ImageListKind};
use crate::clients::registry::{Listing, QueryError};
use crate::config::{ImageListConfig, RegistryConfig};
use crate::controllers::shared::children::Parent;
use crate::runtime::component::Component;
use crate::runtime::plan::{Desired, Ownership, Plan, Requeue};
use crate::runtime::queue::spread;
use crate::runtime::{ObjectKey, reconciler};

/// The delay after the first failed query. It doubles each time, up to the interval.
const RETRY: Duration = Duration::from_secs(30);
/// The number of consecutive queries that must find an empty registry before a list loses its images. A registry also
/// returns an empty response without an error when it is starting, has lost its disk, or no longer shows anything to
/// the user.
pub(super) const AGREED: u32 = 3;

/// The effects outside the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Start a query of the registry.
    Query,
}

impl reconciler::Effect for Effect {
    type Result = ();
}

/// The decision about a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision<'o> {
    /// The registry has to be read now.
    Query,
    /// A query is running.
    UnderWay,
    /// The registry was read: the list takes this content, and the registry is read again at this time.
    Current(&'o Arc<Listing>, Timestamp),
    /// The registry is empty but the list has images: the list stays unchanged, and the registry is read again at this
    /// time.
    Doubted(Timestamp),
    /// The registry could not be read: the list stays unchanged, and the query is repeated at this time.
    Failed(&'o QueryError, Timestamp),
}

/// The registry of a list.
pub fn registry<'c>(list: &ImageList, config: &'c ImageListConfig) -> Option<&'c RegistryConfig> {
    config.registries.iter().find(|registry| registry.image_list_name == list.name())
}

/// Decides about a list.
pub fn decide<'o>(observed: &'o Observed, config: &ImageListConfig, now: Timestamp) -> Decision<'o> {
    let Some(query) = &observed.query else { return Decision::Query };
    let Some((ended, result)) = &query.result else { return Decision::UnderWay };
    let due = due(observed, query, *ended, result.is_ok(), config.update_interval.get());
    match result {
        _ if due <= now && query.is_settled => Decision::Query,
        Ok(listing) if is_doubted(listing, &observed.list, query.empty) => Decision::Doubted(due),
        Ok(listing) => Decision::Current(listing, due),
        Err(error) => Decision::Failed(error, due),
    }
}

/// Whether an empty registry is still doubted after `empty` consecutive queries.
pub(super) fn is_doubted(listing: &Listing, list: &ImageList, empty: u32) -> bool {
    listing.images.is_empty() && !list.spec.images.is_empty() && empty < AGREED
}

/// When the registry is read again: one interval after the start of a successful query, or sooner after the end of a
/// failed one. The reads of the lists of one registry, and of other daemons, are spread over a fifth of the interval.
fn due(
    observed: &Observed,
    query: &Query,
    ended: Timestamp,
    succeeded: bool,
    interval: Duration,
) -> Timestamp {
    let salt = u64::try_from(query.begun.as_second()).unwrap_or_default();
    let jitter = 0.9 + 0.2 * spread(&ObjectKey::of(&*observed.list), salt);
    let doubled = RETRY.saturating_mul(1 << query.failures.saturating_sub(1).min(16));
    let (from, delay) = if succeeded { (query.begun, interval) } else { (ended, doubled.min(interval)) };
    from.checked_add(delay.mul_f64(jitter)).unwrap_or(Timestamp::MAX).max(ended)
}

/// The plan.
pub fn plan(observed: &Observed, config: &ImageListConfig, now: Timestamp) -> Plan<Effect> {
    let mut plan = Plan::default();
    let Some(registry) = registry(&observed.list, config) else {
        plan.requeue = Requeue::OnChange;
        return plan;
    };
    let decision = decide(observed, config, now);
    if let Decision::Current(_, due) | Decision::Doubted(due) | Decision::Failed(_, due) = decision {
        plan.requeue_after(Duration::try_from(due.duration_since(now)).unwrap_or_default());
    }
    match decision {
        Decision::Query => plan.effects.push(Effect::Query),
        Decision::Current(listing, _) => plan.ensure.push(desired(observed, registry, &listing.images)),
        Decision::Failed(..) if !observed.exists() => plan.ensure.push(desired(observed, registry, &[])),
        // The result of a running query adds the list to the queue.
        Decision::UnderWay | Decision::Doubted(_) | Decision::Failed(..) => {}
    }
    plan
}

/// The list with these images. It has no owner: the configuration names it.
fn desired(observed: &Observed, registry: &RegistryConfig, images: &[ImageListItem]) -> Desired {
    let project = Some(registry.project.as_str()).filter(|project| !project.is_empty());
    let spec = json!({"registryName": registry.registry_name, "projectBaseName": project, "images": images});
    let fields = json!({"spec": spec});
    let parent = Parent {
        owner: OwnerReference::default(),
        namespace: String::new(),
        labels: BTreeMap::new(),
        seen: None,
    };
    let existing = observed.exists().then_some(&*observed.list);
    let child = parent.child::<ImageListKind>(observed.list.name(), &Component::Whole, 0, || json!({}));
    let mut child = child.existing(existing).initially(fields.clone()).fields(fields);
    child.desired.ownership = Ownership::Unowned;
    child.desired.identity.clear();
    child.made()
}
