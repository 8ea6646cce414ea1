//! The objects of the cluster that the rules read.

use std::sync::Arc;

use crate::api::quota::Objects;
use crate::api::{Instance, Template};

/// Finds the objects that the rules need. Implementations answer from memory, without sending requests.
pub trait View: Objects {
    /// The name of the Tenant that a namespace belongs to; `None` for other namespaces.
    fn tenant_of_namespace(&self, namespace: &str) -> Option<String>;
    /// The Instances of a namespace.
    fn instances(&self, namespace: &str) -> Vec<Arc<Instance>>;
    /// The obstacles for the environments of a Template, one sentence each.
    fn obstacles(&self, template: &Template) -> Vec<String>;
}
