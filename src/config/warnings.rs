//! Warnings about a valid configuration: risks that administrators may accept, and likely mistakes.

use super::types::Config;
use super::{AccessMode, ExamAccess, Managers, Urls, nearest};

impl Config {
    /// Sentences for the administrator. Each begins with the key that it is about.
    pub fn warnings(&self) -> Vec<String> {
        let instance = &self.controllers.instance;
        let (routes, is_on) = (&instance.gateway_api, instance.enabled);
        let is_open = is_on && routes.enabled && !routes.authenticated && !routes.policy.is_set();
        let sentence = "controllers.instance.gatewayApi.authenticated: the daemon does not authenticate users of \
                        HTTPRoutes, so anyone who reaches the Gateway can open every machine; configure \
                        a login (docs/platform.md): set gatewayApi.policy, or a policy of the Gateway and then this key \
                        to true";
        let open = is_open.then(|| sentence.to_owned());
        let found = open.into_iter().chain(self.wide_cookie()).chain(self.unguarded_courses());
        found.chain(self.slips_of_selector()).collect()
    }

    /// A sentence if nothing separates the courses of a student.
    fn unguarded_courses(&self) -> Option<String> {
        let tenant = &self.controllers.tenant;
        let is_unguarded = tenant.managers == Managers::Course && !self.server.webhook.enabled;
        (tenant.enabled && is_unguarded).then(|| {
            "controllers.tenant.managers: with course and without webhooks, a manager can change every Instance of the \
             students of a course, also those of their other courses; set server.webhook.enabled to true and register \
             the webhooks (docs/security-model.md)"
                .to_owned()
        })
    }

    /// A sentence if every machine receives the login cookie of the OAuth2 proxy of all Instances.
    fn wide_cookie(&self) -> Option<String> {
        let instance = &self.controllers.instance;
        let access = &instance.access;
        let (is_shared, key) = if access.mode == AccessMode::Shared {
            (true, "mode")
        } else {
            (access.exams == ExamAccess::Shared, "exams")
        };
        let is_wide = instance.enabled && instance.urls == Urls::Host && !instance.gateway_api.enabled;
        (is_shared && is_wide).then(|| {
            format!(
                "controllers.instance.access.{key}: with shared and urls: host, the cookie of the OAuth2 proxy covers \
                 the whole domain, so every machine receives it and can act as its users; use daemon (docs/access.md)"
            )
        })
    }

    /// A sentence for each label of the selector that is almost the label of the default, which the samples use.
    fn slips_of_selector(&self) -> Vec<String> {
        let usual = Self::default().selector;
        let slip = |(key, value): (&String, &String)| {
            let meant = nearest(key, usual.keys().map(String::as_str))?;
            let wanted = usual.get(meant)?;
            let is_other =
                key != meant || value != wanted && nearest(value, [&**wanted].into_iter()).is_some();
            is_other.then(|| {
                format!(
                    "selector: {key}: {value}; did you mean {meant}: {wanted}? Objects managed under another \
                     selector stay as they are, and no loop reconciles them"
                )
            })
        };
        self.selector.iter().filter_map(slip).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_that_is_almost_the_default_is_named() {
        let warnings = |labels: &[(&str, &str)]| {
            let selector =
                labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            Config { selector, ..Config::default() }.warnings()
        };
        let key = "crownlabs.polito.it/operator-selector";
        for labels in [
            &[(key, "production")][..],
            &[(key, "staging")],
            &[("example.com/side", "production")],
            &[(key, "production"), ("example.com/zone", "north")],
        ] {
            assert_eq!(warnings(labels), [""; 0], "{labels:?}");
        }
        for label in [(key, "prodution"), (key, "Production"), ("crownlabs.polito.it/operator-selectr", "x")]
        {
            let [warning] = &*warnings(&[label]) else { panic!("{label:?}") };
            assert!(
                warning.contains("did you mean crownlabs.polito.it/operator-selector: production?"),
                "{warning}"
            );
        }
    }

    #[test]
    fn managers_by_course_without_webhooks_cause_a_warning() {
        let warnings = |managers: Managers, has_webhooks: bool| {
            let mut config = Config::default();
            config.controllers.tenant.managers = managers;
            config.server.webhook.enabled = has_webhooks;
            config.warnings()
        };
        let [warning] = &*warnings(Managers::Course, false) else { panic!("one warning") };
        assert!(warning.starts_with("controllers.tenant.managers: "), "{warning}");
        assert_eq!(warnings(Managers::Course, true), [""; 0]);
        assert_eq!(warnings(Managers::Cluster, false), [""; 0]);
    }

    #[test]
    fn a_login_cookie_that_every_machine_receives_causes_a_warning() {
        let warnings = |mode: AccessMode, exams: ExamAccess, urls: Urls, has_routes: bool| {
            let mut config = Config::default();
            let instance = &mut config.controllers.instance;
            (instance.access.mode, instance.access.exams, instance.urls) = (mode, exams, urls);
            instance.gateway_api.enabled = has_routes;
            instance.gateway_api.authenticated = true;
            config.warnings()
        };
        for (mode, exams, key) in [
            (AccessMode::Shared, ExamAccess::None, "controllers.instance.access.mode: "),
            (AccessMode::None, ExamAccess::Shared, "controllers.instance.access.exams: "),
        ] {
            let [warning] = &*warnings(mode, exams, Urls::Host, false) else { panic!("{mode:?} {exams:?}") };
            assert!(warning.starts_with(key) && warning.contains("covers the whole domain"), "{warning}");
            assert_eq!(warnings(mode, exams, Urls::Path, false), [""; 0]);
            assert_eq!(warnings(mode, exams, Urls::Host, true), [""; 0], "no Ingress refers to the proxy");
        }
        assert_eq!(warnings(AccessMode::Daemon, ExamAccess::Daemon, Urls::Host, false), [""; 0]);
    }
}
