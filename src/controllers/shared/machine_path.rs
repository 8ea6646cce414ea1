//! The path of a machine's web interface, as gateways and the login of machines route it.

use crate::api::environment::{Environment, EnvironmentType};

/// The port of the web interface.
pub const GUI_PORT: u16 = 6080;

/// The URL path of the web interface of an environment, without a trailing slash. `classic` says that its objects are named
/// after the Instance alone.
pub fn base_path(uid: &str, environment: &Environment, classic: bool) -> String {
    let of_type = if environment.environment_type.is_vm() { "vnc" } else { "app" };
    let last = if classic { of_type } else { &*environment.name };
    format!("/instance/{uid}/{last}")
}

/// Whether a container gets requests without [`base_path`]. A virtual machine always does, except for the page of the web
/// site.
pub fn is_rewritten_for_container(environment: &Environment, classic: bool) -> bool {
    let is_standalone = environment.environment_type == EnvironmentType::Standalone;
    environment.rewrite_url && (is_standalone || !classic)
}

/// The path and query that an environment at a host of its own gets for those that a browser requests. `None` outside of
/// [`base_path`].
pub fn target_at_own_host(
    uid: &str,
    environment: &Environment,
    classic: bool,
    requested: &str,
) -> Option<String> {
    let rest = requested.strip_prefix(&base_path(uid, environment, classic))?;
    let is_machine = environment.environment_type.is_vm();
    if !rest.starts_with('/') && (is_machine || !rest.is_empty() && !rest.starts_with('?')) {
        return None;
    }
    if !is_machine && !is_rewritten_for_container(environment, classic) {
        return Some(requested.to_owned());
    }
    Some(if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn environment(of_type: &str, rewrites: bool) -> Environment {
        let value = json!({"name": "main", "image": "i", "environmentType": of_type, "rewriteURL": rewrites});
        serde_json::from_value(value).expect("an environment")
    }

    #[test]
    fn a_machine_gets_the_path_that_the_ingress_would_send() {
        for (of_type, rewrites, classic, requested, target) in [
            ("VirtualMachine", false, true, "/instance/u/vnc/websockify?a=b", Some("/websockify?a=b")),
            ("VirtualMachine", false, true, "/instance/u/vnc/", Some("/")),
            ("VirtualMachine", false, true, "/instance/u/vnc", None),
            ("VirtualMachine", false, true, "/instance/u/main/", None),
            ("VirtualMachine", false, false, "/instance/u/main//x", Some("//x")),
            ("Standalone", true, true, "/instance/u/app?a=b", Some("/?a=b")),
            ("Standalone", true, true, "/instance/u/app/a%2Fb", Some("/a%2Fb")),
            ("Standalone", false, true, "/instance/u/app/a", Some("/instance/u/app/a")),
            ("Standalone", false, true, "/instance/u/app", Some("/instance/u/app")),
            ("Container", true, true, "/instance/u/app/a", Some("/instance/u/app/a")),
            ("Container", true, false, "/instance/u/main/a", Some("/a")),
            ("Container", true, false, "/instance/u/mainly/a", None),
            ("Container", true, false, "/instance/v/main/a", None),
            ("Container", true, false, "/", None),
        ] {
            let environment = environment(of_type, rewrites);
            let found = target_at_own_host("u", &environment, classic, requested);
            assert_eq!(found.as_deref(), target, "{of_type} {rewrites} {classic} {requested}");
        }
    }
}
