//! The paths of the webhooks, and the rule of each.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::bounded::MOST_VALUES;
use super::decision::{Decision, Denial};
use super::instance::reservations::Reservations;
use super::instance::{names, quota, records, tenant_ref};
use super::lookup::Lookup;
use super::requester::{Bypass, Requester};
use super::review::Request;
use super::server::{Rule, Rules};
use super::template;
use super::tenant::{self, defaults, rules};
use super::texts;
use super::view::View;
use crate::api::instance::InstanceKind;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::{GROUP, Kind};
use crate::runtime::clock;
use crate::runtime::store::Change;

/// What a webhook decides on a request that concerns it.
type Decide = fn(Arc<Admission>, Request) -> BoxFuture<'static, Decision>;

/// The webhooks: the paths of each, the resources whose objects it reads, and what it decides. The second path of those
/// of Tenants is that of the former operators.
const WEBHOOKS: [(&[&str], &[&str], Decide); 5] = [
    (
        &["/defaulter-v1alpha2-tenant", "/mutate-v1alpha2-tenant"],
        &[TenantKind::PLURAL],
        |admission, request| async move { defaults::complete(&request, &admission.tenant) }.boxed(),
    ),
    (
        &["/validator-v1alpha2-tenant", "/validate-v1alpha2-tenant"],
        &[TenantKind::PLURAL],
        |admission, request| async move { admission.validate_tenant(&request).await }.boxed(),
    ),
    (&["/validator-v1alpha2-instance"], &[InstanceKind::PLURAL], |admission, request| {
        async move { admission.validate_instance(&request).await }.boxed()
    }),
    (&["/validator-v1alpha2-template"], &[TemplateKind::PLURAL], |admission, request| {
        async move { admission.validate_template(&request).await }.boxed()
    }),
    // What no other webhook reads, and students and managers write: only its texts are bounded.
    (&["/validator-texts"], &[SharedVolumeKind::PLURAL, InstanceSnapshotKind::PLURAL], |_, _| {
        async { Decision::allowed() }.boxed()
    }),
];

/// All that the rules need: their settings, the view of the cluster, and the recent admissions.
pub struct Admission {
    tenant: tenant::Settings,
    instance: quota::Settings,
    lookup: Lookup,
    reservations: Mutex<Reservations>,
}

impl Admission {
    /// The rules with these settings, evaluated over the objects that `lookup` finds.
    pub fn new(tenant: tenant::Settings, instance: quota::Settings, lookup: Lookup) -> Self {
        Self { tenant, instance, lookup, reservations: Mutex::default() }
    }

    /// The rules by path.
    pub fn rules(self: &Arc<Self>) -> Rules {
        let webhooks = WEBHOOKS.into_iter();
        webhooks
            .flat_map(|(paths, plurals, decide)| paths.iter().map(move |path| (*path, plurals, decide)))
            .map(|(path, plurals, decide)| (path, self.rule(plurals, decide)))
            .collect()
    }

    /// A rule for objects of these resources; `decide` is called for requests that concern them.
    fn rule(self: &Arc<Self>, plurals: &'static [&'static str], decide: Decide) -> Rule {
        let admission = Arc::clone(self);
        Arc::new(move |request| {
            let bypass = &admission.tenant.bypass;
            let refused = out_of_scope(&request, plurals).or_else(|| too_large(&request, bypass));
            match refused.or_else(|| too_long(&request, bypass)) {
                Some(decision) => async { decision }.boxed(),
                None => decide(Arc::clone(&admission), request),
            }
        })
    }

    async fn validate_tenant(&self, request: &Request) -> Decision {
        let now = clock::now();
        self.lookup.decide(|view| rules::validate(request, &self.tenant, view, now)).await
    }

    async fn validate_template(&self, request: &Request) -> Decision {
        self.lookup.decide(|view| template::validate(request, &self.tenant.bypass, view)).await
    }

    async fn validate_instance(&self, request: &Request) -> Decision {
        self.lookup.decide(|view| self.admit_instance(request, view)).await
    }

    /// Takes note of a change of an Instance in the store. Its reservation ends when the store shows it
    /// running, so that it is counted there, or when it is deleted.
    pub fn note(&self, change: &Change<InstanceKind>) {
        let mut reservations = self.reservations.lock();
        match (&change.old, &change.new) {
            (_, Some(instance)) => reservations.stored(instance),
            (Some(gone), None) => reservations.deleted(gone),
            (None, None) => {}
        }
    }

    /// Validates the start of an Instance and reserves its quota under one lock, so that no two requests
    /// are admitted for the same free quota.
    fn admit_instance(&self, request: &Request, view: &dyn View) -> Decision {
        let checked = || {
            tenant_ref::check(request, view).and_then(|()| names::check(request, self.instance.layout, view))
        };
        if !self.instance.is_exempt(request)
            && let Err(denial) = checked()
        {
            return Decision::denied(denial);
        }
        if let Err(denial) = records::check(request, &self.tenant.bypass) {
            return Decision::denied(denial);
        }
        let now = clock::now();
        // A rule that panics leaves the reservations unchanged.
        let mut reservations = self.reservations.lock();
        let pending = reservations.pending(view, now);
        let (decision, admitted) = quota::validate(request, &self.instance, view, &pending);
        if let Some(admitted) = admitted.filter(|_| !request.dry_run) {
            reservations.add(admitted, now);
        }
        decision
    }
}

