//! Kinds of the Gateway API.

use macro_rules_attribute::apply;

use super::{ForeignCondition, Unread, foreign_part, kind};

/// A Gateway, as referenced by a route.
#[apply(foreign_part)]
pub struct RouteParent {
    /// Its namespace; empty if it is the namespace of the route.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The status of a route at one Gateway.
#[apply(foreign_part)]
pub struct RouteParentStatus {
    /// The Gateway.
    pub parent_ref: RouteParent,
    /// The conditions that the Gateway's controller sets: `Accepted`, `ResolvedRefs`.
    pub conditions: Vec<ForeignCondition>,
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
