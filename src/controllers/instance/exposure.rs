//! The content of the Service of an environment, and of its Ingress or `HTTPRoute`.

use serde_json::{Value, json};

use super::access;
use super::environment::EnvironmentContext;
use crate::api::environment::EnvironmentType;
use crate::api::labels::{LARGE_UPLOADS, MACHINE_HOST};
use crate::api::{Kind, Object};
use crate::config::{AccessMode, Urls};
use crate::controllers::shared::machine_host::LOGIN_PATH;
use crate::kinds::{
    HttpRoute, HttpRouteKind, IMPLEMENTATION_SPECIFIC, Ingress, IngressKind, RouteCondition, has_wrong_type,
    is_regex_path,
};

pub use crate::controllers::shared::machine_path::GUI_PORT;

/// The name of the port of the web interface.
const GUI: &str = "gui";
/// The Secret with the TLS certificate of the web site. Administrators replicate it into every namespace of
/// a Tenant.
const TLS_SECRET: &str = "crownlabs-ingress-secret";
const TIMEOUT: &str = "3600";
const PREFIX: &str = "nginx.ingress.kubernetes.io";
/// The annotations of ingress-nginx for uploads of any size, without a copy on its disk.
const UPLOADS: [(&str, &str); 2] = [("proxy-body-size", "0"), ("proxy-request-buffering", "off")];

