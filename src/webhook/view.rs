//! The objects of the cluster that the rules read.

use std::sync::Arc;

use crate::api::{Instance, Template, Tenant, Workspace};

/// Finds the objects that the rules need. Implementations answer from memory, without a request.
pub trait View {
    /// The Tenant of that name.
    fn tenant(&self, name: &str) -> Option<Arc<Tenant>>;
    /// The Workspace of that name.
    fn workspace(&self, name: &str) -> Option<Arc<Workspace>>;
    /// The Template of that name.
    fn template(&self, namespace: &str, name: &str) -> Option<Arc<Template>>;
    /// The name of the Tenant that a namespace belongs to; `None` for other namespaces.
    fn tenant_of_namespace(&self, namespace: &str) -> Option<String>;
    /// The Instances of a namespace.
    fn instances(&self, namespace: &str) -> Vec<Arc<Instance>>;
}
