//! The people with whom an Instance is shared ([`crate::api::sharing`]): only its owner writes the annotation, and only
//! people of the same course can be in it.

use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use crate::api::denial::DenialReason;
use crate::api::labels::SHARED_WITH;
use crate::api::sharing::{LONGEST, Peer, course, is_enrolled, read};
use crate::api::{Instance, Template};
use crate::webhook::decision::Denial;
use crate::webhook::requester::{Bypass, Requester};
use crate::webhook::review::Request;
use crate::webhook::view::View;

/// Refuses a change of the annotation by other users than the owner, and new entries that are invalid. Stored entries may
/// stay, so that an owner can remove one person after another has left the course. Administrators and this daemon are
/// exempt.
pub fn check(request: &Request, bypass: &Bypass, view: &dyn View, now: Timestamp) -> Result<(), Denial> {
    let (old, new) = (annotation(&request.old_object), annotation(&request.object));
    if !request.is_write() || old == new || bypass.requester(&request.user_info) != Requester::Other {
        return Ok(());
    }
    let owner = view.tenant_of_namespace(&request.namespace);
    let Some(owner) = owner.filter(|owner| *owner == request.user_info.username) else {
        return Err(not_owner(&request.namespace));
    };
    if new.is_empty() {
        return Ok(());
    }
    let peers =
        read(new).map_err(|fault| Denial::malformed(format!("the annotation {SHARED_WITH}: {fault}")))?;
    let stored = read(old).unwrap_or_default();
    // The schema rejects an object that cannot be read.
    let template = Instance::deserialize(&*request.object).ok().and_then(|instance| {
        let reference = instance.spec.template_ref;
        view.template(&reference.namespace, &reference.name)
    });
    let mut added = peers.iter().filter(|peer| !stored.contains(peer));
    added.try_for_each(|peer| of_peer(peer, &owner, template.as_deref(), view, now))
}

/// Returns the annotation of an object; empty without one.
fn annotation(object: &Value) -> &str {
    object["metadata"]["annotations"][SHARED_WITH].as_str().unwrap_or_default()
}

fn not_owner(namespace: &str) -> Denial {
    let message = format!(
        "the annotation {SHARED_WITH} names the people with whom the owner shares the Instance: only the Tenant of the \
         namespace {namespace} may change it, so leave it as it is"
    );
    Denial::forbidden(message).because(DenialReason::SharedByOther, "")
}

