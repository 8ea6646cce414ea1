//! The objects of the cluster that the rules read.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::exposed_ports::PublicPort;
use crate::api::quota::Objects;
use crate::api::{Instance, Template};
use crate::runtime::ObjectKey;

/// Finds the objects that the rules need. Implementations answer from memory, without sending requests.
pub trait View: Objects {
    /// The name of the Tenant that a namespace belongs to; `None` for other namespaces.
    fn tenant_of_namespace(&self, namespace: &str) -> Option<String>;
    /// The Instances of a namespace.
    fn instances(&self, namespace: &str) -> Vec<Arc<Instance>>;
    /// The public ports that other Instances than this one have on every address that public ports can have.
    fn taken_public_ports(&self, instance: &ObjectKey) -> BTreeSet<PublicPort>;
    /// The obstacles for the environments of a Template, one sentence each.
    fn obstacles(&self, template: &Template) -> Vec<String>;
}
