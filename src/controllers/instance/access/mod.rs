//! The OAuth2 proxy of an Instance with `access.mode: perInstance`: Deployment, Service, Ingress and Secret.
//!
//! The annotations of an environment's Ingress make the Ingress controller ask the proxy, for each request, whether the
//! user may pass. Users log in at the proxy itself, under a path below the path of the Instance. While the proxy does
//! not exist, access is denied.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use super::children::{wave, whole_data};
use super::environment::EnvironmentContext;
use super::exposure;
use super::mounts::decoded;
use super::observe::Observed;
use super::plan::Plan;
use crate::api::parts::OAUTH2_PROXY;
use crate::api::{Kind, Object, labels, reason};
use crate::config::{AccessMode, InstanceConfig};
use crate::controllers::shared::children::{Child, Parent};
use crate::controllers::shared::{entrance, pod_security};
use crate::kinds::{DeploymentKind, IngressKind, SecretKind, ServiceKind};
use crate::runtime::component::Component;
use crate::runtime::plan::{Desired, Removal, to_value};
use crate::runtime::problem::Problem;

/// The component label of the proxy, and the suffix of the names of its objects.
const COMPONENT: &str = OAUTH2_PROXY.suffix;
/// The component of the proxy in the plan.
pub const PROXY: Component = Component::Part(COMPONENT);
/// The last part of the proxy's path. No environment can have this name, because names of environments have no
/// underscore.
const PREFIX: &str = "_oauth2";
/// The name and the number of its port.
const PORT: (&str, u16) = ("http", 4180);
/// The key of the Secret with the encryption key for cookies.
const COOKIE_KEY: &str = "cookie-secret";
/// The key of the Secret with the secret of the client.
const CLIENT_SECRET: &str = "client-secret";
/// The key of the Secret with the permitted users, one per line.
const USERS: &str = "users";
/// The folder with [`CLIENT_SECRET`] and [`USERS`] in the container. The proxy reloads both when they change.
const FOLDER: &str = "/etc/oauth2-proxy";
/// The claim with the name of a user, which is the name of the Tenant.
const USER_CLAIM: &str = "preferred_username";
/// The length of a cookie key, in bytes: AES-256.
const KEY_LENGTH: usize = 32;

/// The inputs of proxies besides the configuration.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("ProxySecrets")]
pub struct ProxySecrets {
    /// The secret of the client; `None` if its file cannot be read.
    pub client_secret: Option<Arc<str>>,
    /// A new cookie key for an Instance without one; `None` if the system has no random numbers.
    pub new_key: Option<String>,
}

impl ProxySecrets {
    /// Creates the inputs, with a new random key.
    pub fn new(client_secret: Option<Arc<str>>) -> Self {
        let mut bytes = [0; KEY_LENGTH];
        let filled = SystemRandom::new().fill(&mut bytes);
        Self { client_secret, new_key: filled.is_ok().then(|| URL_SAFE.encode(bytes)) }
    }
}

/// The URL path of the proxy of the Instance with this uid.
fn path(uid: &str) -> String {
    format!("/instance/{uid}/{PREFIX}")
}

/// The URL of the proxy of the observed Instance, which authenticates the users of an environment.
pub fn url(host: &str, uid: &str) -> String {
    format!("https://{host}{}", path(uid))
}

/// The path of the login; the path of the page to return to is appended.
pub fn login(uid: &str) -> String {
    format!("{}/start?rd=", path(uid))
}

