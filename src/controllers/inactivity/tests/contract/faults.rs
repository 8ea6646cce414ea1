//! What happens to the world that nobody has planned.

use super::*;

impl World {
    /// Something happens that nobody has planned.
    pub(super) fn disturb(&mut self) {
        let random = &mut self.random;
        match random.below(14) {
            0 => self.mail_is_away = !self.mail_is_away,
            1 => self.metrics_are_away = !self.metrics_are_away,
            2 => {
                self.metrics_are_empty = !self.metrics_are_empty;
                self.is_denied |= self.metrics_are_empty;
            }
            3 | 4 => {
                let steps = [-400 * 24 * HOUR, -HOUR, -60, 0, 0, 60, HOUR, 400 * 24 * HOUR];
                let step = usize::try_from(random.below(8)).expect("small");
                let daemon = usize::from(random.one_in(2));
                self.daemons[daemon].offset = steps[step];
            }
            5 => {
                let idle = ["24h", "12h", "48h", "never", "0m"];
                let idle = idle[usize::try_from(random.below(5)).expect("small")];
                let mut template = (*self.template).clone();
                template.spec.inactivity_timeout = idle.to_owned();
                self.template = Arc::new(template);
            }
            6 if self.random.one_in(4) => {
                (self.used, self.is_denied) = (Some(self.now), self.metrics_are_empty);
            }
            7 if self.random.one_in(4) => {
                if let Some(mut instance) = self.stored.clone() {
                    instance.metadata.generation = instance.metadata.generation.map(|number| number + 2);
                    self.store(instance);
                }
            }
            8 => {
                let daemon = usize::from(self.random.one_in(2));
                self.daemons[daemon] = Daemon { offset: self.daemons[daemon].offset, ..Daemon::default() };
            }
            _ => {}
        }
    }
}
