//! The connection to the screen of a virtual machine: `KubeVirt`'s subresource `vnc`, which the API server passes on after it
//! has authorized the user.

use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::upgrade::Upgraded;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tracing::{info, warn};

use crate::api::Instance;
use crate::api::connection::Relation;
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::api::names::{CanonicalName, check_object_name};
use crate::api::tenant::Role;
use crate::controllers::dashboard::http::socket::End;
use crate::controllers::dashboard::live::watches::SignalledTenant;
use crate::controllers::dashboard::page_socket::Life;
use crate::runtime::ObjectKey;
use crate::runtime::client::Upgrade;
use crate::runtime::error::ApiError;

/// The subprotocol: the messages of the WebSocket have the bytes of the VNC server, unchanged.
pub const PROTOCOL: &str = "plain.kubevirt.io";
/// The API of the subresources.
const API: &str = "/apis/subresources.kubevirt.io/v1";

/// The screen that a page asks for.
pub struct Asked {
    /// The Instance; `None` if no object can have its name.
    pub machine: Option<ObjectKey>,
    /// The name of the environment.
    pub environment: String,
    /// Whether another viewer is disconnected: a screen has one.
    pub is_takeover: bool,
    /// The headers of the handshake.
    pub handshake: HeaderMap,
}

/// An open screen.
pub struct Screen {
    /// The Instance.
    pub machine: ObjectKey,
    /// Why the user may see it; `None` for the owner.
    pub relation: Option<Relation>,
    /// The connection to the VNC server.
    pub connection: Upgraded,
}

impl Asked {
    /// Returns the name of the machine in log lines.
    pub fn shown(&self) -> String {
        let machine = self.machine.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{machine}/{}", self.environment)
    }

    /// Opens the connection, with the credential of the user.
    ///
    /// # Errors
    /// Why there is no screen.
    pub async fn open(&self, life: &Life) -> Result<Screen, End> {
        let (client, user) = (&life.app.users.client, &life.user.credential);
        let key = self.machine.as_ref().ok_or(End::Denied)?;
        let instance = client.get::<InstanceKind>(user, key).await.map_err(|error| unread(&error))?;
        let machine = machine(&instance, &self.environment).ok_or(End::Denied)?;
        let path = path(&key.namespace, &machine, self.is_takeover);
        let tenant = life.app.shared.tenants.get("", &life.user.name);
        let relation = relation(&life.user.name, &instance, tenant.as_deref());
        let machine = self.shown();
        match client.upgrade(user, &path, self.handshake.clone()).await {
            Ok(Upgrade::Open(headers, connection)) if is_accepted(&self.handshake, &headers) => {
                Ok(Screen { machine: key.clone(), relation, connection })
            }
            Ok(Upgrade::Open(..)) => {
                warn!(machine, "the API server has not accepted {PROTOCOL} for a console");
                Err(End::Away)
            }
            Ok(Upgrade::Refused(code, why)) => {
                info!(user = life.user.name, machine, code = code.as_u16(), why, "no console");
                Err(refused(code, self.is_takeover))
            }
            Err(error) => {
                warn!(user = life.user.name, machine, %error, "no console");
                Err(unread(&error))
            }
        }
    }
}

