//! The people with whom the owner of an Instance shares it. The web terminal and the login of machines ask this at each
//! opening, and every few seconds about each open connection.

use jiff::Timestamp;

use crate::api::sharing::{self, Access};
use crate::api::{Instance, Template, Tenant};

/// The right of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAccess {
    /// What the peer may do.
    pub access: Access,
    /// The end of the right.
    pub until: Timestamp,
}

/// Returns the right of a Tenant on the machines of an Instance that its owner shares, where `template` is the Template of
/// the Instance; `None` if there is none now. Only the enrolment in the spec of the Tenant counts: users may patch the
/// labels of their own Tenant, while the webhook guards `spec.workspaces`. The caller checks whether the session of the
/// user has ended.
pub fn peer(instance: &Instance, template: &Template, tenant: &Tenant, now: Timestamp) -> Option<PeerAccess> {
    let is_ending = instance.is_terminating() || tenant.is_terminating();
    let course = sharing::course(template).filter(|_| !is_ending)?;
    let named = sharing::peers(instance).into_iter().find(|peer| peer.user == tenant.name());
    let current = named.filter(|peer| peer.is_current(now) && sharing::is_enrolled(tenant, course))?;
    Some(PeerAccess { access: current.access, until: current.until })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::{now, object, time};
    use crate::runtime::merge;

    const END: &str = "2026-03-04T23:00:00Z";

    /// An Instance of ada that is shared with kim (who controls), lee and max (who look on), and its Template.
    fn shared() -> (Value, Value) {
        let peers = json!([
            {"user": "kim", "access": "control", "until": END},
            {"user": "lee", "access": "view", "until": END},
            {"user": "max", "access": "view", "until": END},
        ]);
        let instance = json!({
            "metadata": {"name": "vm", "namespace": "tenant-ada", "uid": "u", "annotations": {
                "crownlabs.polito.it/shared-with": peers.to_string(),
            }},
            "spec": {"template.crownlabs.polito.it/TemplateRef": {"name": "lab", "namespace": "workspace-tea"}},
        });
        let template = json!({
            "metadata": {"name": "lab", "namespace": "workspace-tea"},
            "spec": {"workspace.crownlabs.polito.it/WorkspaceRef": {"name": "tea"}},
        });
        (instance, template)
    }

    fn tenant(name: &str, role: &str) -> Value {
        // A label that the user has written.
        json!({
            "metadata": {"name": name, "labels": {"crownlabs.polito.it/workspace-tea": "user"}},
            "spec": {"workspaces": [{"name": "tea", "role": role}]},
        })
    }

    fn changed(mut object: Value, patch: &Value) -> Value {
        merge::apply(&mut object, patch);
        object
    }

    /// Returns what the Tenant may do at a time.
    fn access(instance: &Value, template: &Value, tenant: &Value, now: Timestamp) -> Option<Access> {
        peer(&object(instance), &object(template), &object(tenant), now).map(|peer| peer.access)
    }

    #[test]
    fn a_peer_is_named_in_time_and_enrolled_in_the_course_of_the_machine() {
        let (instance, template) = shared();
        let of = |tenant: &Value| access(&instance, &template, tenant, now());
        assert_eq!(of(&tenant("kim", "user")), Some(Access::Control));
        assert_eq!(of(&tenant("lee", "manager")), Some(Access::View));
        for (who, tenant) in [
            ("a person who is not named", tenant("eve", "user")),
            ("a person who has asked to join", tenant("kim", "candidate")),
            (
                "a person who left the course",
                changed(tenant("kim", "user"), &json!({"spec": {"workspaces": null}})),
            ),
            (
                "a person of another course",
                changed(
                    tenant("kim", "user"),
                    &json!({"spec": {"workspaces": [{"name": "net", "role": "user"}]}}),
                ),
            ),
            (
                "a Tenant that is being deleted",
                changed(
                    tenant("kim", "user"),
                    &json!({"metadata": {"deletionTimestamp": "2026-03-04T05:00:00Z"}}),
                ),
            ),
        ] {
            assert_eq!(of(&tenant), None, "{who}");
        }
        assert_eq!(access(&instance, &template, &tenant("kim", "user"), time(END)), None, "the end");
    }

    #[test]
    fn a_machine_that_is_deleted_or_has_no_course_has_no_peers() {
        let (instance, template) = shared();
        let kim = tenant("kim", "user");
        let deleted =
            changed(instance.clone(), &json!({"metadata": {"deletionTimestamp": "2026-03-04T05:00:00Z"}}));
        assert_eq!(access(&deleted, &template, &kim, now()), None);
        let personal = changed(template.clone(), &json!({"metadata": {"namespace": "tenant-ada"}}));
        assert_eq!(access(&instance, &personal, &kim, now()), None);
        let removed = changed(instance, &json!({"metadata": {"annotations": null}}));
        assert_eq!(access(&removed, &template, &kim, now()), None);
    }

    #[test]
    fn the_right_ends_at_the_end_of_the_entry() {
        let (instance, template) = shared();
        let found = peer(&object(&instance), &object(&template), &object(tenant("kim", "user")), now());
        assert_eq!(found, Some(PeerAccess { access: Access::Control, until: time(END) }));
    }
}
