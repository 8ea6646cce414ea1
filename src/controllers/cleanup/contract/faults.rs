//! The initial state of a plan of faults, and the unplanned events in it.

use serde_json::{Value, json};

use super::judge::Warning;
use super::world::{World, annotate};
use super::*;
use crate::api::labels;
use crate::controllers::shared::fixtures::running_instance;
use crate::runtime::clock::rfc3339;

/// The times that Templates allow without use and while stopped. The calm phase uses the first one.
const IDLE: [&str; 8] = ["24h", "24h", "24h", "12h", "48h", "never", "0m", "soon"];
/// The ages that Templates allow.
const AGES: [&str; 8] = ["30d", "30d", "30d", "29d", "31d", "never", "0m", "soon"];
/// The largest number of warnings of a Template.
pub const MOST: usize = 3;
/// The age of an Instance that is about to expire.
const AGE: i64 = 30 * DAY;

fn template() -> Arc<Template> {
    let template = json!({
        "metadata": {"name": "vm", "namespace": "workspace-tea"},
        "spec": {
            "inactivityTimeout": IDLE[0],
            "deleteAfter": AGES[0],
            "cleanup": {"deleteAfterInactivity": IDLE[0]},
            "environmentList": [{"name": "vm", "persistent": true}],
        },
    });
    Arc::new(serde_json::from_value(template).expect("a Template"))
}

impl<A: Automation> World<A> {
    /// Creates the Instance in its first state: new, old, or stopped, with the annotations of the Go operator.
    pub fn begin(&mut self) {
        self.template = Some(template());
        let is_old = self.random.one_in(3);
        let mut stored = running_instance(at(if is_old { -10 * DAY } else { 0 }));
        if A::stage(&stored) == Stage::Age {
            let created = self.random.seconds(4 * DAY) - 2 * DAY - AGE;
            stored = running_instance(at(created));
            if self.random.one_in(3) {
                self.warned_of_age(&mut stored, created + AGE);
            }
        } else if self.random.one_in(3) {
            stored.spec.running = false;
            let off = -self.random.seconds(2 * DAY);
            let stamps = json!({labels::LAST_POWERED_OFF: rfc3339(at(off)), labels::LAST_RUNNING: "false"});
            annotate(&mut stored, &stamps);
        } else if is_old && self.random.one_in(2) {
            self.warned_of_stop(&mut stored);
        }
        if self.random.one_in(4) {
            self.edit_template(A::stage(&stored));
        }
        self.is_exempt = self.random.one_in(20);
        self.store(stored);
    }

    /// Writes the annotations that the Go operator sets on an Instance after a warning about its age.
    fn warned_of_age(&mut self, instance: &mut Instance, overdue: i64) {
        if overdue > 0 {
            return;
        }
        let warned = (-self.random.seconds(2 * INTERVAL)).max(overdue);
        // An older version of the Go operator did not write the time.
        let annotations = if self.random.one_in(3) {
            json!({labels::EXPIRY_WARNED: "true"})
        } else {
            json!({labels::EXPIRY_WARNED_AT: rfc3339(at(warned))})
        };
        annotate(instance, &annotations);
        self.warned(Stage::Age, 0, warned);
    }

    /// Writes the annotations that the Go operator sets on a running Instance.
    fn warned_of_stop(&mut self, instance: &mut Instance) {
        let number = self.random.seconds(i64::from(MAX) + 1);
        let last = -self.random.seconds(2 * INTERVAL);
        let used = last - number * INTERVAL - DAY;
        for before in 0..number {
            self.warned(Stage::Idle, before, last - (number - 1 - before) * INTERVAL);
        }
        let annotations = json!({
            labels::LAST_ACTIVITY: rfc3339(at(used)),
            labels::ALERTS_SENT: number.to_string(),
            labels::LAST_NOTIFICATION: if number > 0 { rfc3339(at(last)) } else { String::new() },
            labels::LAST_RUNNING: "true",
        });
        annotate(instance, &annotations);
    }

    /// Records a mail of the Go operator. Nothing happens for an interval after it.
    fn warned(&mut self, stage: Stage, number: i64, at: i64) {
        let deadline = at + INTERVAL;
        self.warnings.push(Warning { stage, number, at, stated: at, deadline, by: None });
    }

    /// Sets another time in the Template.
    fn edit_template(&mut self, stage: Stage) {
        let limit = self.random.one_of(if stage == Stage::Age { AGES } else { IDLE });
        let Some(template) = &mut self.template else { return };
        let spec = &mut Arc::make_mut(template).spec;
        match stage {
            Stage::Idle => limit.clone_into(&mut spec.inactivity_timeout),
            Stage::Off => spec.cleanup.delete_after_inactivity = Some(limit.to_owned()),
            Stage::Age => limit.clone_into(&mut spec.delete_after),
        }
    }

    /// Steps the clock of a daemon or of the API server. At least one of the two clocks is never fast: if both were, a
    /// daemon could not know the time.
    fn step_clock(&mut self, of_server: bool) {
        let daemon = usize::from(self.random.one_in(2));
        if of_server {
            self.api_offset = self.random.one_of([-HOUR, -60, 0, 0, 60, HOUR]);
        } else {
            let steps = [-400 * DAY, -HOUR, -60, 0, 0, 60, HOUR, 400 * DAY];
            self.daemons[daemon].offset = self.random.one_of(steps);
        }
        if self.daemons.iter().any(|daemon| daemon.offset > 0) && self.api_offset > 0 {
            self.api_offset = 0;
        }
    }

