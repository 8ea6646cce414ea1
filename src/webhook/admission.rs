//! The paths of the webhooks, with the rule of each.

use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;

use super::bounded::MOST_VALUES;
use super::decision::{Decision, Denial};
use super::instance::reservations::Reservations;
use super::instance::{managers, names, ports, quota, records, sharing, tenant_ref, times};
use super::lookup::Lookup;
use super::requester::{Bypass, Requester};
use super::review::Request;
use super::server::{Rule, Rules};
use super::tenant::{self, defaults, rules};
use super::view::View;
use super::{preserved, template, texts};
use crate::api::instance::InstanceKind;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::{GROUP, Kind};
use crate::config::{Managers, SwitchedOff};
use crate::runtime::clock;
use crate::runtime::store::Change;

/// Decides on a request that concerns a webhook.
type Decide = fn(&Admission, &Request, &dyn View) -> Decision;

/// The webhooks: the paths of each, the resources whose objects it reads, and its decision. The second path of the
/// Tenant webhooks is the path of the former operators.
const WEBHOOKS: [(&[&str], &[&str], Decide); 6] = [
    (&["/defaulter-v1alpha2-tenant", "/mutate-v1alpha2-tenant"], &[TenantKind::PLURAL], |of, request, _| {
        defaults::complete(request, &of.tenant)
    }),
    (
        &["/validator-v1alpha2-tenant", "/validate-v1alpha2-tenant"],
        &[TenantKind::PLURAL],
        |of, request, view| {
            of.with_switched_off(request, rules::validate(request, &of.tenant, view, clock::now()))
        },
    ),
    (&["/defaulter-v1alpha2-template"], &[TemplateKind::PLURAL], |_, request, _| {
        preserved::complete(request)
    }),
    (&["/validator-v1alpha2-instance"], &[InstanceKind::PLURAL], |of, request, view| {
        of.with_switched_off(request, of.admit_instance(request, view))
    }),
    (&["/validator-v1alpha2-template"], &[TemplateKind::PLURAL], |of, request, view| {
        of.with_switched_off(request, template::validate(request, &of.tenant.bypass, view))
    }),
    // Kinds without another webhook: texts are bounded, and disabled loops are reported.
    (&["/validator-texts"], &[SharedVolumeKind::PLURAL, InstanceSnapshotKind::PLURAL], |of, request, _| {
        of.with_switched_off(request, Decision::allowed())
    }),
];

/// The inputs of the rules: their settings, the view of the cluster, and recent admissions.
pub struct Admission {
    tenant: tenant::Settings,
    quota: quota::Settings,
    managers: Managers,
    off: SwitchedOff,
    lookup: Lookup,
    reservations: Mutex<Reservations>,
}

impl Admission {
    /// Creates the rules with these settings, evaluated with the objects that `lookup` finds.
    pub fn new(
        tenant: tenant::Settings,
        quota: quota::Settings,
        managers: Managers,
        off: SwitchedOff,
        lookup: Lookup,
    ) -> Self {
        Self { tenant, quota, managers, off, lookup, reservations: Mutex::default() }
    }

    /// The rules by path.
    pub fn rules(self: &Arc<Self>) -> Rules {
        let rules = |(paths, plurals, decide): (&'static [&str], _, _)| {
            paths.iter().map(move |path| (*path, self.rule(plurals, decide)))
        };
        WEBHOOKS.into_iter().flat_map(rules).collect()
    }

