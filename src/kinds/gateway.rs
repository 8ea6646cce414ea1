//! Kinds of the Gateway API.

use macro_rules_attribute::apply;

use super::{ForeignCondition, Unread, foreign_part, kind};

/// The state of a route at one Gateway.
#[apply(foreign_part)]
pub struct RouteParentStatus {
    /// The conditions that the Gateway's controller sets: `Accepted`, `ResolvedRefs`.
    pub conditions: Vec<ForeignCondition>,
}

/// The fields that we read of the status of an `HTTPRoute`.
#[apply(foreign_part)]
pub struct HttpRouteStatus {
    /// One entry for each Gateway.
    pub parents: Vec<RouteParentStatus>,
}
kind!(/// An `HTTPRoute`.
    HttpRouteKind, HttpRoute, "gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes",
    namespaced: true, Unread, HttpRouteStatus);
