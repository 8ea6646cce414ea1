//! One pass over the exposure of an Instance: observe, wish, allocate, apply, report.

use std::sync::Arc;
use std::time::Duration;

use super::Settings;
use super::observe::{Observed, service_name};
use super::plan::{self, give};
use super::report::{Outcome, report};
use super::wish::{Denial, NO_FREE_PORT, WantedPort, Wish, wish};
use super::world::World;
use crate::runtime::ObjectKey;
use crate::runtime::apply::Failure;
use crate::runtime::clock;
use crate::runtime::controller::{Pass, Reconciler};
use crate::runtime::desk::Desk;
use crate::runtime::error::ApiError;
use crate::runtime::plan::Plan;
use crate::runtime::queue::Action;

/// How long an Instance for which no address has room waits at most before it is looked at again.
const PATIENCE: Duration = Duration::from_mins(1);

/// The loop.
pub struct Room {
    /// What it reads.
    pub world: Arc<World>,
    /// What it writes with.
    pub desk: Desk,
    /// What it depends on.
    pub settings: Arc<Settings>,
}

/// Why a pass ends without a report.
enum Stop {
    /// The lease is not held.
    NotLeader,
    /// What failed is likely to succeed at the next try: no user need hear of it.
    Again(String),
}

impl Reconciler for Room {
    const NAME: &'static str = "publicExposure";

    async fn reconcile(&self, key: &ObjectKey) -> Pass {
        self.world.waiting().remove(key);
        let service = ObjectKey::new(&key.namespace, service_name(&key.name));
        let Some(observed) = self.world.observe(key) else {
            self.world.allocator().settle(&service);
            return Pass::done(Action::Forget);
        };
        if observed.instance.is_terminating() {
            // The garbage collector has it.
            self.world.allocator().settle(&service);
            return Pass::done(Action::AwaitChange);
        }
        let outcome = match wish(&observed, &self.settings) {
            Wish::Unknown => return Pass::done(Action::AwaitChange),
            Wish::Nothing => self.withdraw(&observed, &service).await.map(|()| Outcome::Nothing),
            Wish::Denied(denial) => {
                self.withdraw(&observed, &service).await.map(|()| Outcome::Denied(denial))
            }
            Wish::Kept(denial) => Ok(Outcome::Kept(denial)),
            Wish::Ports(wanted) => self.expose(key, &observed, &service, wanted).await,
        };
        match outcome {
            Ok(outcome) => self.tell(key, &outcome).await,
            Err(Stop::NotLeader) => Pass::done(Action::AwaitChange),
            Err(Stop::Again(error)) => Pass::failed(error),
        }
    }
}

impl Room {
    /// Takes the exposure away.
    async fn withdraw(&self, observed: &Observed, service: &ObjectKey) -> Result<(), Stop> {
        let failures = self.desk.engine.apply(&plan::removal(observed)).await;
        match failures.first() {
            None => {
                self.world.allocator().settle(service);
                Ok(())
            }
            Some(failure) if failure.error == ApiError::NotLeader => Err(Stop::NotLeader),
            Some(failure) => Err(Stop::Again(failure.to_string())),
        }
    }

    /// Gives the Instance what it asks for.
    async fn expose(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        service: &ObjectKey,
        wanted: Vec<WantedPort>,
    ) -> Result<Outcome, Stop> {
        // In one step with the allocator: nobody else is given anything meanwhile.
        let given = {
            let mut allocator = self.world.allocator();
            let given = give(&mut allocator, observed, service, wanted, &self.settings);
            if given.is_none() {
                // What is freed from here on wakes it.
                self.world.waiting().insert(key.clone());
            }
            given
        };
        let Some(given) = given else { return Ok(Outcome::Kept(Denial::no_free_port())) };
        if let Some(failure) = self.apply(&plan::service(observed, &self.settings, &given)).await? {
            // Refused for certain: what it was given is free again.
            self.world.allocator().settle(service);
            return Ok(Outcome::ServiceFailed(failure));
        }
        Ok(match self.apply(&plan::policy(observed, &given)).await? {
            None => Outcome::Given(given),
            Some(failure) => Outcome::PolicyFailed(given, failure),
        })
    }

    /// Carries out a plan; what was refused, if it was.
    async fn apply(&self, plan: &Plan) -> Result<Option<Failure>, Stop> {
        let failure = self.desk.engine.apply(plan).await.into_iter().next();
        match failure {
            Some(failure) if failure.error == ApiError::NotLeader => Err(Stop::NotLeader),
            Some(failure) if failure.error.is_transient() => Err(Stop::Again(failure.to_string())),
            failure => Ok(failure),
        }
    }

    /// Tells what is new; how the pass ends.
    async fn tell(&self, key: &ObjectKey, outcome: &Outcome) -> Pass {
        // Observed again: with the answers to what has been written.
        let Some(observed) = self.world.observe(key) else { return Pass::done(Action::Forget) };
        let report = report(&observed, &self.settings, outcome, clock::now());
        match self.desk.tell(&observed.instance, &report.events, &report.status).await {
            Ok(_) => {}
            // Deleted meanwhile: the store will say.
            Err(ApiError::NotFound(_) | ApiError::NotLeader) => return Pass::done(Action::AwaitChange),
            Err(error) => return Pass::failed(format!("status: {error}")),
        }
        match outcome {
            Outcome::ServiceFailed(failure) | Outcome::PolicyFailed(_, failure) => {
                Pass::failed(failure.to_string())
            }
            Outcome::Kept(denial) if denial.reason == NO_FREE_PORT => {
                Pass::done(self.desk.rest(key, Some(PATIENCE)))
            }
            _ => Pass::done(self.desk.rest(key, None)),
        }
    }
}
