//! The rules behind their paths.

use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::decision::{Decision, Denial};
use super::instance::quota;
use super::instance::reservations::Reservations;
use super::lookup::Lookup;
use super::review::Request;
use super::server::{Rule, Rules};
use super::tenant::{self, defaults, rules};
use super::view::View;
use crate::api::instance::InstanceKind;
use crate::api::tenant::TenantKind;
use crate::api::{GROUP, Kind};
use crate::runtime::clock;
use crate::runtime::store::Change;

/// Completes Tenants; the second name is that of clusters before the operators were one.
pub const TENANT_DEFAULTS: [&str; 2] = ["/defaulter-v1alpha2-tenant", "/mutate-v1alpha2-tenant"];
/// Judges Tenants; the second name is that of clusters before the operators were one.
pub const TENANT_RULES: [&str; 2] = ["/validator-v1alpha2-tenant", "/validate-v1alpha2-tenant"];
/// Judges Instances.
pub const INSTANCE_RULES: &str = "/validator-v1alpha2-instance";

/// Everything that a review is judged by.
pub struct Admission {
    tenant: tenant::Settings,
    instance: quota::Settings,
    lookup: Lookup,
    reservations: Mutex<Reservations>,
}

impl Admission {
    /// The rules with these settings, over what `lookup` finds.
    pub fn new(tenant: tenant::Settings, instance: quota::Settings, lookup: Lookup) -> Self {
        Self { tenant, instance, lookup, reservations: Mutex::default() }
    }

    /// The rules by path.
    pub fn rules(self: Arc<Self>) -> Rules {
        let mut rules = Rules::new();
        for path in TENANT_DEFAULTS {
            rules.insert(
                path,
                self.rule::<TenantKind>(|admission, request| {
                    async move { defaults::complete(&request, &admission.tenant) }.boxed()
                }),
            );
        }
        for path in TENANT_RULES {
            rules.insert(
                path,
                self.rule::<TenantKind>(|admission, request| {
                    async move { admission.judge_tenant(&request).await }.boxed()
                }),
            );
        }
        rules.insert(
            INSTANCE_RULES,
            self.rule::<InstanceKind>(|admission, request| {
                async move { admission.judge_instance(&request).await }.boxed()
            }),
        );
        rules
    }

    fn rule<T: Kind>(
        self: &Arc<Self>,
        judge: fn(Arc<Self>, Request) -> BoxFuture<'static, Decision>,
    ) -> Rule {
        let admission = Arc::clone(self);
        Arc::new(move |request| match out_of_scope::<T>(&request) {
            Some(decision) => async { decision }.boxed(),
            None => judge(Arc::clone(&admission), request),
        })
    }

    async fn judge_tenant(&self, request: &Request) -> Decision {
        let now = clock::now();
        self.lookup.decide(|view| rules::judge(request, &self.tenant, view, now)).await
    }

    async fn judge_instance(&self, request: &Request) -> Decision {
        self.lookup.decide(|view| self.start(request, view)).await
    }

    /// Takes note of a change of an Instance in the store: once it runs there or is gone from there,
    /// the store says all there is to say of it.
    pub fn note(&self, change: &Change<InstanceKind>) {
        let says_all = change.new.as_ref().is_none_or(|instance| instance.spec.running);
        if let Some(instance) = change.object().filter(|_| says_all) {
            let mut reservations = self.reservations.lock().unwrap_or_else(PoisonError::into_inner);
            reservations.seen(instance.namespace(), instance.name());
        }
    }

    /// Judges and takes note in one step, so that no two requests count on the same free share.
    fn start(&self, request: &Request, view: &dyn View) -> Decision {
        let now = clock::now();
        // A rule that panics leaves the reservations as they were.
        let mut reservations = self.reservations.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = reservations.pending(view, now);
        let (decision, admitted) = quota::judge(request, &self.instance, view, &pending);
        if let Some(admitted) = admitted.filter(|_| !request.dry_run) {
            reservations.add(admitted, now);
        }
        decision
    }
}

/// What is asked at the wrong path is refused; parts of an object, such as its status, have no rules.
fn out_of_scope<T: Kind>(request: &Request) -> Option<Decision> {
    let resource = &request.resource;
    if resource.group != GROUP || resource.resource != T::PLURAL {
        let what = format!("{}.{}", resource.resource, resource.group);
        return Some(Decision::denied(Denial::malformed(format!("there is no rule for {what} here"))));
    }
    (!request.sub_resource.is_empty()).then(Decision::allowed)
}