/// Returns the headers of a handshake with `KubeVirt`: those of the browser without its extensions, cookies and origin.
pub fn handshake(browser: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in [SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION] {
        if let Some(value) = browser.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    headers
}

/// Whether a response accepts a handshake with our subprotocol, and without extensions.
fn is_accepted(handshake: &HeaderMap, answer: &HeaderMap) -> bool {
    let expected = handshake.get(SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    let accepted = answer.get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
    expected.as_ref().map(String::as_bytes) == accepted
        && answer.get(SEC_WEBSOCKET_PROTOCOL).is_some_and(|protocol| protocol == PROTOCOL)
        && !answer.contains_key("sec-websocket-extensions")
}

/// Returns the name of the `VirtualMachineInstance` of an environment; `None` if the Instance does not have the environment.
/// Users may write the status, so it only decides between the two possible names, and its names of environments may be
/// paths.
fn machine(instance: &Instance, environment: &str) -> Option<String> {
    let known = instance.status.environments.iter().find(|known| &*known.name == environment)?;
    let canonical = CanonicalName::of(instance.name());
    let is_alone = *known.service == *canonical;
    let name = if is_alone { canonical } else { canonical.environment(environment) };
    check_object_name(&name).is_ok().then(|| name.to_string())
}

/// Returns the relation of a user to a machine; `None` if it is in the namespace of the user. The daemon writes the role of a
/// Tenant in a course into its labels. A user who sees a screen without that role has the right of administrators.
fn relation(user: &str, instance: &Instance, tenant: Option<&SignalledTenant>) -> Option<Relation> {
    if CanonicalName::of(user).tenant_namespace() == instance.namespace() {
        return None;
    }
    let role = instance.label(labels::WORKSPACE).and_then(labels::workspace_role);
    let is_manager = role
        .is_some_and(|role| tenant.and_then(|tenant| tenant.label(&role)) == Some(Role::Manager.as_str()));
    Some(if is_manager { Relation::Manager } else { Relation::Administrator })
}

/// Returns the path of a screen.
fn path(namespace: &str, machine: &str, is_takeover: bool) -> String {
    let query = if is_takeover { "" } else { "?preserveSession=true" };
    format!("{API}/namespaces/{namespace}/virtualmachineinstances/{machine}/vnc{query}")
}

/// Returns the end for a response without a screen. `KubeVirt` responds with 503 if there is another viewer, with 404 or 409
/// while the machine does not run, and with 400 if it has no graphics.
fn refused(code: StatusCode, is_takeover: bool) -> End {
    match code.as_u16() {
        401 => End::SessionOver,
        403 => End::Denied,
        400 | 404 | 409 => End::NoScreen,
        503 if !is_takeover => End::Taken,
        _ => End::Away,
    }
}

/// Returns the end for an error of the API server.
fn unread(error: &ApiError) -> End {
    match error {
        ApiError::Forbidden(_) | ApiError::NotFound(_) => End::Denied,
        _ => End::Away,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_machine_has_the_name_of_the_instance_alone_or_with_the_environment() {
        for (service, environment, expected) in [
            ("exam-1", "main", Some("exam-1")),
            ("exam-1-main", "main", Some("exam-1-main")),
            // Not known yet, or written by the user.
            ("", "main", Some("exam-1-main")),
            ("other", "main", Some("exam-1-main")),
            ("exam-1", "other", None),
            ("exam-1", "../x", None),
        ] {
            let instance: Instance = serde_json::from_value(json!({
                "metadata": {"name": "exam.1", "namespace": "tenant-ada"},
                "status": {"environments": [{"name": "main", "service": service}]},
            }))
            .expect("an Instance");
            assert_eq!(machine(&instance, environment).as_deref(), expected, "{service} {environment}");
        }
    }

    #[test]
    fn an_environment_whose_name_is_a_path_has_no_machine() {
        for environment in ["x/../../other", "x?y", "x%2fy", "..", ""] {
            let instance: Instance = serde_json::from_value(json!({
                "metadata": {"name": "exam.1", "namespace": "tenant-ada"},
                "status": {"environments": [{"name": environment}]},
            }))
            .expect("an Instance");
            assert_eq!(machine(&instance, environment), None, "{environment}");
        }
    }

    #[test]
    fn a_viewer_is_the_owner_a_manager_of_the_course_or_an_administrator() {
        let tenant: SignalledTenant = serde_json::from_value(json!({"metadata": {"name": "eve", "labels": {
            "crownlabs.polito.it/workspace-tea": "manager", "crownlabs.polito.it/workspace-net": "user",
        }}}))
        .expect("a Tenant");
        for (user, course, tenant, expected) in [
            ("ada.rossi", Some("tea"), Some(&tenant), None),
            ("eve", Some("tea"), Some(&tenant), Some(Relation::Manager)),
            ("eve", Some("net"), Some(&tenant), Some(Relation::Administrator)),
            ("eve", Some("other"), Some(&tenant), Some(Relation::Administrator)),
            ("eve", None, Some(&tenant), Some(Relation::Administrator)),
            // Administrators need no Tenant.
            ("eve", Some("tea"), None, Some(Relation::Administrator)),
        ] {
            let labels = course.map(|course| json!({"crownlabs.polito.it/workspace": course}));
            let instance: Instance = serde_json::from_value(json!({
                "metadata": {"name": "vm", "namespace": "tenant-ada-rossi", "labels": labels},
                // Users write it.
                "spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": "eve"}},
            }))
            .expect("an Instance");
            assert_eq!(relation(user, &instance, tenant), expected, "{user} {course:?}");
        }
    }

    #[test]
    fn another_viewer_is_kept_unless_the_user_takes_over() {
        let screen = "/apis/subresources.kubevirt.io/v1/namespaces/tenant-ada/virtualmachineinstances/vm/vnc";
        assert_eq!(path("tenant-ada", "vm", false), format!("{screen}?preserveSession=true"));
        assert_eq!(path("tenant-ada", "vm", true), screen);
    }

    #[test]
    fn the_handshake_has_the_key_and_the_version_of_the_browser_and_nothing_else_of_it() {
        let browser = [
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", "plain.kubevirt.io, other"),
            ("sec-websocket-extensions", "permessage-deflate"),
            ("cookie", "__Host-crownlabs=secret"),
            ("origin", "https://labs.example.com"),
            ("authorization", "Bearer other"),
            ("impersonate-user", "root"),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in browser {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let sent = handshake(&headers);
        let mut found: Vec<String> =
            sent.iter().map(|(name, value)| format!("{name}: {}", value.to_str().expect("text"))).collect();
        found.sort_unstable();
        let expected = [
            "connection: Upgrade",
            "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
            "sec-websocket-protocol: plain.kubevirt.io",
            "sec-websocket-version: 13",
            "upgrade: websocket",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_a_response_with_the_key_and_the_protocol_is_accepted() {
        let asked = handshake(&HeaderMap::from_iter([(
            SEC_WEBSOCKET_KEY,
            HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="),
        )]));
        // The example of RFC 6455.
        let accept = ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let protocol = ("sec-websocket-protocol", PROTOCOL);
        let deflate = ("sec-websocket-extensions", "permessage-deflate");
        for (answer, expected) in [
            (&[accept, protocol][..], true),
            (&[accept], false),
            (&[protocol], false),
            (&[("sec-websocket-accept", "other"), protocol], false),
            (&[accept, ("sec-websocket-protocol", "other")], false),
            (&[accept, protocol, deflate], false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in answer {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            assert_eq!(is_accepted(&asked, &headers), expected, "{answer:?}");
        }
    }

    #[test]
    fn a_page_learns_why_there_is_no_screen() {
        for (code, is_takeover, expected) in [
            (401, false, End::SessionOver),
            (403, false, End::Denied),
            (400, false, End::NoScreen),
            (404, false, End::NoScreen),
            (409, true, End::NoScreen),
            (503, false, End::Taken),
            (503, true, End::Away),
            (500, false, End::Away),
            (302, false, End::Away),
        ] {
            let code = StatusCode::from_u16(code).expect("a code");
            assert_eq!(refused(code, is_takeover), expected, "{code} {is_takeover}");
        }
    }
}
