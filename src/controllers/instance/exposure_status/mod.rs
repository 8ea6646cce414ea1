//! Whether the web interface of an environment can be reached, according to the controllers of Gateways and Ingresses.
//!
//! | object | refused | ignored |
//! |---|---|---|
//! | `HTTPRoute` | a Gateway reports `Accepted` or `ResolvedRefs` as false | no Gateway has reported any condition for `stalledAfter` |
//! | Ingress | there is no field for a refusal | it has had no address for `stalledAfter`, and other Ingresses of its class have one |
//!
//! Many Ingress controllers are configured not to publish addresses. If no Ingress of the class has an address, nothing
//! can be concluded. An Ingress with an address serves the web interface, regardless of the state of the route.

use std::time::Duration;

use jiff::Timestamp;

use super::cause::{Cause, say};
use super::environment::EnvironmentContext;
use super::exposure;
use crate::api::instance::InstancePhase as Phase;
use crate::api::reason::Source;
use crate::api::text::Text;
use crate::api::{Kind, Object};
use crate::controllers::shared::waits::passed;
use crate::kinds::{ForeignCondition, HttpRoute, HttpRouteKind, Ingress, IngressKind};
use crate::runtime::store::index;

index! {
    /// Ingresses with an address, by class; Ingresses without a class are under an empty one.
    pub struct ByPublishedClass of IngressKind by Text;
    |ingress| ingress.status.is_published.then(|| class(ingress)).into_iter().collect()
}

/// The class of an Ingress.
pub fn class(ingress: &Ingress) -> Text {
    ingress.spec.ingress_class_name.clone().unwrap_or_else(|| Text::interned(""))
}

/// Adjusts the phase of an environment and its cause, starting from its workload: a ready environment that cannot be
/// reached is not ready.
pub fn judge(
    context: &EnvironmentContext<'_>,
    (phase, cause): (Phase, Option<Cause>),
    now: Timestamp,
) -> (Phase, Option<Cause>) {
    if phase != Phase::Ready || cause.is_some() {
        return (phase, cause);
    }
    match unreachable(context, now) {
        Some(cause) => (cause.row.phase.clone(), Some(cause)),
        None => (phase, None),
    }
}

/// The time until the route or the Ingress of an environment counts as ignored, if its controllers report nothing until
/// then.
pub fn left(context: &EnvironmentContext<'_>, now: Timestamp) -> Option<Duration> {
    let (route, ingress) = open(context);
    let route = route.filter(|route| is_silent(route)).and_then(since);
    let since = route.or_else(|| ingress.and_then(since))?;
    let left = context.config.stalled_after.get().saturating_sub(passed(since, now));
    (!left.is_zero()).then_some(left)
}

/// The route that must be accepted and the Ingress that must get an address, for an environment that should be
/// reachable.
fn open<'a>(context: &EnvironmentContext<'a>) -> (Option<&'a HttpRoute>, Option<&'a Ingress>) {
    let observed = context.observed;
    let ingress = context.own::<IngressKind>();
    let is_served = ingress.is_some_and(|ingress| ingress.status.is_published);
    if !context.environment.gui_enabled || !observed.instance.spec.running || is_served {
        return (None, None);
    }
    let is_routed = context.config.gateway_api.enabled && observed.has_routes;
    (context.own::<HttpRouteKind>().filter(|_| is_routed), ingress)
}

/// The cause that the web interface of an environment cannot be reached.
fn unreachable(context: &EnvironmentContext<'_>, now: Timestamp) -> Option<Cause> {
    let (route, ingress) = open(context);
    let refused = route.and_then(refusal);
    if refused.is_some() || route.is_some_and(exposure::is_accepted) {
        return refused;
    }
    let after = context.config.stalled_after;
    let is_late = |since: Option<Timestamp>| since.is_some_and(|since| passed(since, now) >= after.get());
    if let Some(route) = route.filter(|route| is_silent(route) && is_late(since(*route))) {
        let gateways = context.config.gateway_api.parent_refs.iter();
        let gateways: Vec<String> =
            gateways.map(|gateway| format!("{}/{}", gateway.namespace, gateway.name)).collect();
        let said = format!("Gateway {} has not reported a status for {after}", gateways.join(", "));
        return Some(Cause::new(Source::Exposure, "ignored", say(route, &[&said])));
    }
    let is_known = |ingress: &&Ingress| context.observed.published_classes.contains(&class(ingress));
    let ingress = ingress.filter(is_known).filter(|ingress| is_late(since(*ingress)))?;
    let controller = match class(ingress).as_str() {
        "" => "its controller".to_owned(),
        class => format!("the controller of class {class}"),
    };
    let said = format!("{controller}, which serves other Ingresses, has assigned no address for {after}");
    Some(Cause::new(Source::Exposure, "ignored", say(ingress, &[&said])))
}

/// The cause that a Gateway does not accept a route or cannot resolve its references.
fn refusal(route: &HttpRoute) -> Option<Cause> {
    route.status.parents.iter().find_map(|parent| {
        let refused = parent.conditions.iter().find(|condition| is_refusal(condition))?;
        let gateway = &parent.parent_ref;
        let namespace = if gateway.namespace.is_empty() { route.namespace() } else { &gateway.namespace };
        let name = &gateway.name;
        let ForeignCondition { type_, reason, message, .. } = refused;
        let said = format!("Gateway {namespace}/{name}: {type_} is false: {reason}: {message}");
        let said = said.trim_end_matches(": ");
        Some(Cause::new(Source::Exposure, "refused", say(route, &[said])))
    })
}

fn is_refusal(condition: &ForeignCondition) -> bool {
    matches!(&*condition.type_, "Accepted" | "ResolvedRefs") && condition.status == "False"
}

/// Whether no Gateway has reported any condition for a route yet.
fn is_silent(route: &HttpRoute) -> bool {
    route.status.parents.iter().all(|parent| parent.conditions.is_empty())
}

fn since<T: Kind>(object: &Object<T>) -> Option<Timestamp> {
    object.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests;
