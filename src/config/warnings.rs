//! Warnings about a valid configuration: risks that administrators may accept, and likely mistakes.

use super::nearest;
use super::types::Config;

impl Config {
    /// Sentences for the administrator. Each begins with the key that it is about.
    pub fn warnings(&self) -> Vec<String> {
        let instance = &self.controllers.instance;
        let (routes, is_on) = (&instance.gateway_api, instance.enabled);
        let is_open = is_on && routes.enabled && !routes.authenticated;
        let sentence = "controllers.instance.gatewayApi.authenticated: the daemon does not authenticate users of \
                        HTTPRoutes, so anyone who reaches the Gateway can open every machine; configure \
                        authentication in the Gateway (docs/platform.md), then set this key to true";
        is_open.then(|| sentence.to_owned()).into_iter().chain(self.slips_of_selector()).collect()
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
}
