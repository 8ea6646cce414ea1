//! The reasons why an Instance may not be started.

use super::Places;
use crate::api::GenericRef;
use crate::api::usage::Share;

/// The reason why an Instance may not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its Template does not exist.
    #[error("the Template {0} does not exist, so no quota is known")]
    NoTemplate(GenericRef),
    /// A Template in the namespace of a Tenant mounts a shared volume from another namespace for writing.
    #[error(
        "the Template {template} mounts the shared volume {volume} for writing: a Template in the namespace of a Tenant \
         may do so only with shared volumes of the same namespace; set readOnly"
    )]
    WritesForeignVolume {
        /// The Template.
        template: GenericRef,
        /// The volume.
        volume: GenericRef,
    },
    /// The Template belongs to another Tenant.
    #[error("the Template {template} belongs to another Tenant: use a Template in {own}")]
    OfAnotherTenant {
        /// The Template.
        template: GenericRef,
        /// The namespace of the Tenant.
        own: String,
    },
    /// The Tenant does not exist.
    #[error("the Tenant {0:?} does not exist")]
    NoTenant(String),
    /// The Tenant is not enrolled in the Workspace.
    #[error("the Tenant {tenant} is not enrolled in the Workspace {workspace}")]
    NotEnrolled {
        /// The Tenant.
        tenant: String,
        /// The Workspace.
        workspace: String,
    },
    /// The Workspace does not exist.
    #[error("the Workspace {0} does not exist, so no quota is known")]
    NoWorkspace(String),
    /// The Tenant has no personal workspace.
    #[error("the Tenant {0} has no personal workspace")]
    NoPersonalWorkspace(String),
    /// The Instance is not in the namespace of the Tenant whose personal workspace it would use.
    #[error("the personal workspace of {tenant:?} is for Instances in {namespace}")]
    Elsewhere {
        /// The Tenant.
        tenant: String,
        /// The namespace of the Tenant.
        namespace: String,
    },
    /// The namespace has the maximum number of Instances. A stopped Instance counts until it is deleted.
    #[error("quota exceeded: {0}; delete an Instance")]
    Full(Places),
    /// The usage would exceed the quota.
    #[error("quota exceeded: {}", Share::list(.0))]
    Exceeded(Vec<Share>),
}