    /// Returns a rule for objects of these resources. `decide` is called for requests that concern them.
    fn rule(self: &Arc<Self>, plurals: &'static [&'static str], decide: Decide) -> Rule {
        let admission = Arc::clone(self);
        Arc::new(move |request| {
            let admission = Arc::clone(&admission);
            async move {
                let bypass = &admission.tenant.bypass;
                let refused = out_of_scope(&request, plurals).or_else(|| out_of_bounds(&request, bypass));
                match refused {
                    Some(decision) => decision,
                    None => admission.lookup.decide(|view| decide(&admission, &request, view)).await,
                }
            }
            .boxed()
        })
    }

    /// Adds a warning to the decision for each field of the object that the configuration turns off.
    fn with_switched_off(&self, request: &Request, decision: Decision) -> Decision {
        let is_ours = self.tenant.bypass.requester(&request.user_info) == Requester::Ourselves;
        if is_ours || !decision.is_allowed() || !writes_spec(request) {
            return decision;
        }
        let sentences = self.off.in_object(&request.resource.plural, &request.object);
        sentences.into_iter().fold(decision, Decision::with_warning)
    }

    /// Processes a change of an Instance in the store. Its reservation ends when the store shows it running, because it
    /// is counted there from then on, or when it is deleted.
    pub fn note(&self, change: &Change<InstanceKind>) {
        let mut reservations = self.reservations.lock();
        match (&change.old, &change.new) {
            (_, Some(instance)) => reservations.stored(instance),
            (Some(gone), None) => reservations.deleted(gone),
            (None, None) => {}
        }
    }

    /// Checks the Tenant, the name, the annotations and the public ports of an Instance, and returns warnings.
    fn check_instance(&self, request: &Request, view: &dyn View) -> Result<Vec<String>, Denial> {
        if !self.quota.is_exempt(request) {
            tenant_ref::check(request, view)?;
            names::check(request, self.quota.layout, view)?;
        }
        records::check(request, &self.tenant.bypass)?;
        times::check(request)?;
        sharing::check(request, &self.tenant.bypass, view, clock::now())?;
        ports::check(request, &self.tenant.bypass, view)
    }

    /// Validates the start of an Instance and reserves its quota under one lock, so that two requests cannot be
    /// admitted for the same free quota.
    fn admit_instance(&self, request: &Request, view: &dyn View) -> Decision {
        if self.managers == Managers::Course
            && let Err(denial) = managers::check(request, &self.tenant.bypass, view)
        {
            return Decision::denied(denial);
        }
        if !writes_spec(request) {
            return Decision::allowed();
        }
        let warnings = match self.check_instance(request, view) {
            Ok(warnings) => warnings,
            Err(denial) => return Decision::denied(denial),
        };
        let now = clock::now();
        // If a rule panics, the reservations stay unchanged.
        let mut reservations = self.reservations.lock();
        let pending = reservations.pending(view, now);
        let (decision, admitted) = quota::validate(request, &self.quota, view, &pending);
        if let Some(admitted) = admitted.filter(|_| !request.dry_run) {
            reservations.add(admitted, now);
        }
        drop(reservations);
        let obstacles = if decision.is_allowed() { obstacles(request, view) } else { Vec::new() };
        warnings.into_iter().chain(obstacles).fold(decision, Decision::with_warning)
    }
}

/// The obstacles for the Instance that a request starts. They may disappear, for example when an autoscaler adds a
/// node.
fn obstacles(request: &Request, view: &dyn View) -> Vec<String> {
    let started = quota::starting(request).ok().flatten();
    let template = started.and_then(|instance| {
        let reference = instance.spec.template_ref;
        view.template(&reference.namespace, &reference.name)
    });
    template.map(|template| view.obstacles(&template)).unwrap_or_default()
}

/// Whether a request creates an object or changes its spec. Of the rules, only the one for managers applies to others:
/// deletions, and changes of the status.
fn writes_spec(request: &Request) -> bool {
    request.is_write() && request.sub_resource.is_empty()
}

/// The decision on a request that no rule applies to. Objects of other resources are rejected; subresources are admitted,
/// except the status of Instances. `None` if the rule decides.
fn out_of_scope(request: &Request, plurals: &[&str]) -> Option<Decision> {
    let resource = &request.resource;
    if resource.group != GROUP || !plurals.contains(&&*resource.plural) {
        let what = format!("{}.{}", resource.plural, resource.group);
        return Some(Decision::denied(Denial::malformed(format!("this webhook has no rule for {what}"))));
    }
    let is_status = resource.plural == InstanceKind::PLURAL && request.sub_resource == "status";
    (!is_status && !request.sub_resource.is_empty()).then(Decision::allowed)
}

/// The decision on an object that is larger than the rules allow.
fn out_of_bounds(request: &Request, bypass: &Bypass) -> Option<Decision> {
    let checked = || too_large(request, bypass).or_else(|| too_long(request, bypass));
    writes_spec(request).then(checked).flatten()
}

/// The decision on an object with more values than the rules read. Only users who are exempt from the rules may write
/// it, such as an administrator who shortens it.
fn too_large(request: &Request, bypass: &Bypass) -> Option<Decision> {
    let which = match (request.object.is_too_large, request.old_object.is_too_large) {
        (false, false) => return None,
        (true, _) => "the object",
        (false, true) => "the stored object",
    };
    let message = format!("{which} has more than {MOST_VALUES} values");
    Some(match bypass.requester(&request.user_info) {
        Requester::Ourselves => Decision::allowed(),
        Requester::Administrator => Decision::allowed().with_warning(format!("{message}: it is not checked")),
        Requester::Other => Decision::denied(Denial::malformed(format!(
            "{message}: shorten it, or ask an administrator to change it"
        ))),
    })
}

/// Returns the refusal of new texts that are too long. Administrators and the daemon itself are exempt.
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
    fn only_administrators_may_write_an_object_with_too_many_values() {
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
            decision.expect("a decision").outcome.expect_err("a refusal").message
        };
        let message = refusal(decide("ada", long(), short().into()));
        assert!(message.starts_with("the object has more than 20000 values: "), "{message}");
        let message = refusal(decide("ada", short().into(), long()));
        assert!(message.starts_with("the stored object has more than 20000 values: "), "{message}");
        assert_eq!(decide("daemon", long(), long()), Some(Decision::allowed()));
        let admitted = decide("admin", short().into(), long()).expect("a decision");
        assert!(admitted.is_allowed() && admitted.warnings[0].ends_with("it is not checked"), "{admitted:?}");
    }
}
