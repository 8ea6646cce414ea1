//! What a valid configuration leaves to others that is dangerous if nobody does it.

use super::types::Config;

impl Config {
    /// Sentences for the administrator, each with the key that it is about.
    pub fn warnings(&self) -> Vec<String> {
        let instance = &self.controllers.instance;
        let (routes, is_on) = (&instance.gateway_api, instance.enabled);
        let is_open = is_on && routes.enabled && !routes.authenticated;
        let sentence = "controllers.instance.gatewayApi.authenticated: the daemon logs nobody in at HTTPRoutes, so \
                        everybody who reaches the Gateway opens every machine; have the Gateway log users in \
                        (docs/platform.md), then set it to true";
        is_open.then(|| sentence.to_owned()).into_iter().collect()
    }
}
