//! Kinds of the Gateway API.

use serde::{Deserialize, Serialize};

use super::{ForeignCondition, Unread, kind};

/// The state of a route at one Gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteParentStatus {
    /// The conditions that the Gateway's controller sets: `Accepted`, `ResolvedRefs`.
    pub conditions: Vec<ForeignCondition>,
}

/// The fields that we read of the status of an `HTTPRoute`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpRouteStatus {
    /// One entry for each Gateway.
    pub parents: Vec<RouteParentStatus>,
}
kind!(/// An `HTTPRoute`.
    HttpRouteKind, HttpRoute, "gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes",
    namespaced: true, Unread, HttpRouteStatus);
