//! Kinds of the Gateway API.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;

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
kind!(/// A Gateway. Only the name is read.
    GatewayKind, Gateway, "gateway.networking.k8s.io", "v1", "Gateway", "gateways", namespaced: true, Unread, Unread);