/// Checks a new entry.
fn of_peer(
    peer: &Peer,
    owner: &str,
    template: Option<&Template>,
    view: &dyn View,
    now: Timestamp,
) -> Result<(), Denial> {
    let Peer { user, until, .. } = peer;
    let refused = |message: String| Denial::malformed(format!("the annotation {SHARED_WITH}: {message}"));
    if user == owner {
        return Err(refused(format!("{user} owns the Instance")).because(DenialReason::SharedWithOwner, ""));
    }
    let left = until.duration_since(now);
    if !left.is_positive() || left > LONGEST {
        let message = format!(
            "the end {until} for {user} must be in the future, and at most {} days ahead",
            LONGEST.as_hours() / 24
        );
        return Err(refused(message).because(DenialReason::SharedTooLong, ""));
    }
    let Some(course) = template.and_then(course) else {
        let message = "the Instance is for an exam, or belongs to no Workspace, so it cannot be shared with people of its \
                       Workspace";
        return Err(refused(message.to_owned()).because(DenialReason::SharedWithoutCourse, ""));
    };
    if view.tenant(user).is_some_and(|tenant| is_enrolled(&tenant, course)) {
        return Ok(());
    }
    // One message for both: it does not tell who has an account.
    let message = format!(
        "the annotation {SHARED_WITH}: {user} is not enrolled in Workspace {course}: an Instance is shared with people of its \
         Workspace"
    );
    Err(Denial::forbidden(message).because(DenialReason::SharedWithOutsider, user))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::sharing::{Access, MOST, written};
    use crate::fixtures::{now, time};
    use crate::webhook::fixture::{TestCluster, instance, merged, request};

    /// Ada, kim and lee are in the course tea. Tim manages it. Eve has asked to join it, and max is in another one.
    fn cluster() -> TestCluster {
        TestCluster::default()
            .with_namespace("tenant-ada", "ada")
            .with_tenant("ada", &["tea:user"])
            .with_tenant("kim", &["tea:user"])
            .with_tenant("lee", &["net:user", "tea:user"])
            .with_tenant("tim", &["tea:manager"])
            .with_tenant("eve", &["tea:candidate"])
            .with_tenant("max", &["net:user"])
            .with_template("workspace-tea", "lab", "tea", &[])
            .with_template("tenant-ada", "mine", "tea", &[])
    }

    fn bypass() -> Bypass {
        Bypass { groups: vec!["admins".to_owned()], own_user: "daemon".to_owned() }
    }

    fn peer(user: &str, until: &str) -> Peer {
        Peer { user: user.to_owned(), access: Access::View, until: time(until) }
    }

    fn tomorrow(user: &str) -> Peer {
        peer(user, "2026-03-05T00:00:00Z")
    }

    /// An Instance of a Template that is shared with these people.
    fn shared(template: &str, peers: &[Peer]) -> Value {
        with(template, &written(peers))
    }

    fn with(template: &str, annotation: &str) -> Value {
        let object = instance("tenant-ada", "vm", template, true);
        merged(object, &json!({"metadata": {"annotations": {SHARED_WITH: annotation}}}))
    }

    const LAB: &str = "workspace-tea/lab";

    fn none() -> Value {
        instance("tenant-ada", "vm", LAB, true)
    }

    /// Returns the message and the reason of a refusal; empty for an admission.
    fn refusal(user: &str, groups: &[&str], old: Value, new: Value) -> (String, Option<DenialReason>) {
        let mut asked = request(user, "instances", old, new);
        asked.user_info.groups.extend(groups.iter().map(|group| (*group).to_owned()));
        let denial = check(&asked, &bypass(), &cluster(), now()).err();
        let reason = |denial: &Denial| denial.causes.first().map(|cause| cause.reason);
        denial.map(|denial| (denial.message.clone(), reason(&denial))).unwrap_or_default()
    }

    #[test]
    fn only_the_owner_shares_an_instance() {
        let (one, two) = (|| shared(LAB, &[tomorrow("kim")]), || shared(LAB, &[tomorrow("lee")]));
        let manager: &[&str] = &["kubernetes:workspace-tea:manager"];
        for (user, groups, may) in [
            ("ada", &[][..], true),
            ("tim", manager, false),
            ("kim", &[], false),
            ("eve", &[], false),
            ("root", &["admins"], true),
            ("daemon", &[], true),
        ] {
            for (old, new) in [(none(), one()), (one(), two()), (one(), none()), (Value::Null, one())] {
                let (message, reason) = refusal(user, groups, old, new);
                let expected = (!may).then_some(DenialReason::SharedByOther);
                assert_eq!(reason, expected, "{user}: {message}");
            }
            // Other changes of a shared Instance are not concerned.
            let renamed = merged(one(), &json!({"spec": {"prettyName": "x"}}));
            assert_eq!(refusal(user, groups, one(), renamed).1, None, "{user}");
        }
    }

    #[test]
    fn an_instance_is_shared_with_people_of_its_course_until_an_end() {
        for (template, new, reason) in [
            (LAB, tomorrow("kim"), None),
            (LAB, tomorrow("lee"), None),
            (LAB, tomorrow("tim"), None),
            (LAB, tomorrow("ada"), Some(DenialReason::SharedWithOwner)),
            (LAB, tomorrow("eve"), Some(DenialReason::SharedWithOutsider)),
            (LAB, tomorrow("max"), Some(DenialReason::SharedWithOutsider)),
            (LAB, tomorrow("nobody"), Some(DenialReason::SharedWithOutsider)),
            (LAB, peer("kim", "2026-04-03T05:06:07Z"), None),
            (LAB, peer("kim", "2026-04-03T05:06:08Z"), Some(DenialReason::SharedTooLong)),
            (LAB, peer("kim", "2026-03-04T05:06:07Z"), Some(DenialReason::SharedTooLong)),
            ("tenant-ada/mine", tomorrow("kim"), Some(DenialReason::SharedWithoutCourse)),
            ("workspace-tea/gone", tomorrow("kim"), Some(DenialReason::SharedWithoutCourse)),
        ] {
            let (message, found) = refusal("ada", &[], none(), shared(template, std::slice::from_ref(&new)));
            assert_eq!(found, reason, "{template} {new:?}: {message}");
        }
        let outsider = refusal("ada", &[], none(), shared(LAB, &[tomorrow("max")])).0;
        assert_eq!(
            outsider,
            "the annotation crownlabs.polito.it/shared-with: max is not enrolled in Workspace tea: an Instance is shared with \
             people of its Workspace"
        );
        let unknown = refusal("ada", &[], none(), shared(LAB, &[tomorrow("nobody")])).0;
        assert_eq!(unknown, outsider.replace("max", "nobody"));
    }

    #[test]
    fn an_invalid_annotation_is_refused() {
        let many: Vec<Peer> = (0..=MOST).map(|number| tomorrow(&format!("p{number}"))).collect();
        for (annotation, words) in [
            ("kim".to_owned(), "expected a list in JSON"),
            (written(&many), "it names 11 people"),
            (written(&[tomorrow("kim"), tomorrow("kim")]), "it names kim twice"),
        ] {
            let (message, _) = refusal("ada", &[], none(), with(LAB, &annotation));
            assert!(message.contains(words), "{message}");
        }
        assert_eq!(refusal("ada", &[], none(), with(LAB, "")).0, "");
    }

    #[test]
    fn a_stored_entry_may_stay_when_another_one_changes() {
        // Max has left the course, and the time of kim is over.
        let stored = [tomorrow("max"), peer("kim", "2026-03-04T05:00:00Z")];
        let old = || shared(LAB, &stored);
        let [max, kim] = stored.clone();
        for peers in [vec![max.clone()], vec![kim.clone()], vec![max.clone(), kim, tomorrow("lee")]] {
            assert_eq!(refusal("ada", &[], old(), shared(LAB, &peers)).0, "", "{peers:?}");
        }
        let longer = peer("max", "2026-03-06T00:00:00Z");
        let found = refusal("ada", &[], old(), shared(LAB, &[longer])).1;
        assert_eq!(found, Some(DenialReason::SharedWithOutsider));
    }
}
