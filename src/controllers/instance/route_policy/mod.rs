//! The policy that guards the `HTTPRoute` of an environment, if `gatewayApi.policy` is set.
//!
//! The policy is written before the route. Until the Gateway has accepted both, the URL is hidden, because a policy that
//! does not match its route protects nothing. A controller may accept a policy only while its route exists, so the route
//! has to exist meanwhile, and after a withdrawal it is tried again:
//!
//! | state | route | ends |
//! |---|---|---|
//! | open | exists, its URL is hidden | when both are accepted; or after `stalledAfter`, with a withdrawal |
//! | guarded | exists, its URL is shown | when one of them is no longer accepted |
//! | withdrawn | does not exist | after a pause, which is `stalledAfter` at first, and doubles up to an hour |
//!
//! An annotation of the policy has the state, unless the route is guarded. A policy with another content starts again: a route
//! that is not guarded is removed until that content is written, because the API server may refuse it. An Instance that is
//! stopped first loses its route, and then the policy, whose status is about that route.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cause::Cause;
use super::children::wave;
use super::environment::EnvironmentContext;
use super::plan::Plan;
use super::{exposure, exposure_status};
use crate::api::names::short_digest;
use crate::api::reason::Source;
use crate::api::shown::cut;
use crate::api::{Kind, labels};
use crate::config::Placeholders;
use crate::controllers::shared::children::Child;
use crate::controllers::shared::waits::passed;
use crate::kinds::{
    HttpRoute, HttpRouteKind, IngressKind, RouteCondition, RouteParentStatus, RoutePolicy, RoutePolicyKind,
};
use crate::runtime::plan::KindInfo;
use crate::runtime::queue::Backoff;

/// The longest pause before a withdrawn route is tried again.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);
/// The limit for the words of controllers in the annotation, in characters.
const LONGEST_WORDS: usize = 300;

/// The kind of the policies.
#[derive(Debug, Clone, Copy)]
pub struct Policies {
    /// Its names.
    pub kind: KindInfo,
    /// Whether the cluster serves it.
    pub is_served: bool,
}

/// The state of a route that is not guarded, as the annotation of its policy has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    /// Whether the route exists, rather than being withdrawn.
    is_open: bool,
    /// The beginning of this state.
    since: Time,
    /// The number of withdrawals since the route was guarded or the policy has changed.
    withdrawals: u32,
    /// Why the route was last withdrawn.
    why: String,
}

/// What happens to a route.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    /// It is guarded.
    Guarded,
    /// It exists for this long, unless it is guarded before.
    Open(Mark, Duration),
    /// It does not exist for this long.
    Withdrawn(Mark, Duration),
}

impl Mark {
    /// The state in the annotation of a policy; `None` if it cannot be read.
    fn of(policy: &RoutePolicy) -> Option<Self> {
        serde_json::from_str(policy.annotation(labels::ROUTE_STATE)?).ok()
    }

    /// The next stage of a route with this state. `why` describes what is not accepted.
    fn next(self, why: impl FnOnce() -> String, after: Duration, now: Timestamp) -> Stage {
        let pause = |withdrawals| Backoff { base: after, cap: LONGEST_PAUSE.max(after) }.wait(withdrawals);
        let length = if self.is_open { after } else { pause(self.withdrawals) };
        let left = length.saturating_sub(passed(self.since.0, now));
        let since = Time(now);
        match (self.is_open, left.is_zero()) {
            (true, false) => Stage::Open(self, left),
            (false, false) => Stage::Withdrawn(self, left),
            (true, true) => {
                let withdrawals = self.withdrawals.saturating_add(1);
                let mark = Self { is_open: false, since, withdrawals, why: why() };
                Stage::Withdrawn(mark, pause(withdrawals))
            }
            (false, true) => Stage::Open(Self { is_open: true, since, ..self }, after),
        }
    }
}

/// The kind of the policies, if routes with policies are used.
pub fn in_use(context: &EnvironmentContext<'_>) -> Option<Policies> {
    context.observed.policies.filter(|_| context.observed.has_routes)
}