/// The decision on a request that no rule applies to: objects of other resources than these are refused, and
/// subresources, such as the status, are admitted. `None` if the rule decides.
fn out_of_scope(request: &Request, plurals: &[&str]) -> Option<Decision> {
    let resource = &request.resource;
    if resource.group != GROUP || !plurals.contains(&&*resource.plural) {
        let what = format!("{}.{}", resource.plural, resource.group);
        return Some(Decision::denied(Denial::malformed(format!("there is no rule for {what} here"))));
    }
    (!request.sub_resource.is_empty()).then(Decision::allowed)
}

/// The decision on an object with more values than the rules read: only those to whom the rules do not apply may write it,
/// among them the administrator who makes it shorter.
fn too_large(request: &Request, bypass: &Bypass) -> Option<Decision> {
    let which = match (request.object.is_too_large, request.old_object.is_too_large) {
        (false, false) => return None,
        (true, _) => "the object",
        (false, true) => "the object as it is stored",
    };
    let message = format!("{which} has more than {MOST_VALUES} values");
    Some(match bypass.requester(&request.user_info) {
        Requester::Ourselves => Decision::allowed(),
        Requester::Administrator => Decision::allowed().with_warning(format!("{message}: it is not checked")),
        Requester::Other => Decision::denied(Denial::malformed(format!(
            "{message}: it has to be shorter; an administrator may change it"
        ))),
    })
}

/// The refusal of new texts that are too long. The rule is for users, not for administrators and ourselves.
fn too_long(request: &Request, bypass: &Bypass) -> Option<Decision> {
    let is_bound = bypass.requester(&request.user_info) == Requester::Other;
    let is_tenant = request.resource.plural == TenantKind::PLURAL;
    let checked = is_bound.then(|| texts::check(&request.old_object, &request.object, is_tenant));
    checked?.err().map(Decision::denied)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::webhook::fixture::{request, tenant};

    #[test]
    fn long_texts_are_refused_to_users_and_not_to_administrators() {
        let bypass = Bypass { groups: vec!["admins".to_owned()], own_user: "daemon".to_owned() };
        let mut named = tenant("ada", &[]);
        named["spec"]["firstName"] = "a".repeat(1_000).into();
        let decide = |user: &str, group: &str| {
            let mut review = request(user, "tenants", tenant("ada", &[]), named.clone());
            review.user_info.groups.push(group.to_owned());
            too_long(&review, &bypass).is_some()
        };
        assert_eq!(
            (decide("ada", "x"), decide("boss", "admins"), decide("daemon", "x")),
            (true, false, false)
        );
    }

    #[test]
    fn an_object_with_too_many_values_is_up_to_administrators() {
        let bypass = Bypass { groups: vec!["admins".to_owned()], own_user: "daemon".to_owned() };
        let long = json!({"spec": {"publicKeys": vec![""; MOST_VALUES]}});
        let long = || serde_json::from_value(long.clone()).expect("an object");
        let short = || tenant("ada", &[]);
        let decide = |user: &str, object, old_object| {
            let mut review = request(user, "tenants", Value::Null, short());
            (review.object, review.old_object) = (object, old_object);
            if user == "admin" {
                review.user_info.groups.push("admins".to_owned());
            }
            too_large(&review, &bypass)
        };
        assert_eq!(decide("ada", short().into(), short().into()), None);
        let refusal = |decision: Option<Decision>| {
            decision.expect("a decision").outcome.expect_err("a refusal").message().clone()
        };
        let message = refusal(decide("ada", long(), short().into()));
        assert!(message.starts_with("the object has more than 20000 values: "), "{message}");
        let message = refusal(decide("ada", short().into(), long()));
        assert!(message.starts_with("the object as it is stored has more than 20000 values: "), "{message}");
        assert_eq!(decide("daemon", long(), long()), Some(Decision::allowed()));
        let admitted = decide("admin", short().into(), long()).expect("a decision");
        assert!(admitted.is_allowed() && admitted.warnings[0].ends_with("it is not checked"), "{admitted:?}");
    }
}
