//! The steps of a plan: faults for some days, then a calm phase until the Instance has ended.

use serde_json::{Value, json};

use super::world::{Dead, World, annotate};
use super::*;
use crate::api::labels;
use crate::controllers::cleanup::promise::Due;
use crate::runtime::clock::rfc3339;
use crate::runtime::reconcile::End;

/// The number of steps of a plan before the faults end. A step takes up to three hours.
const STEPS: usize = 40;

impl<A: Automation> World<A> {
    fn tell_state(&self) {
        let stored = self.stored.as_ref();
        let stage = stored.map(A::stage);
        let promise = stage.zip(stored).and_then(|(stage, stored)| stage.promise(stored));
        let limit = stage.zip(self.template.as_deref()).map(|(stage, template)| stage.limit(template));
        let offsets = self.daemons.each_ref().map(|daemon| daemon.offset);
        let Self { number, is_exempt, api_offset, used, .. } = self;
        self.trace(&format!(
            "{stage:?} limit {limit:?} warnings {number} exempt {is_exempt} used {used:?} clocks {api_offset} {offsets:?} {promise:?}"
        ));
    }

    /// Lets a daemon work until nothing remains to be done immediately.
    fn work(&mut self, daemon: usize) {
        if self.daemons[daemon].store.is_none() || self.random.one_in(2) {
            self.show(daemon);
        }
        for _ in 0..8 {
            let known = self.daemons[daemon].store.clone();
            let result = self.reconcile(daemon);
            match result {
                Ok(End::Again) => {}
                // The watch shows the concurrent changes.
                Ok(End::Failed(_)) => self.show(daemon),
                Ok(End::Gone | End::AwaitChange | End::Requeue(_)) => {
                    return self.forget_withdrawn(daemon, known.as_deref());
                }
                Err(Dead) => return,
            }
        }
    }

    /// Called after a reconcile. If it saw that the Instance is excluded, earlier warnings no longer count.
    fn forget_withdrawn(&mut self, daemon: usize, known: Option<&Instance>) {
        let Some(known) = known else { return };
        let is_newest = self.daemons[daemon].store.as_deref() == self.stored.as_ref();
        let stage = A::stage(known);
        let judged = self.judged(daemon).as_second();
        if is_newest && self.is_left_alone(stage, known, judged) == Some(true) {
            self.warnings.retain(|warning| warning.stage != stage);
        }
    }

    /// Records when an Instance was switched off, as the Instance loop does, or that it is on again.
    fn stamp(&mut self) {
        let Some(mut instance) = self.stored.clone() else { return };
        let key = labels::LAST_POWERED_OFF;
        let stamp = match (instance.spec.running, instance.annotation(key)) {
            (false, None) => json!(rfc3339(at(self.now))),
            (true, Some(_)) => Value::Null,
            _ => return,
        };
        annotate(&mut instance, &json!({key: stamp}));
        self.store(instance);
    }

    /// Whether the Instance has reached the end of this plan.
    fn is_over(&self) -> bool {
        self.stored.is_none() || !self.goes_on && !self.ended.is_empty()
    }

    /// The step that is due now and not done yet.
    fn due(&self) -> Option<Due> {
        let observed = self.observed(0)?;
        let due = A::ending(&observed, &self.settings, at(self.now)).ok()??.due(at(self.now));
        (!self.is_over() && !matches!(due, Due::Never | Due::At(_))).then_some(due)
    }

    /// Runs the plan. Returns the stages that ended (by a stop or a deletion) while there were faults.
    pub fn run(mut self) -> Vec<Stage> {
        for _ in 0..STEPS {
            self.disturb();
            if self.is_traced {
                self.tell_state();
            }
            if self.random.one_in(2) {
                self.stamp();
            }
            let daemon = usize::from(self.random.one_in(4));
            self.work(daemon);
            if self.is_over() {
                return self.ended;
            }
            self.now += self.random.seconds(3 * HOUR);
        }
        // The faults end. Within an interval, every due step is done, and the unused Instance reaches its end or both
        // ends (it is stopped, then deleted). The clock of the API server may have been an hour fast, and a mail that
        // no longer counts may just have been accepted.
        let ended = self.ended.clone();
        self.is_calm = true;
        self.soothe();
        let calm = self.now;
        let each = DAY + 6 * (INTERVAL + 660) + 2 * HOUR;
        // An Instance can be two days younger than the expiry age.
        let limit = calm + 2 * DAY + 2 * each;
        while !self.is_over() {
            assert!(self.now < limit, "no end: {:#?}", self.stored.map(|stored| stored.status));
            self.stamp();
            self.show(0);
            self.work(0);
            if self.now >= calm + INTERVAL {
                assert_eq!(self.due(), None, "still due at {}", self.now);
            }
            self.now += HOUR;
        }
        ended
    }
}