/// Plans the policy and then the route of an environment while the Instance runs.
pub fn plan(context: &EnvironmentContext<'_>, policies: Policies, now: Timestamp, plan: &mut Plan) {
    let mut route = context.route();
    route.desired.wave = wave::WORKLOAD;
    route.desired.is_guarded = true;
    if !policies.is_served {
        // The API server has deleted the policies together with their kind.
        route.remove(plan);
        return;
    }
    let Some(spec) = spec(context) else { return };
    let digest = short_digest(&spec.to_string());
    let known = context.own::<RoutePolicyKind>();
    let is_current = known.is_some_and(|known| known.annotation(labels::POLICY_DIGEST) == Some(&*digest));
    let stage = stage(context, known.filter(|_| is_current), now);
    let (mark, left) = match &stage {
        Stage::Guarded => (None, None),
        Stage::Open(mark, left) | Stage::Withdrawn(mark, left) => (Some(mark), Some(*left)),
    };
    let mark = mark.and_then(|mark| serde_json::to_string(mark).ok());
    let template = &context.config.gateway_api.policy;
    let mut policy = policy(context, policies.kind, json!({"spec": spec}));
    let copied = template.metadata("labels").map(|(key, value)| (key.clone(), value.to_owned()));
    policy.desired.labels.extend(copied);
    let copied = template.metadata("annotations").map(|(key, value)| (key.clone(), Some(value.to_owned())));
    let own = [(labels::POLICY_DIGEST, Some(digest)), (labels::ROUTE_STATE, mark)];
    let own = own.map(|(key, value)| (key.to_owned(), value));
    let policy = policy.annotated(copied.chain(own));
    // Later changes by others are kept, until the template changes.
    let policy = if is_current { policy } else { policy.enforced() };
    policy.ensure(plan);
    plan.requeue_after(left);
    // The content may be refused, and then no annotation can say since when the route is open.
    let is_bare = !is_current && stage != Stage::Guarded && route.is_own();
    if is_bare {
        // It is created again after the policy is written.
        plan.requeue_after(Duration::ZERO);
    }
    if is_bare || matches!(stage, Stage::Withdrawn(..)) {
        route.remove(plan);
    } else if context.environment.gui_enabled {
        route.ensure(plan);
    } else {
        route.keep(plan);
    }
}

/// Plans the removal of the policy of a stopped Instance, after its route is gone.
pub fn stop(context: &EnvironmentContext<'_>, plan: &mut Plan) {
    let Some(policies) = context.observed.policies else { return };
    match context.own::<HttpRouteKind>() {
        None => policy(context, policies.kind, Value::Null).remove(plan),
        Some(route) if !route.is_terminating() => plan.requeue_after(Duration::ZERO),
        // The watch shows its deletion.
        Some(_) => {}
    }
}

/// Whether the Gateway serves the web interface of an environment: it has accepted the route, and the policy if there
/// must be one.
pub fn is_accepted(context: &EnvironmentContext<'_>) -> bool {
    match (in_use(context), context.own::<HttpRouteKind>()) {
        (Some(_), Some(route)) => is_guarded(context, route),
        (None, Some(route)) => exposure::is_accepted(route),
        (_, None) => false,
    }
}

/// Whether the URL of an environment is shown. With policies, a route must be guarded; an Ingress with an address has a
/// login of its own.
pub fn is_shown(context: &EnvironmentContext<'_>) -> bool {
    let ingress = context.own::<IngressKind>();
    if in_use(context).is_some() {
        is_accepted(context) || ingress.is_some_and(|ingress| ingress.status.is_published)
    } else {
        ingress.is_some() || context.own::<HttpRouteKind>().is_some()
    }
}

/// Whether a web interface that should be reachable has no URL yet, because its route is not guarded.
pub fn is_hidden(context: &EnvironmentContext<'_>) -> bool {
    let is_wanted = context.environment.gui_enabled && context.observed.instance.spec.running;
    is_wanted && in_use(context).is_some() && !is_shown(context)
}

/// The cause that a route is withdrawn, or tried again.
pub fn cause(context: &EnvironmentContext<'_>) -> Option<Cause> {
    let policies = in_use(context).filter(|_| is_hidden(context))?;
    let said = if policies.is_served {
        let mark = context.own::<RoutePolicyKind>().and_then(Mark::of).filter(|mark| mark.withdrawals > 0)?;
        format!(
            "{}; the route is removed, because without this policy everyone could open the machine, and tried again later",
            mark.why
        )
    } else {
        let KindInfo { group, plural, .. } = policies.kind;
        format!(
            "the cluster does not serve {plural}.{group} (controllers.instance.gatewayApi.policy), so the web interface \
             has no route"
        )
    };
    Some(Cause::new(Source::Exposure, "unguarded", said))
}