/// Plans the proxy of an Instance if one of its environments needs it, and its removal otherwise. A stopped Instance
/// keeps only the Secret, so that users stay logged in.
pub fn plan(
    observed: &Observed,
    config: &InstanceConfig,
    contexts: &[&EnvironmentContext<'_>],
    plan: &mut Plan,
) {
    let guarded = contexts.iter().find(|context| is_guarded(context));
    let running = guarded.filter(|_| observed.instance.spec.running);
    if running.is_none() {
        plan.remove.extend(removals::<DeploymentKind>(observed));
        plan.remove.extend(removals::<ServiceKind>(observed));
        plan.remove.extend(removals::<IngressKind>(observed));
    }
    if guarded.is_none() {
        plan.remove.extend(removals::<SecretKind>(observed));
    }
    let Some(context) = running else { return };
    match Proxy::new(observed, config, context) {
        Ok(proxy) => {
            plan.ensure.extend([proxy.service(), proxy.secret(), proxy.ingress(), proxy.deployment()]);
        }
        Err(problem) => plan.problems.push(problem),
    }
}

/// Whether users of an environment must log in at the proxy. This applies if it is neither an exam nor an
/// exercise and has a web interface, or still has an Ingress from a former web interface.
fn is_guarded(context: &EnvironmentContext<'_>) -> bool {
    context.access() == AccessMode::PerInstance
        && (context.environment.gui_enabled || context.own::<IngressKind>().is_some())
}

/// The name of the proxy's objects; `None` if an environment needs no proxy.
pub fn name(context: &EnvironmentContext<'_>) -> Option<String> {
    is_guarded(context).then(|| context.observed.canonical().part(&OAUTH2_PROXY))
}

/// Describes an object of another owner that has the name of one of the proxy's objects, if an environment
/// needs the proxy and it does not exist yet.
pub fn conflict(context: &EnvironmentContext<'_>) -> Option<String> {
    let name = name(context)?;
    if context.observed.own::<ServiceKind>(&name).is_some() {
        return None;
    }
    let kinds: [fn(&EnvironmentContext<'_>, &str) -> Option<String>; 4] =
        [foreign::<ServiceKind>, foreign::<SecretKind>, foreign::<IngressKind>, foreign::<DeploymentKind>];
    kinds.into_iter().find_map(|foreign| foreign(context, &name))
}

/// Describes the object of a kind with this name if the Instance is not its controller.
fn foreign<T: Kind>(context: &EnvironmentContext<'_>, name: &str) -> Option<String> {
    let is_own = context.observed.own::<T>(name).is_some();
    if is_own { None } else { context.parent.conflict::<T>(name) }
}

/// The removals of the proxy's objects.
fn removals<T: Kind>(observed: &Observed) -> Vec<Removal> {
    let of_proxy = |object: &&Object<T>| {
        object.is_controlled_by(&observed.instance)
            && object.label(labels::COMPONENT) == Some(COMPONENT)
            && !object.is_terminating()
    };
    observed.children.of::<T>().filter(of_proxy).map(|object| Removal::of(object, PROXY)).collect()
}

/// The proxy of an Instance.
struct Proxy<'a> {
    observed: &'a Observed,
    config: &'a InstanceConfig,
    parent: Parent<'a>,
    /// The name of its objects.
    name: String,
    /// The host name of the environments that it protects.
    host: String,
    /// The data of its Secret, in base64.
    data: BTreeMap<&'static str, Value>,
    /// Whether the Secret already has a cookie key, which is kept.
    has_key: bool,
}

impl<'a> Proxy<'a> {
    /// Creates the proxy. The error is the problem that a secret is missing.
    fn new(
        observed: &'a Observed,
        config: &'a InstanceConfig,
        context: &EnvironmentContext<'_>,
    ) -> Result<Self, Problem> {
        let instance = &observed.instance;
        let name = observed.canonical().part(&OAUTH2_PROXY);
        let missing = |what: &str| {
            let message = format!("the OAuth2 proxy waits: {what}; users cannot log in until then");
            Problem::waiting(PROXY, reason::OAUTH2_PROXY_WAITS, message)
        };
        let secrets = &observed.proxy;
        let file = &config.access.oauth2_proxy.client_secret_file;
        let client_secret = secrets
            .client_secret
            .as_deref()
            .ok_or_else(|| missing(&format!("the client secret file {file} cannot be read, or is empty")))?;
        let existing = observed.own::<SecretKind>(&name);
        let key = existing.and_then(|secret| decoded(secret.spec.get(COOKIE_KEY)?)).filter(|key| is_key(key));
        let has_key = key.is_some();
        let key = key.or_else(|| secrets.new_key.clone());
        let key = key.ok_or_else(|| missing("the daemon's system has no random numbers"))?;
        let encoded = |text: String| to_value(&k8s_openapi::ByteString(text.into_bytes()));
        let labels = [(labels::COMPONENT, COMPONENT), (labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE)];
        Ok(Self {
            observed,
            config,
            parent: Parent::new(instance, labels::of_instance(instance))
                .with(&labels)
                .seeing(&observed.children),
            name,
            host: context.common_host(),
            data: BTreeMap::from([
                (COOKIE_KEY, encoded(key)),
                (CLIENT_SECRET, encoded(client_secret.to_owned())),
                (USERS, encoded(users(observed))),
            ]),
            has_key,
        })
    }

    fn child<'c, T: Kind>(&'c self, wave: u8, body: impl FnOnce() -> Value + 'c) -> Child<'c> {
        self.parent.child::<T>(&self.name, &PROXY, wave, body)
    }

    /// The labels of its pods. They differ from the labels of environments' pods, so that no Service, network policy or
    /// status confuses the two.
    fn selector(&self) -> Value {
        json!({labels::OAUTH2_PROXY: self.observed.instance.name()})
    }

    fn service(&self) -> Desired {
        let (port, number) = PORT;
        let spec = || {
            json!({"spec": {
                "type": "ClusterIP",
                "selector": self.selector(),
                "ports": [{"name": port, "protocol": "TCP", "port": number, "targetPort": number}],
            }})
        };
        self.child::<ServiceKind>(wave::SERVICE, spec).made()
    }

    /// The Secret. All of `data` is enforced; an existing cookie key is kept.
    fn secret(&self) -> Desired {
        let existing = self.observed.own::<SecretKind>(&self.name);
        let mut enforced = whole_data(to_value(&self.data), existing);
        // A Secret that is missing in the store may have a key, too.
        if let Some(enforced) = enforced.as_object_mut().filter(|_| self.has_key || existing.is_none()) {
            enforced.remove(COOKIE_KEY);
        }
        let body = || json!({"type": "Opaque", "data": self.data});
        self.child::<SecretKind>(wave::DEPENDENCIES, body).fields(json!({"data": enforced})).made()
    }

    fn ingress(&self) -> Desired {
        let path = path(self.observed.instance.uid());
        let body = || exposure::ingress(&self.host, &path, &self.name, PORT.0);
        self.child::<IngressKind>(wave::DEPENDENCIES, body).made()
    }

    /// The Deployment. An annotation contains the digest of its pod template. If the configuration changes, the
    /// template is replaced.
    fn deployment(&self) -> Desired {
        let template = json!({"metadata": {"labels": self.selector()}, "spec": self.pod()});
        let digest = digest::digest(&digest::SHA256, template.to_string().as_bytes());
        let digest = URL_SAFE.encode(digest.as_ref());
        let existing = self.observed.own::<DeploymentKind>(&self.name);
        let applied = existing.and_then(|existing| existing.annotation(labels::POD_TEMPLATE));
        let mut fields = json!({"spec": {"replicas": 1}});
        if applied != Some(&*digest) {
            fields["spec"]["template"] = template.clone();
        }
        let spec = || {
            json!({"spec": {
                "replicas": 1,
                "selector": {"matchLabels": self.selector()},
                "strategy": {"type": "Recreate"},
                "template": template,
            }})
        };
        let child = self.child::<DeploymentKind>(wave::WORKLOAD, spec);
        child.annotated([(labels::POD_TEMPLATE.to_owned(), Some(digest))]).fields(fields).made()
    }

    fn pod(&self) -> Value {
        let (port, number) = PORT;
        let key = json!({"secretKeyRef": {"name": self.name, "key": COOKIE_KEY}});
        let mut security = pod_security::container();
        security["readOnlyRootFilesystem"] = true.into();
        let files = [CLIENT_SECRET, USERS].map(|key| json!({"key": key, "path": key}));
        json!({
            "containers": [{
                "name": COMPONENT,
                "image": self.config.access.oauth2_proxy.image,
                "args": self.arguments(),
                "env": [{"name": "OAUTH2_PROXY_COOKIE_SECRET", "valueFrom": key}],
                "ports": [{"name": port, "containerPort": number, "protocol": "TCP"}],
                "readinessProbe": {"httpGet": {"path": "/ping", "port": port}, "periodSeconds": 2},
                // The ResourceQuota of the namespace counts the resources.
                "resources": {
                    "requests": {"cpu": "10m", "memory": "25Mi"},
                    "limits": {"cpu": "50m", "memory": "100Mi"},
                },
                "securityContext": security,
                "volumeMounts": [{"name": "secrets", "mountPath": FOLDER, "readOnly": true}],
            }],
            "volumes": [{"name": "secrets", "secret": {"secretName": self.name, "items": files}}],
            "securityContext": pod_security::pod(pod_security::USER),
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 10,
        })
    }

    /// The arguments of the proxy. They contain no secrets.
    fn arguments(&self) -> Vec<String> {
        let uid = self.observed.instance.uid();
        let proxy = &self.config.access.oauth2_proxy;
        vec![
            format!("--http-address=0.0.0.0:{}", PORT.1),
            "--reverse-proxy=true".to_owned(),
            // The proxy only decides whether a user may pass. It never forwards a request.
            "--upstream=static://202".to_owned(),
            "--provider=oidc".to_owned(),
            format!("--oidc-issuer-url={}", proxy.issuer_url.trim_end_matches('/')),
            format!("--client-id={}", proxy.client_id),
            format!("--client-secret-file={FOLDER}/{CLIENT_SECRET}"),
            "--scope=openid profile".to_owned(),
            "--code-challenge-method=S256".to_owned(),
            "--skip-provider-button=true".to_owned(),
            // The proxy compares the name of the user instead of an e-mail address.
            format!("--oidc-email-claim={USER_CLAIM}"),
            format!("--authenticated-emails-file={FOLDER}/{USERS}"),
            format!("--proxy-prefix={}", path(uid)),
            format!("--redirect-url={}/callback", url(&self.host, uid)),
            "--cookie-name=_oauth2_instance".to_owned(),
            format!("--cookie-path=/instance/{uid}"),
            "--cookie-expire=24h".to_owned(),
            "--cookie-samesite=lax".to_owned(),
            "--session-cookie-minimal=true".to_owned(),
        ]
    }
}

/// Whether a text is a cookie key in the format of [`ProxySecrets::new`].
fn is_key(text: &str) -> bool {
    URL_SAFE.decode(text).is_ok_and(|bytes| bytes.len() == KEY_LENGTH)
}

/// The permitted users. The plan is made only if the namespace belongs to the Instance's Tenant or to no Tenant.
fn users(observed: &Observed) -> String {
    let owner = observed.instance.spec.tenant_ref.name.as_str();
    let users: Vec<&str> = entrance::users([owner], &observed.managers).into_iter().collect();
    users.join("\n") + "\n"
}

#[cfg(test)]
mod tests;
