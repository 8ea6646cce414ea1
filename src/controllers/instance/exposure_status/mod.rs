//! Whether the web interface of an environment can be reached, according to the controllers of Gateways and Ingresses.
//!
//! | object | refused | ignored |
//! |---|---|---|
//! | `HTTPRoute` | a Gateway reports `Accepted` or `ResolvedRefs` as false | Gateways have neither accepted nor refused it for `stalledAfter` |
//! | Ingress | there is no field for a refusal | it has had no address for `stalledAfter`, and other Ingresses of its class have one, or it has no class and the cluster no default one |
//!
//! A route with a policy is reachable only if the Gateway has also accepted that policy (`route_policy`).
//!
//! Many Ingress controllers are configured not to publish addresses. If no Ingress of the class has an address,
//! nothing can be concluded. An Ingress with an address serves the web interface, regardless of the state of the
//! route.

use std::time::Duration;

use jiff::Timestamp;

use super::cause::{Cause, say};
use super::environment::EnvironmentContext;
use super::{exposure, route_policy};
use crate::api::instance::InstancePhase as Phase;
use crate::api::reason::Source;
use crate::api::requirements::IngressClasses;
use crate::api::text::Text;
use crate::api::{Kind, Object};
use crate::controllers::shared::waits::passed;
use crate::kinds::{HttpRoute, HttpRouteKind, Ingress, IngressKind, RouteCondition, RouteParentStatus};
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
    match route_policy::cause(context).or_else(|| unreachable(context, now)) {
        Some(cause) => (cause.row.phase.clone(), Some(cause)),
        None if route_policy::is_hidden(context) => (Phase::Running, None),
        None => (phase, None),
    }
}

/// The time until the route or the Ingress of an environment counts as ignored, if its controllers report nothing until
/// then.
pub fn left(context: &EnvironmentContext<'_>, now: Timestamp) -> Option<Duration> {
    let (route, ingress) = open(context);
    let route = route.filter(|route| is_undecided(route)).and_then(undecided_since);
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
    let after = context.config.stalled_after.get();
    let is_late = |since: Option<Timestamp>| since.is_some_and(|since| passed(since, now) >= after);
    if let Some(route) = route.filter(|route| is_late(undecided_since(route))) {
        return Some(Cause::new(Source::Exposure, "ignored", say(route, &[&undecided(context, route)])));
    }
    let ingress = ingress.filter(|ingress| is_late(since(*ingress)))?;
    let said = ignored(context, ingress)?;
    Some(Cause::new(Source::Exposure, "ignored", say(ingress, &[&said])))
}

/// Describes why no controller serves an Ingress that has been without an address for `stalledAfter`; `None` if a
/// controller may serve it.
fn ignored(context: &EnvironmentContext<'_>, ingress: &Ingress) -> Option<String> {
    let (observed, after) = (context.observed, context.config.stalled_after);
    let class = class(ingress);
    if observed.published_classes.contains(&class) {
        let controller = match class.as_str() {
            "" => "its controller".to_owned(),
            class => format!("the controller of class {class}"),
        };
        let said = "which serves other Ingresses, has assigned no address for";
        return Some(format!("{controller}, {said} {after}"));
    }
    let has_no_default =
        observed.cluster.ingress_classes.is_some_and(|classes| classes != IngressClasses::WithDefault);
    (class.is_empty() && has_no_default).then(|| {
        format!(
            "it has no class, because no Ingress class is the default, and no controller has assigned an address for \
             {after}: annotate a class with ingressclass.kubernetes.io/is-default-class=true, and delete the Ingress, \
             which is created again with that class"
        )
    })
}

/// The cause that a Gateway does not accept a route or cannot resolve its references.
pub fn refusal(route: &HttpRoute) -> Option<Cause> {
    let (parent, refused) = conditions(route).find(|(_, condition)| is_refusal(condition))?;
    let said = format!("{}: {}", gateway(route, parent), words(refused));
    Some(Cause::new(Source::Exposure, "refused", say(route, &[&said])))
}

fn is_refusal(condition: &RouteCondition) -> bool {
    matches!(&*condition.type_, "Accepted" | "ResolvedRefs") && condition.status == "False"
}

/// Whether Gateways have neither accepted nor refused a route.
fn is_undecided(route: &HttpRoute) -> bool {
    !exposure::is_accepted(route) && !conditions(route).any(|(_, condition)| is_refusal(condition))
}

/// Whether a Gateway reports that it has not decided yet.
fn is_open(condition: &RouteCondition) -> bool {
    condition.type_ == "Accepted" && condition.status != "True"
}

/// The time since which a route is undecided: its creation, or a later change of the condition `Accepted`.
fn undecided_since(route: &HttpRoute) -> Option<Timestamp> {
    let open = conditions(route).filter(|(_, condition)| is_open(condition));
    let changes = open.filter_map(|(_, condition)| Some(condition.last_transition_time.as_ref()?.0));
    changes.chain(since(route)).max()
}

/// Describes a route that Gateways have neither accepted nor refused for `stalledAfter`.
fn undecided(context: &EnvironmentContext<'_>, route: &HttpRoute) -> String {
    let after = context.config.stalled_after;
    if let Some((parent, condition)) = conditions(route).find(|(_, condition)| is_open(condition)) {
        return format!("{} has not decided for {after}: {}", gateway(route, parent), words(condition));
    }
    let is_reported = conditions(route).next().is_some();
    let is_other = |parent: &&RouteParentStatus| !parent.conditions.iter().any(|one| one.type_ == "Accepted");
    if let Some(parent) = route.status.parents.iter().find(is_other).filter(|_| is_reported) {
        return format!("{} has not accepted it for {after}", gateway(route, parent));
    }
    let gateways = context.config.gateway_api.parent_refs.iter();
    let gateways: Vec<String> =
        gateways.map(|gateway| format!("{}/{}", gateway.namespace, gateway.name)).collect();
    format!("Gateway {} has not reported a status for {after}", gateways.join(", "))
}

/// The conditions of a route, each with its Gateway.
fn conditions(route: &HttpRoute) -> impl Iterator<Item = (&RouteParentStatus, &RouteCondition)> {
    let parents = route.status.parents.iter();
    parents.flat_map(|parent| parent.conditions.iter().map(move |condition| (parent, condition)))
}

/// The Gateway of a status, as the beginning of a message.
fn gateway(route: &HttpRoute, parent: &RouteParentStatus) -> String {
    let gateway = &parent.parent_ref;
    let namespace = if gateway.namespace.is_empty() { route.namespace() } else { &gateway.namespace };
    format!("Gateway {namespace}/{}", gateway.name)
}

/// A condition as the end of a message: `Accepted is false: NoMatchingParent: no listener`.
pub fn words(condition: &RouteCondition) -> String {
    let RouteCondition { type_, status, reason, message, .. } = condition;
    let said = format!("{type_} is {}: {reason}: {message}", status.to_lowercase());
    said.trim_end_matches(": ").to_owned()
}

fn since<T: Kind>(object: &Object<T>) -> Option<Timestamp> {
    object.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests;