/// The next stage of a route. `policy` is its policy, if it exists with the current content.
fn stage(context: &EnvironmentContext<'_>, policy: Option<&RoutePolicy>, now: Timestamp) -> Stage {
    if is_accepted(context) {
        return Stage::Guarded;
    }
    let first = || Mark { is_open: true, since: Time(now), withdrawals: 0, why: String::new() };
    let mark = policy.and_then(Mark::of).unwrap_or_else(first);
    mark.next(|| why(context), context.config.stalled_after.get(), now)
}

/// Whether the Gateway has accepted a route and its policy.
fn is_guarded(context: &EnvironmentContext<'_>, route: &HttpRoute) -> bool {
    let policy = context.own::<RoutePolicyKind>().filter(|policy| !policy.is_terminating());
    exposure::is_accepted(route) && policy.is_some_and(|policy| accepts(policy, route))
}

/// The conditions `Accepted` of a policy: one for each Gateway, or one for all, depending on the kind.
fn decisions(policy: &RoutePolicy) -> impl Iterator<Item = &RouteCondition> {
    let status = &policy.status;
    let conditions = status.ancestors.iter().flat_map(|ancestor| &ancestor.conditions);
    conditions.chain(&status.conditions).filter(|condition| condition.type_ == "Accepted")
}

/// Whether a policy is accepted for each Gateway of a route.
fn accepts(policy: &RoutePolicy, route: &HttpRoute) -> bool {
    // Without a namespace, it is the namespace of the route and of the policy.
    let place = |namespace: &str, name: &str| {
        let namespace = if namespace.is_empty() { route.namespace() } else { namespace };
        (namespace.to_owned(), name.to_owned())
    };
    let ancestors = policy.status.ancestors.iter().map(|ancestor| &ancestor.ancestor_ref);
    let gateways = ancestors.filter(|ancestor| matches!(&*ancestor.kind, "" | "Gateway"));
    let gateways: Vec<_> = gateways.map(|gateway| place(&gateway.namespace, &gateway.name)).collect();
    let is_named = |RouteParentStatus { parent_ref, .. }: &RouteParentStatus| {
        gateways.contains(&place(&parent_ref.namespace, &parent_ref.name))
    };
    decisions(policy).next().is_some()
        && decisions(policy).all(|condition| condition.status == "True")
        && (gateways.is_empty() || route.status.parents.iter().all(is_named))
}

/// Describes what the Gateway has not accepted.
fn why(context: &EnvironmentContext<'_>) -> String {
    let (route, policy) = (context.own::<HttpRouteKind>(), context.own::<RoutePolicyKind>());
    let (kind, name) = (context.observed.policies.map_or("", |policies| policies.kind.kind), &context.name);
    let refused = || route.and_then(exposure_status::refusal).map(|cause| cause.message);
    let rejected = || {
        let condition = decisions(policy?).find(|condition| condition.status != "True")?;
        Some(format!("{kind} {name}: {}", exposure_status::words(condition)))
    };
    let silent = || {
        let is_policy = policy.is_none_or(|policy| decisions(policy).next().is_none());
        let kind = if is_policy { kind } else { HttpRouteKind::KIND };
        format!("{kind} {name}: no controller has accepted it for {}", context.config.stalled_after)
    };
    cut(&refused().or_else(rejected).unwrap_or_else(silent), LONGEST_WORDS).into_owned()
}

/// The spec of the policy; `None` while the key of host names is unknown.
fn spec(context: &EnvironmentContext<'_>) -> Option<Value> {
    let (instance, host, path) = (&context.observed.instance, context.host()?, context.base_path());
    Some(context.config.gateway_api.policy.spec(&Placeholders {
        route: &context.name,
        namespace: instance.namespace(),
        uid: instance.uid(),
        environment: &context.environment.name,
        host: &host,
        path: &path,
    }))
}

/// The policy, which has the name of the route.
fn policy<'a>(context: &EnvironmentContext<'a>, kind: KindInfo, body: Value) -> Child<'a> {
    let (name, component) = (&context.name, context.component());
    let mut child = context.parent.child::<RoutePolicyKind>(name, &component, wave::DEPENDENCIES, || body);
    child.desired.kind = kind;
    child
}

#[cfg(test)]
mod tests;
