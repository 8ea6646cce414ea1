//! The Service of an environment, and its Ingress or `HTTPRoute`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};
use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, IngressBackend, IngressRule, IngressServiceBackend, IngressSpec,
    IngressTLS, ServiceBackendPort,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::access;
use super::environment::{EnvironmentContext, wave};
use super::observe::Observed;
use crate::api::environment::EnvironmentType;
use crate::config::{AccessMode, InstanceConfig};
use crate::kinds::{
    HttpRoute, HttpRouteKind, IMPLEMENTATION_SPECIFIC, Ingress, IngressKind, ServiceKind, has_wrong_type,
    is_regex_path,
};
use crate::runtime::plan::{Desired, KindInfo, Manifest};

/// The port of the web interface.
pub const GUI_PORT: u16 = 6080;
/// The Secret with the TLS certificate of the web site. Administrators replicate it into every namespace of
/// a Tenant.
const TLS_SECRET: &str = "crownlabs-ingress-secret";
const TIMEOUT: &str = "3600";
const PREFIX: &str = "nginx.ingress.kubernetes.io";

/// The ports of the Service of an environment, in their order. Never empty.
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
    // The API server refuses a Service without ports.
    if container || ports.is_empty() {
        ports.push(("metrics", 9090));
    }
    ports
}

/// The Service.
pub fn service(observed: &Observed, context: &EnvironmentContext<'_>) -> Desired {
    let labels = context.service_labels();
    let exists = observed.own(&observed.children.services, &context.name).is_some();
    let build = || {
        let port = |(name, number): (&str, u16)| ServicePort {
            name: Some(name.to_owned()),
            protocol: Some("TCP".to_owned()),
            port: i32::from(number),
            target_port: Some(IntOrString::Int(i32::from(number))),
            ..ServicePort::default()
        };
        let spec = ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            selector: Some(context.selector()),
            ports: Some(ports(context).into_iter().map(port).collect()),
            ..ServiceSpec::default()
        };
        let metadata = context.metadata(&context.name, &labels);
        Manifest::new(KindInfo::of::<ServiceKind>(), &metadata, &json!({"spec": spec}))
    };
    Desired {
        labels: labels.clone(),
        ..context.desired(KindInfo::of::<ServiceKind>(), &context.name, wave::SERVICE, (!exists).then(build))
    }
}

/// The annotations of the Ingress: those to set, and (`None`) those to remove.
fn annotations(
    observed: &Observed,
    context: &EnvironmentContext<'_>,
    config: &InstanceConfig,
) -> BTreeMap<String, Option<String>> {
    let auth = match config.access.mode {
        _ if !context.is_standard() => None,
        AccessMode::Shared => Some(config.instances_auth_url.clone()),
        AccessMode::PerInstance => Some(access::url(&context.host(), observed.instance.uid())),
        AccessMode::None => None,
    };
    let guard = |rest: &str| auth.as_ref().map(|auth| format!("{auth}{rest}"));
    let mut annotations = BTreeMap::from([
        (format!("{PREFIX}/proxy-read-timeout"), Some(TIMEOUT.to_owned())),
        (format!("{PREFIX}/proxy-send-timeout"), Some(TIMEOUT.to_owned())),
        (format!("{PREFIX}/auth-url"), guard("/auth")),
        (format!("{PREFIX}/auth-signin"), guard("/start?rd=$escaped_request_uri")),
    ]);
    if let (_, Some(target)) = context.ingress_path() {
        annotations.insert(format!("{PREFIX}/rewrite-target"), Some(target.to_owned()));
    }
    annotations
}

/// The Ingress.
pub fn ingress(observed: &Observed, config: &InstanceConfig, context: &EnvironmentContext<'_>) -> Desired {
    let name = context.ingress_name();
    let (labels, annotations) = (context.labels(), annotations(observed, context, config));
    let existing = observed.own(&observed.children.ingresses, &name);
    let build = || {
        let spec = ingress_spec(&context.host(), context.ingress_path().0, &context.name, "gui");
        let mut metadata = context.metadata(&name, &labels);
        let set = annotations.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
        metadata.annotations = Some(set.collect());
        Manifest::new(KindInfo::of::<IngressKind>(), &metadata, &json!({"spec": spec}))
    };
    Desired {
        annotations: annotations.clone(),
        fields: existing.map_or(Value::Null, |existing| path_types(existing)),
        ..context.desired(
            KindInfo::of::<IngressKind>(),
            &name,
            wave::DEPENDENCIES,
            existing.is_none().then(build),
        )
    }
}

/// What is enforced of an Ingress that exists: the types of paths that are regular expressions. The NGINX Ingress controller
/// refuses every change of one with another type, which it had before; the paths stay as they are.
fn path_types(ingress: &Ingress) -> Value {
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

/// The spec of an Ingress with one path, which leads to a port of a Service.
pub fn ingress_spec(host: &str, path: String, service: &str, port: &str) -> IngressSpec {
    let type_ = if is_regex_path(&path) { IMPLEMENTATION_SPECIFIC } else { "Prefix" };
    let path = HTTPIngressPath {
        path: Some(path),
        path_type: type_.to_owned(),
        backend: IngressBackend {
            service: Some(IngressServiceBackend {
                name: service.to_owned(),
                port: Some(ServiceBackendPort { name: Some(port.to_owned()), number: None }),
            }),
            resource: None,
        },
    };
    IngressSpec {
        tls: Some(vec![IngressTLS {
            hosts: Some(vec![host.to_owned()]),
            secret_name: Some(TLS_SECRET.to_owned()),
        }]),
        rules: Some(vec![IngressRule {
            host: Some(host.to_owned()),
            http: Some(HTTPIngressRuleValue { paths: vec![path] }),
        }]),
        ..IngressSpec::default()
    }
}

/// The `HTTPRoute` of the Gateway API.
pub fn route(observed: &Observed, config: &InstanceConfig, context: &EnvironmentContext<'_>) -> Desired {
    let labels = context.labels();
    let exists = observed.own(&observed.children.routes, &context.name).is_some();
    let build = || {
        let rewrites = context.is_machine() && !context.classic || context.ingress_path().1.is_some();
        let rewrite = json!({
            "type": "URLRewrite",
            "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": ""}},
        });
        let mut rule = json!({
            "matches": [{"path": {"type": "PathPrefix", "value": context.base_path()}}],
            "backendRefs": [{"name": context.name, "port": GUI_PORT}],
            "timeouts": {"request": "3600s", "backendRequest": "3600s"},
        });
        if rewrites && let Some(rule) = rule.as_object_mut() {
            rule.insert("filters".to_owned(), json!([rewrite]));
        }
        let parents: Vec<Value> = config
            .gateway_api
            .parent_refs
            .iter()
            .map(|parent| json!({"name": parent.name, "namespace": parent.namespace}))
            .collect();
        let metadata = context.metadata(&context.name, &labels);
        let body = json!({"spec": {"parentRefs": parents, "rules": [rule]}});
        Manifest::new(KindInfo::of::<HttpRouteKind>(), &metadata, &body)
    };
    context.desired(KindInfo::of::<HttpRouteKind>(), &context.name, wave::DEPENDENCIES, (!exists).then(build))
}

/// Whether the route has at least one Gateway, and all its Gateways have accepted it.
pub fn is_accepted(route: &HttpRoute) -> bool {
    let accepted = |parent: &crate::kinds::RouteParentStatus| {
        parent.conditions.iter().any(|condition| condition.type_ == "Accepted" && condition.status == "True")
    };
    !route.status.parents.is_empty() && route.status.parents.iter().all(accepted)
}
