//! Kinds of the Gateway API.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;
use serde_json::Value;

use super::{Unread, foreign_part, kind};

/// A Gateway, as referenced by a route.
#[apply(foreign_part)]
pub struct RouteParent {
    /// Its namespace; empty if it is the namespace of the route.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A condition of a route at one Gateway.
#[apply(foreign_part)]
pub struct RouteCondition {
    /// The type of the condition: `Accepted`, `ResolvedRefs`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason for the status, as one word.
    pub reason: String,
    /// The explanation of the status, as a sentence.
    pub message: String,
    /// The time of the last change of the status.
    pub last_transition_time: Option<Time>,
}

/// The status of a route at one Gateway.
#[apply(foreign_part)]
pub struct RouteParentStatus {
    /// The Gateway.
    pub parent_ref: RouteParent,
    /// The conditions that the Gateway's controller sets.
    pub conditions: Vec<RouteCondition>,
}

/// The fields of an `HTTPRoute`'s status that we read.
#[apply(foreign_part)]
pub struct HttpRouteStatus {
    /// One entry for each Gateway.
    pub parents: Vec<RouteParentStatus>,
}
kind!(/// An `HTTPRoute`.
    HttpRouteKind, HttpRoute, "gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes",
    namespaced: true, Unread, HttpRouteStatus);
/// The object whose controller has decided about a policy.
#[apply(foreign_part)]
pub struct PolicyAncestor {
    /// Its kind; empty for a Gateway.
    pub kind: String,
    /// Its namespace; empty if it is the namespace of the policy.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The status of a policy at one object, usually a Gateway.
#[apply(foreign_part)]
pub struct PolicyAncestorStatus {
    /// The object.
    pub ancestor_ref: PolicyAncestor,
    /// The conditions that its controller sets.
    pub conditions: Vec<RouteCondition>,
}

/// The fields of a policy's status that we read. Each kind has one of them.
#[apply(foreign_part)]
pub struct RoutePolicyStatus {
    /// One entry for each Gateway.
    pub ancestors: Vec<PolicyAncestorStatus>,
    /// The conditions for all Gateways.
    pub conditions: Vec<RouteCondition>,
}
kind!(/// The policy that guards an `HTTPRoute`. The names of its kind are in the configuration, not here, so its stores are
    /// declared with them.
    RoutePolicyKind, RoutePolicy, "", "", "RoutePolicy", "routepolicies",
    namespaced: true, Value, RoutePolicyStatus, encoded: true);
kind!(/// A Gateway. Only the name is read.
    GatewayKind, Gateway, "gateway.networking.k8s.io", "v1", "Gateway", "gateways", namespaced: true, Unread, Unread);