/// The ports of the Service of an environment, in order. Never empty.
pub fn ports(context: &EnvironmentContext<'_>) -> Vec<(&'static str, u16)> {
    let container = context.environment.environment_type == EnvironmentType::Container;
    let mut ports = Vec::new();
    if context.is_machine() {
        ports.push(("ssh", 22));
    }
    if context.environment.gui_enabled {
        ports.push((GUI, GUI_PORT));
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
    let (auth, sign_in) = login(context).unzip();
    let mut annotations = vec![
        (format!("{PREFIX}/proxy-read-timeout"), Some(TIMEOUT.to_owned())),
        (format!("{PREFIX}/proxy-send-timeout"), Some(TIMEOUT.to_owned())),
        (format!("{PREFIX}/auth-url"), auth),
        (format!("{PREFIX}/auth-signin"), sign_in),
    ];
    let target = context.ingress_path().1.map(str::to_owned);
    let (host, marked) = (own_host(context), context.named::<IngressKind>().and_then(marked_host));
    // An Ingress whose host changes may have the annotation of its former path.
    if target.is_some() || host != marked {
        annotations.push((format!("{PREFIX}/rewrite-target"), target));
    }
    annotations.extend(uploads(context));
    annotations.extend(mark(host, marked.is_some()));
    annotations
}

/// The annotations that let uploads of any size pass as they arrive, to set, or (`None`) to remove. A further one marks them
/// as ours: those of administrators stay.
fn uploads(context: &EnvironmentContext<'_>) -> Vec<(String, Option<String>)> {
    let (existing, is_on) = (context.named::<IngressKind>(), context.config.large_uploads);
    let has = |name: &str, value: &str| existing.and_then(|ingress| ingress.annotation(name)) == Some(value);
    let is_ours = has(LARGE_UPLOADS, "true");
    let annotations = UPLOADS.iter().map(|(name, value)| (format!("{PREFIX}/{name}"), *value));
    annotations
        .chain([(LARGE_UPLOADS.to_owned(), "true")])
        .filter(|(name, value)| is_on || (is_ours && has(name, value)))
        .map(|(name, value)| (name, is_on.then(|| value.to_owned())))
        .collect()
}

/// The URL that NGINX asks whether a request may pass, and the page that it redirects other users to; `None` without
/// authentication.
fn login(context: &EnvironmentContext<'_>) -> Option<(String, String)> {
    let config = context.config;
    let auth = match context.access() {
        AccessMode::None => return None,
        AccessMode::Daemon => {
            let login = &config.access.daemon;
            let sign_in = format!("{}?rd=https://$http_host$escaped_request_uri", login.sign_in_url);
            // Clients choose the header `Host`, so the URL says which machine gets the request. Without a label, the
            // login rejects all requests.
            let label = context.label().unwrap_or_default();
            return Some((format!("{}/{label}", login.auth_url.trim_end_matches('/')), sign_in));
        }
        AccessMode::Shared => config.instances_auth_url.clone(),
        AccessMode::PerInstance => access::url(&context.common_host(), context.observed.instance.uid()),
    };
    // The proxy returns to its own host unless it gets a whole URL.
    let host = if config.urls == Urls::Host { "https://$http_host" } else { "" };
    Some((format!("{auth}/auth"), format!("{auth}/start?rd={host}$escaped_request_uri")))
}

/// The host name of an environment, if it has a host name of its own.
fn own_host(context: &EnvironmentContext<'_>) -> Option<String> {
    context.host().filter(|_| context.config.urls == Urls::Host)
}

/// The host name that an Ingress or `HTTPRoute` was written with; `None` for the common one.
fn marked_host<T: Kind>(object: &Object<T>) -> Option<String> {
    object.annotation(MACHINE_HOST).map(str::to_owned)
}

/// The annotation with the host name, if it has to be set or removed.
fn mark(host: Option<String>, is_marked: bool) -> Option<(String, Option<String>)> {
    (host.is_some() || is_marked).then(|| (MACHINE_HOST.to_owned(), host))
}

/// The annotations of the `HTTPRoute` to set or to remove.
pub fn route_annotations(context: &EnvironmentContext<'_>) -> Option<(String, Option<String>)> {
    mark(own_host(context), context.named::<HttpRouteKind>().and_then(marked_host).is_some())
}

/// The enforced fields of an Ingress: its whole spec if its host changes, and otherwise its [`path_types`]. The store
/// holds few of these fields, so the annotation with the host name shows whether they are up to date.
pub fn enforced(context: &EnvironmentContext<'_>) -> Value {
    match context.named::<IngressKind>() {
        Some(existing) if marked_host(existing) != own_host(context) => ingress_of(context),
        _ => context.own::<IngressKind>().map_or(Value::Null, path_types),
    }
}

/// The enforced fields of an `HTTPRoute`: its host and its rules, if the host changes.
pub fn enforced_route(context: &EnvironmentContext<'_>) -> Value {
    let host = own_host(context);
    match context.named::<HttpRouteKind>() {
        Some(existing) if marked_host(existing) != host => {
            let hosts = host.map_or(Value::Null, |host| json!([host]));
            json!({"spec": {"hostnames": hosts, "rules": rules(context)}})
        }
        _ => Value::Null,
    }
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

/// The members of the Ingress of an environment. A host name of its own has the default certificate of the Ingress
/// controller, and the path of the login, whose requests the authentication answers.
pub fn ingress_of(context: &EnvironmentContext<'_>) -> Value {
    let (path, service) = (context.ingress_path().0, &context.name);
    match own_host(context) {
        None => ingress(&context.common_host(), &path, service, GUI),
        Some(host) => json!({"spec": {
            "tls": [{"hosts": [host]}],
            "rules": [{
                "host": host,
                "http": {"paths": [http_path(&path, service, GUI), http_path(LOGIN_PATH, service, GUI)]},
            }],
        }}),
    }
}

/// The members of an Ingress with one path to a port of a Service.
pub fn ingress(host: &str, path: &str, service: &str, port: &str) -> Value {
    json!({"spec": {
        "tls": [{"hosts": [host], "secretName": TLS_SECRET}],
        "rules": [{"host": host, "http": {"paths": [http_path(path, service, port)]}}],
    }})
}

/// A path of an Ingress to a port of a Service.
fn http_path(path: &str, service: &str, port: &str) -> Value {
    let type_ = if is_regex_path(path) { IMPLEMENTATION_SPECIFIC } else { "Prefix" };
    let backend = json!({"service": {"name": service, "port": {"name": port}}});
    json!({"path": path, "pathType": type_, "backend": backend})
}

/// The rules of the `HTTPRoute` of an environment: its path and, with a host name of its own, the path of the login.
fn rules(context: &EnvironmentContext<'_>) -> Vec<Value> {
    let rule = |path: &str| {
        json!({
            "matches": [{"path": {"type": "PathPrefix", "value": path}}],
            "backendRefs": [{"name": context.name, "port": GUI_PORT}],
            "timeouts": {"request": "3600s", "backendRequest": "3600s"},
        })
    };
    let mut main = rule(&context.base_path());
    if context.ingress_path().1.is_some() {
        main["filters"] = json!([{
            "type": "URLRewrite",
            "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": ""}},
        }]);
    }
    // A rule that rewrites a prefix may have only one match.
    std::iter::once(main).chain(own_host(context).map(|_| rule(LOGIN_PATH))).collect()
}

/// The members of the `HTTPRoute` of the Gateway API.
pub fn route(context: &EnvironmentContext<'_>) -> Value {
    let parents = context.config.gateway_api.parent_refs.iter();
    let parents = parents.map(|parent| json!({"name": parent.name, "namespace": parent.namespace}));
    let mut spec = json!({"parentRefs": parents.collect::<Vec<_>>(), "rules": rules(context)});
    if let Some(host) = own_host(context) {
        spec["hostnames"] = json!([host]);
    }
    json!({"spec": spec})
}

/// Whether the route has at least one Gateway, and all its Gateways have accepted it.
pub fn is_accepted(route: &HttpRoute) -> bool {
    let is_accepted =
        |condition: &RouteCondition| condition.type_ == "Accepted" && condition.status == "True";
    let mut parents = route.status.parents.iter();
    !route.status.parents.is_empty() && parents.all(|parent| parent.conditions.iter().any(is_accepted))
}