    /// Changes the Instance: starts it, stops it, or renames it.
    fn change_instance(&mut self) {
        let Some(mut instance) = self.stored.clone() else { return };
        if A::stage(&instance) != Stage::Age && self.random.one_in(2) {
            instance.spec.running = !instance.spec.running;
        }
        instance.metadata.generation = instance.metadata.generation.map(|number| number + 1);
        self.store(instance);
    }

    /// Sets another number of warnings in the Template.
    fn edit_number(&mut self) {
        let (text, number) =
            self.random.one_of([("2", 2), ("many", 2), ("1", 1), ("3", MOST), ("0", 0), ("-1", 0)]);
        self.set_number(text, number);
    }

    fn set_number(&mut self, text: &str, number: usize) {
        let Some(template) = &mut self.template else { return };
        self.number = number;
        let annotation = (labels::CUSTOM_NUMBER_ALERTS, text);
        Arc::make_mut(template).metadata.annotations = [annotation].into_iter().collect();
    }

    /// Toggles whether the environment of the Template keeps its data.
    fn edit_persistence(&mut self) {
        let Some(template) = &mut self.template else { return };
        let environment = &mut Arc::make_mut(template).spec.environment_list[0];
        environment.persistent = !environment.persistent;
    }

    /// Injects a random event.
    pub fn disturb(&mut self) {
        let stage = self.stored.as_ref().map_or(Stage::Age, A::stage);
        match self.random.below(20) {
            0 => self.mail_is_away = !self.mail_is_away,
            1 => self.metrics_are_away = !self.metrics_are_away,
            2 => {
                self.metrics_are_empty = !self.metrics_are_empty;
                self.is_denied |= self.metrics_are_empty;
            }
            3 | 4 => self.step_clock(false),
            5 => self.step_clock(true),
            6 if self.random.one_in(2) => self.edit_template(stage),
            7 if self.random.one_in(4) => {
                (self.used, self.is_denied) = (Some(self.now), self.metrics_are_empty);
            }
            8 if self.random.one_in(4) => self.change_instance(),
            9 => {
                let daemon = usize::from(self.random.one_in(2));
                self.restart(daemon);
                self.daemons[daemon].store = None;
            }
            10 if self.random.one_in(2) => self.edit_number(),
            10 => self.edit_persistence(),
            11 if self.is_exempt || self.random.one_in(3) => self.is_exempt = !self.is_exempt,
            13 => self.is_unknown = !self.is_unknown,
            14 => self.has_filter = !self.has_filter,
            15 => self.is_managed = !self.is_managed,
            16 if self.random.one_in(2) => self.take_back(stage),
            17 if self.random.one_in(4) => self.keep(),
            12 if self.template.is_none() => (self.template, self.number) = (Some(template()), MAX as usize),
            12 if self.random.one_in(6) => self.template = None,
            _ => {}
        }
    }

    /// The Tenant asks to keep the Instance: now, by a wrong clock, or with a text that is not a time.
    fn keep(&mut self) {
        let Some(mut instance) = self.stored.clone() else { return };
        let offset = self.random.one_of([0, 0, 0, -HOUR, 60, 3 * HOUR, 400 * DAY]);
        let text = if self.random.one_in(8) { "tomorrow".to_owned() } else { rfc3339(at(self.now + offset)) };
        self.trace(&format!("the Tenant asks to keep the Instance: {text}"));
        annotate(&mut instance, &json!({labels::KEPT_AT: text}));
        self.store(instance);
    }

    /// The Tenant removes the warnings from the status and annotations of their Instance, to get them again, or removes
    /// only the record of the warning that is being sent.
    fn take_back(&mut self, stage: Stage) {
        let Some(mut instance) = self.stored.clone() else { return };
        let status = &mut instance.status;
        let promise = match stage {
            Stage::Idle => &mut status.inactivity,
            Stage::Off => &mut status.destruction,
            Stage::Age => &mut status.expiration,
        };
        if let Some(promise) = promise.as_mut().filter(|_| self.random.one_in(2)) {
            promise.sending = None;
            let warnings = promise.warnings;
            self.warnings.retain(|warning| warning.stage != stage || warning.number < warnings);
        } else {
            *promise = None;
            self.warnings.retain(|warning| warning.stage != stage);
        }
        let mut annotations = json!({
            labels::ALERTS_SENT: null, labels::LAST_NOTIFICATION: null, labels::EXPIRY_WARNED: null,
            labels::EXPIRY_WARNED_AT: null,
        });
        if !self.has_webhook {
            let known = instance.metadata.annotations.iter().map(|(key, _)| key.to_owned());
            for key in known.filter(|key| key.starts_with(labels::MAILED_PREFIX)) {
                annotations[key] = Value::Null;
            }
        }
        annotate(&mut instance, &annotations);
        self.trace("the Tenant reverts the status");
        self.store(instance);
    }

    /// Ends the faults, and sets a valid time in the Template.
    pub fn soothe(&mut self) {
        (self.mail_is_away, self.metrics_are_away, self.metrics_are_empty) = (false, false, false);
        (self.is_exempt, self.api_offset) = (false, 0);
        (self.has_filter, self.is_unknown) = (false, false);
        self.template = Some(template());
        self.set_number("3", MOST);
        for daemon in 0..self.daemons.len() {
            self.restart(daemon);
            self.daemons[daemon].offset = 0;
        }
    }
}
