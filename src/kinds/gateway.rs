//! Kinds of the Gateway API.

use serde::{Deserialize, Serialize};

use super::{ForeignCondition, Unread, kind};

/// What one Gateway says of a route.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteParentStatus {
    /// `Accepted`, `ResolvedRefs`.
    pub conditions: Vec<ForeignCondition>,
}

/// The part of an `HTTPRoute`'s status that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpRouteStatus {
    /// One entry a Gateway.
    pub parents: Vec<RouteParentStatus>,
}
kind!(/// A route through a Gateway.
    HttpRouteKind, HttpRoute, "gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes",
    namespaced: true, Unread, HttpRouteStatus);
