//! The keys of the template loop.

use super::keys::keys;

keys! {
    /// The template loop.
    pub struct TemplateConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of Templates that are reconciled at the same time, from 1 to 256.
        #[schemars(range(min = 1, max = 256))]
        pub concurrency: usize = 4,
    }
}
