//! The content of the Service of an environment, and of its Ingress or `HTTPRoute`.

use serde_json::{Value, json};

use super::access;
use super::environment::EnvironmentContext;
use crate::api::environment::EnvironmentType;
use crate::config::AccessMode;
use crate::kinds::{
    HttpRoute, IMPLEMENTATION_SPECIFIC, Ingress, RouteCondition, has_wrong_type, is_regex_path,
};

/// The port of the web interface.
pub const GUI_PORT: u16 = 6080;
/// The Secret with the TLS certificate of the web site. Administrators replicate it into every namespace of
/// a Tenant.
const TLS_SECRET: &str = "crownlabs-ingress-secret";
const TIMEOUT: &str = "3600";
const PREFIX: &str = "nginx.ingress.kubernetes.io";

/// The ports of the Service of an environment, in order. Never empty.
pub fn ports(context: &EnvironmentContext<'_>) -> Vec<(&'static str, u16)> {
    let container = context.environment.environment_type == EnvironmentType::Container;
    let mut ports = Vec::new();
    if context.is_machine() {
        ports.push(("ssh", 22));
    }
    if context.environment.gui_enabled {
        ports.push(("gui", GUI_PORT));
    }
    if !context.is_machine() && context.is_standard() {
        ports.push(("mydrive", 8080));
    }
    // The API server rejects a Service without ports.
    if container || ports.is_empty() {
        ports.push(("metrics", 9090));
    }
    ports
}

/// The members of the Service.
pub fn service(context: &EnvironmentContext<'_>) -> Value {
    let port = |(name, number): (&str, u16)| json!({"name": name, "protocol": "TCP", "port": number, "targetPort": number});
    let ports: Vec<Value> = ports(context).into_iter().map(port).collect();
    json!({"spec": {"type": "ClusterIP", "selector": context.selector(), "ports": ports}})
}

/// The annotations of the Ingress to set, or (`None`) to remove.
pub fn annotations(context: &EnvironmentContext<'_>) -> Vec<(String, Option<String>)> {
    let auth = match context.config.access.mode {
        _ if !context.is_standard() => None,
        AccessMode::Shared => Some(context.config.instances_auth_url.clone()),
        AccessMode::PerInstance => Some(access::url(&context.host(), context.observed.instance.uid())),
        AccessMode::None => None,
    };
    let guard = |rest: &str| auth.as_ref().map(|auth| format!("{auth}{rest}"));
    let mut annotations = vec![
        (format!("{PREFIX}/proxy-read-timeout"), Some(TIMEOUT.to_owned())),
        (format!("{PREFIX}/proxy-send-timeout"), Some(TIMEOUT.to_owned())),
        (format!("{PREFIX}/auth-url"), guard("/auth")),
        (format!("{PREFIX}/auth-signin"), guard("/start?rd=$escaped_request_uri")),
    ];
    if let (_, Some(target)) = context.ingress_path() {
        annotations.push((format!("{PREFIX}/rewrite-target"), Some(target.to_owned())));
    }
    annotations
}

/// The enforced fields of an existing Ingress: the types of paths that are regular expressions. The NGINX Ingress
/// controller rejects every change of an Ingress with another type, which it accepted formerly. The paths themselves
/// are not changed.
pub fn path_types(ingress: &Ingress) -> Value {
    if ingress.spec.rules.is_empty() {
        return Value::Null;
    }
    let mut rules = ingress.spec.rules.clone();
    let paths = rules.iter_mut().filter_map(|rule| rule.http.as_mut()).flat_map(|http| &mut http.paths);
    for path in paths.filter(|path| has_wrong_type(path)) {
        IMPLEMENTATION_SPECIFIC.clone_into(&mut path.path_type);
    }
    json!({"spec": {"rules": rules}})
}

/// The members of an Ingress with one path to a port of a Service.
pub fn ingress(host: &str, path: &str, service: &str, port: &str) -> Value {
    let type_ = if is_regex_path(path) { IMPLEMENTATION_SPECIFIC } else { "Prefix" };
    let backend = json!({"service": {"name": service, "port": {"name": port}}});
    json!({"spec": {
        "tls": [{"hosts": [host], "secretName": TLS_SECRET}],
        "rules": [{
            "host": host,
            "http": {"paths": [{"path": path, "pathType": type_, "backend": backend}]},
        }],
    }})
}

/// The members of the `HTTPRoute` of the Gateway API.
pub fn route(context: &EnvironmentContext<'_>) -> Value {
    let mut rule = json!({
        "matches": [{"path": {"type": "PathPrefix", "value": context.base_path()}}],
        "backendRefs": [{"name": context.name, "port": GUI_PORT}],
        "timeouts": {"request": "3600s", "backendRequest": "3600s"},
    });
    if context.is_machine() && !context.classic || context.ingress_path().1.is_some() {
        rule["filters"] = json!([{
            "type": "URLRewrite",
            "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": ""}},
        }]);
    }
    let parents = context.config.gateway_api.parent_refs.iter();
    let parents = parents.map(|parent| json!({"name": parent.name, "namespace": parent.namespace}));
    json!({"spec": {"parentRefs": parents.collect::<Vec<_>>(), "rules": [rule]}})
}

/// Whether the route has at least one Gateway, and all its Gateways have accepted it.
pub fn is_accepted(route: &HttpRoute) -> bool {
    let is_accepted =
        |condition: &RouteCondition| condition.type_ == "Accepted" && condition.status == "True";
    let mut parents = route.status.parents.iter();
    !route.status.parents.is_empty() && parents.all(|parent| parent.conditions.iter().any(is_accepted))
}
